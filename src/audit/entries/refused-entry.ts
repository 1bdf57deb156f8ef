// What the audit log says of a request that was refused, of a change that an administrator made or may not make, and of
// what somebody did at a login front or was refused.

import type { AuditedLogin } from '../../observe/login-event.ts'
import type { RefusedRequest } from '../../observe/refused-requests.ts'
import type { JsonObject } from '../../protocol/messages.ts'
import { callerFields, type AuditedPrincipal } from './call-entry.ts'
import type { Refusals } from '../refusals.ts'

export type RefusedEntry = Pick<RefusedRequest, 'address' | 'id' | 'method'> & {
  readonly context?: { readonly principal: AuditedPrincipal } | undefined
  readonly stopped?: AuditedPrincipal | undefined
}

/** A change of an administrator, made or refused. */
export interface AdministrativeChange {
  /** Name of the admin key. */
  readonly actor: string
  readonly role: string
  /** Such as `session.end`. */
  readonly action: string
  /** undefined: the whole gateway. */
  readonly tenant: string | undefined
  /** The target of the change, without anything secret. */
  readonly target: string
  /** Digest of what was there before; undefined: nothing. */
  readonly before: string | undefined
  /** Digest of what is there now; undefined: nothing. */
  readonly after: string | undefined
  /** The address from which the request came. */
  readonly address: string
}

const counted = (unrecorded: number): JsonObject => (unrecorded > 0 ? { unrecorded } : {})

/** @returns undefined where this one is left out, and counted */
export function refusedEntry(
  endpoint: string,
  { context, stopped, address: from, id: request, method }: RefusedEntry,
  outcome: string,
  refusals: Refusals
): JsonObject | undefined {
  const known = context?.principal ?? stopped
  const caller = known === undefined ? {} : callerFields(known)
  const unrecorded = refusals.take(caller)
  if (unrecorded === undefined) return undefined
  const http = method.slice(0, 16)
  return { endpoint, ...caller, from, request, http, decision: 'denied', outcome, ...counted(unrecorded) }
}

const administratorOf = ({ actor, role }: Pick<AdministrativeChange, 'actor' | 'role'>): JsonObject => ({
  kind: 'admin',
  name: actor,
  role
})

export function changeEntry({ action, target, before, after, address, ...who }: AdministrativeChange): JsonObject {
  return { by: administratorOf(who), from: address, action, target, before, after }
}

/** @returns undefined where this one is left out, and counted */
export function refusedChangeEntry(
  { action, target, address: from, ...who }: Omit<AdministrativeChange, 'before' | 'after'>,
  outcome: string,
  refusals: Refusals
): JsonObject | undefined {
  const by = administratorOf(who)
  const unrecorded = refusals.take({ by })
  if (unrecorded === undefined) return undefined
  return { by, from, action, target, decision: 'denied', outcome, ...counted(unrecorded) }
}

/** @returns undefined where this one is left out, and counted: only refusals are */
export function loginEntry(
  { refused, subject, issuer, address: from, requestId: request, ...event }: AuditedLogin,
  refusals: Refusals
): JsonObject | undefined {
  const caller = subject === undefined ? {} : { by: { kind: 'person', issuer, subject } }
  const unrecorded = refused === undefined ? 0 : refusals.take(caller)
  if (unrecorded === undefined) return undefined
  const decision = refused === undefined ? 'allowed' : 'denied'
  return { ...caller, from, request, ...event, decision, outcome: refused ?? 'ok', ...counted(unrecorded) }
}
