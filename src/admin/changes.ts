// Records each change by an administrator, by whatever route, in the log and, if configured, in the audit log.

import type { FastifyRequest } from 'fastify'
import { createHash, hash } from 'node:crypto'
import type { AdministrativeChange } from '../audit/entries/refused-entry.ts'
import type { Audit } from '../audit/audit.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { shownName } from '../observe/pseudonyms.ts'
import { tenantId } from '../protocol/messages.ts'
import { canonicalJsonOf } from '../protocol/json-text.ts'
import { longTextSteps } from '../protocol/json-writer.ts'
import { runSteps } from '../time/turns.ts'
import { AdminProblem } from './problem.ts'
import { changesSomething, maySee, type AdminRoute, type AdminServices } from './route.ts'

/**
 * Called once for each change that has been made, before it is answered: resolves when its record is written, or cannot
 * be now. Never rejects.
 */
export async function recordChange(
  { log, audit, snapshot }: Pick<AdminServices, 'log' | 'audit' | 'snapshot'>,
  change: AdministrativeChange
): Promise<void> {
  log.info({ change: loggedChange(snapshot(), change) }, 'an administrator made a change')
  await audit?.changed(change)
}

/** With pseudonyms, removes names and digests of names, which could be guessed. */
function loggedChange(config: Snapshot, change: AdministrativeChange): Partial<AdministrativeChange> {
  if (config.pseudonyms === undefined) return change
  const { actor, role, action, tenant, address } = change
  return { actor: shownName(config, tenant ?? '', actor), role, action, tenant, address }
}

/** The longest target in the log, in characters: a refused client chooses it. */
const maxTargetLength = 256

/** Records a refused change: for the tenant, if the administrator may see it; otherwise for the gateway itself. */
export function recordRefusedChange(
  { audit, snapshot }: { readonly audit: Pick<Audit, 'changeRefused'> | undefined; readonly snapshot: () => Snapshot },
  change: Omit<AdministrativeChange, 'before' | 'after'>,
  outcome: string
): void {
  const { tenant, target } = change
  // An unknown tenant gets no record, because anybody could make up names.
  const isThere = tenant !== undefined && snapshot().tenants.has(tenantId(tenant))
  const named = { ...change, tenant: isThere ? tenant : undefined, target: target.slice(0, maxTargetLength) }
  audit?.changeRefused(named, outcome)
}

/** Runs a check of a change; a refusal is recorded in the audit log. @throws AdminProblem */
export function notingRefusal<T>(
  services: Parameters<typeof recordRefusedChange>[0],
  route: Pick<AdminRoute, 'method' | 'isSafe' | 'path'>,
  { administrator, params, url, ip: address }: FastifyRequest,
  check: () => T
): T {
  try {
    return check()
  } catch (error) {
    if (administrator !== undefined && error instanceof AdminProblem && changesSomething(route)) {
      const { name: actor, role } = administrator
      const { tenant: id = '' } = params as Readonly<Record<string, string>>
      const tenant = maySee(administrator, id) ? id : undefined
      const [target = ''] = url.split('?', 1)
      const action = `${route.method} ${route.path}`
      // Whoever may see the tenant has mistyped it, where there is none.
      if (error.code === 'forbidden' || tenant === undefined)
        recordRefusedChange(services, { actor, role, action, tenant, target, address }, error.code)
    }
    throw error
  }
}

/** @returns SHA-256 in hexadecimal of the canonical form, for `before` and `after` */
export const changeHash = (value: unknown): string => hash('sha256', canonicalJsonOf(value))

/** Returns the digest of a value that may be as long as a document, in steps. */
export async function longChangeHash(value: unknown): Promise<string> {
  const { parts } = await runSteps(longTextSteps(value, undefined, true), { tenant: '', caller: 'admin' })
  const digest = createHash('sha256')
  for (const part of parts) digest.update(part)
  return digest.digest('hex')
}
