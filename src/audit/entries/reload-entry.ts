// What the audit log says of a configuration file that was taken anew: which tenants it changed, and what else.

import { createHmac, type KeyObject } from 'node:crypto'
import type { Snapshot } from '../../config/snapshot.ts'
import { longTextSteps } from '../../protocol/json-writer.ts'
import type { TenantId } from '../../protocol/messages.ts'
import type { AuditKeys } from '../keys.ts'
import type { Trail } from '../trail.ts'
import { runSteps, type Steps } from '../../time/turns.ts'

interface ReloadRecording {
  /** The name of the trail of what belongs to no tenant. */
  readonly itself: string
  /** The keys of digests, since the configuration holds secrets. */
  readonly keys: Pick<AuditKeys, 'argumentKey'>
  readonly trailOf: (tenant: string) => { readonly trail: Pick<Trail, 'add'> } | undefined
}

/** A record for each part that differs: each tenant, and what belongs to none. Never rejects. */
export async function recordReload(before: Snapshot, after: Snapshot, recording: ReloadRecording): Promise<void> {
  const { itself, keys, trailOf } = recording
  // Of removed tenants those of now: they may be made again before all is compared.
  const gone = [...before.tenants.keys()].filter((id) => !after.tenants.has(id))
  const removed = new Map(gone.map((id): [string, ReturnType<typeof trailOf>] => [id, trailOf(id)]))
  const parts = await runSteps(changedParts(before, after, itself, keys), { tenant: '', caller: 'audit' })
  const of = { by: { kind: 'file' }, action: 'configuration.reload' }
  for (const { tenant, target, ...digests } of parts)
    (removed.get(tenant) ?? trailOf(tenant))?.trail.add('change', { ...of, target, ...digests })
}

interface ChangedPart {
  readonly tenant: string
  readonly target: string
  readonly before: string | undefined
  readonly after: string | undefined
}

/** Finds the changed parts, in steps: a configuration may be long. */
function* changedParts(
  before: Snapshot,
  after: Snapshot,
  itself: string,
  keys: ReloadRecording['keys']
): Steps<ChangedPart[]> {
  const changed: ChangedPart[] = []
  for (const id of [undefined, ...new Set([...before.tenants.keys(), ...after.tenants.keys()])]) {
    yield
    const tenant = id ?? itself
    const key = keys.argumentKey(tenant)
    const [was, is] = [yield* digest(before, id, key), yield* digest(after, id, key)]
    if (was !== is) changed.push({ tenant, target: id ?? 'configuration', before: was, after: is })
  }
  return changed
}

/** @returns undefined where there is no such tenant */
function* digest(
  { tenants, ...rest }: Snapshot,
  tenant: TenantId | undefined,
  key: KeyObject
): Steps<string | undefined> {
  const value = tenant === undefined ? rest : tenants.get(tenant)
  if (value === undefined) return undefined
  const hmac = createHmac('sha256', key)
  const { parts } = yield* longTextSteps(plain(value), undefined, true)
  for (const part of parts) hmac.update(part)
  return hmac.digest('hex')
}

/** Maps and sets as what has a text. */
function plain(value: unknown): unknown {
  if (value instanceof Map || value instanceof Set || Array.isArray(value)) return [...value].map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => (isText(member) ? [[name, plain(member)]] : []))
  )
}

const isText = (value: unknown): boolean => value !== undefined && typeof value !== 'function'
