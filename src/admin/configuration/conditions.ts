// Conditional requests (RFC 9110 section 13): a change names the version of the document that its author has seen, so
// that no change is overwritten unseen.

import type { IncomingHttpHeaders } from 'node:http'
import type { DocumentChange } from '../../control/compiled-documents.ts'
import type { Control } from '../../control/control.ts'
import type { Administrator } from '../access.ts'
import { AdminProblem } from '../problem.ts'
import type { AdminRoute } from '../route.ts'

export interface Conditions {
  readonly ifMatch: string | undefined
  readonly ifNoneMatch: string | undefined
  /** draft-ietf-httpapi-idempotency-key-header */
  readonly idempotencyKey: string | undefined
}

export const conditionsOf = (headers: IncomingHttpHeaders): Conditions => ({
  ifMatch: headers['if-match'],
  ifNoneMatch: headers['if-none-match'],
  idempotencyKey: headers['idempotency-key']?.toString()
})

/** Whether the resource of a route has versions that a request can name. */
export const takesConditions = ({ method, path }: Pick<AdminRoute, 'method' | 'path'>): boolean =>
  method === 'POST'
    ? path === '/v1/apply' || path === '/v1/rollback'
    : method !== 'GET' && !/\/(?:keys|sessions|kills)(?:\/|$)/.test(path)

export const etagOf = (version: number): string => `"${version}"`

/** Weak tags match nothing (RFC 9110 section 8.8.3.2: strong comparison). */
const matches = (header: string, version: number | undefined): boolean =>
  version !== undefined && (header.trim() === '*' || header.split(',').some((each) => each.trim() === etagOf(version)))

type Versions = Pick<Control, 'version' | 'lastChangeOf'>

/** Returns the version of a plan: for a key of some tenants the last change of these, whatever others do. */
export const versionFor = ({ tenants }: Pick<Administrator, 'tenants'>, control: Versions): number =>
  tenants === undefined ? control.version : Math.max(0, ...[...tenants].map(control.lastChangeOf))

/**
 * Of a change that was planned: it still is, as long as nobody has changed the tenants that it changes.
 * @param ifMatch names the version of the plan
 * @throws AdminProblem precondition_failed
 */
export function checkPlanned(
  ifMatch: string | undefined,
  { tenant }: Pick<DocumentChange, 'tenant'>,
  administrator: Pick<Administrator, 'tenants'>,
  control: Versions
): void {
  const changed = control.lastChangeOf(tenant)
  const isOfNow = (tag: string): boolean => {
    const version = Number(/^"(\d{1,15})"$/.exec(tag.trim())?.[1] ?? -1)
    return changed <= version && version <= control.version
  }
  if (ifMatch === undefined || ifMatch.trim() === '*' || ifMatch.split(',').some(isOfNow)) return
  throw new AdminProblem(
    'precondition_failed',
    'The configuration has changed since that version.',
    'Plan again, and apply what you find then.',
    { headers: { ETag: etagOf(versionFor(administrator, control)) } }
  )
}

const failed = (detail: string, version: number | undefined): AdminProblem =>
  new AdminProblem('precondition_failed', detail, 'Read it again, and change what you find then.', {
    ...(version !== undefined && { headers: { ETag: etagOf(version) } })
  })

/**
 * Checks If-None-Match, also if the existing document is equal: the request must create it (RFC 9110 section 13.1.2).
 * @throws AdminProblem precondition_failed
 */
export function checkNoneMatch({ ifNoneMatch }: Conditions, version: number | undefined): void {
  if (ifNoneMatch !== undefined && matches(ifNoneMatch, version)) throw failed('It is there already.', version)
}

/**
 * Checks If-Match for a change. A repeated PUT of the present document succeeds (RFC 9110 section 13.1.1).
 * @param version the present version; undefined: there is no document
 * @throws AdminProblem precondition_required for a change of an existing document without If-Match, precondition_failed
 */
export function checkPreconditions({ ifMatch }: Conditions, version: number | undefined): void {
  if (ifMatch !== undefined && !matches(ifMatch, version)) {
    if (version === undefined)
      throw new AdminProblem('precondition_failed', 'There is none yet.', 'To make it, send no If-Match.')
    const isNamed = ifMatch.includes('"')
    throw failed(isNamed ? 'It is not the version that If-Match names.' : 'If-Match has no version in quotes.', version)
  }
  if (version !== undefined && ifMatch === undefined)
    throw new AdminProblem(
      'precondition_required',
      'There is a version of it already, and the request does not say which one it changes.',
      'Read it, and send the ETag of the answer as If-Match; "*" stands for any version.'
    )
}

/**
 * Checks that a change of an existing resource names its version.
 * @throws AdminProblem precondition_required where it names none
 */
export function checkVersionNamed(ifMatch: string | undefined, { tenant, before }: DocumentChange): void {
  if (ifMatch !== undefined || before === undefined) return
  throw new AdminProblem(
    'precondition_required',
    `The tenant ${tenant} is there already, and the request does not say which version it changes.`,
    'Plan the change (POST /v1/plan), and send the version of the plan; If-Match: * stands for any version.'
  )
}
