// Which sessions of a tenant still stand: those of its present epoch. An epoch ends with all its sessions when the
// configuration has the tenant no more, since another organisation may come under its name; and when the store lost the
// end of a session, as a Redis does that restarts from a dump, since nobody knows then which sessions have ended.
//
// One counter per tenant in the store tells both: a session that its client ends adds one, the end of an epoch adds
// `perEpoch`. It only grows, so a store in which it is lower than this process knows has lost writes.

import type { Log } from '../observe/log.ts'
import { tenantId, type TenantId } from '../protocol/messages.ts'
import {
  firstIssuersKey,
  foreverMs,
  grantEndsKey,
  grantIndexKey,
  sessionEndsKey,
  sessionsChannel,
  tenantsKept,
  tenantsKey,
  vaultKeyKey
} from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { SessionSettings } from './session-index.ts'

const perEpoch = 1_000_000_000
/** Beyond, it would no longer be an exact number, and nothing but the gateway wrote it. */
const maxEnds = 1_000_000 * perEpoch

export function createSessionEpochs(store: Store, log: Log) {
  /** The highest that was seen, here or in messages: no lower one is believed. As many as there are tenants. */
  const highest = new Map<TenantId, number>()
  let configured: ReadonlySet<TenantId> = new Set()
  /** Whether tenants that were removed while no gateway ran have still to be looked for. */
  let isFirst = true
  let isWhole = true
  /** Removed from the configuration; their sessions have still to end. */
  const leaving = new Set<TenantId>()
  /** Removed, and their sessions have ended. */
  const gone = new Set<TenantId>()

  const seen = (tenant: TenantId): number => highest.get(tenant) ?? 0
  function saw(tenant: TenantId, ends: number): void {
    if (ends > seen(tenant) && ends <= maxEnds) highest.set(tenant, ends)
  }
  const tell = (tenant: TenantId): Promise<number> => store.publish(sessionsChannel, `${seen(tenant)} ${tenant}`)

  async function read(tenant: TenantId): Promise<number> {
    const key = sessionEndsKey(tenant)
    const text = await store.get(key)
    const ends = text === undefined ? 0 : endsOf(text)
    if (ends !== undefined) return ends
    log.warn(
      { storeKey: key },
      'a counter in the store is damaged and counts as absent; who else can write to the store?'
    )
    await store.delete(key)
    return 0
  }

  /** @returns the present epoch. @throws GatewayError unavailable */
  async function current(tenant: TenantId): Promise<number> {
    if (leaving.has(tenant)) await endEpoch(tenant)
    // Taken before the store is asked: what a message tells meanwhile may be newer than the answer.
    const before = seen(tenant)
    const ends = await read(tenant)
    if (ends >= before) {
      saw(tenant, ends)
      return epochOf(ends)
    }
    // Another request has found it, too.
    if (seen(tenant) > before) return current(tenant)
    log.warn({ tenant }, 'the store has lost the end of sessions: all sessions of the tenant end')
    const next = (epochOf(before) + 1) * perEpoch
    // Set and not added, so that all processes that find it begin the same epoch.
    await store.set(sessionEndsKey(tenant), String(next))
    saw(tenant, next)
    await tell(tenant)
    return epochOf(next)
  }

  async function endEpoch(tenant: TenantId): Promise<void> {
    // What its people have connected can be opened by nobody any more. Only here: a store that has lost the end of
    // sessions costs people their sessions, and not their accounts.
    await store.delete(vaultKeyKey(tenant))
    await store.delete(grantIndexKey(tenant))
    await store.delete(grantEndsKey(tenant))
    await store.delete(firstIssuersKey(tenant))
    saw(tenant, await store.count(sessionEndsKey(tenant), perEpoch, foreverMs))
    leaving.delete(tenant)
    gone.add(tenant)
    await tell(tenant)
  }

  /** Never rejects: what could not be done is done before the tenant is used, or when the store is back. */
  async function settle(): Promise<void> {
    try {
      const known = new Set((await store.entries(tenantsKey)).map(tenantId))
      // Removed while no gateway ran. Later, what is not known here may have just been made at another process.
      if (isFirst && isWhole) {
        for (const tenant of known) if (!configured.has(tenant) && !gone.has(tenant)) leaving.add(tenant)
        isFirst = false
      }
      for (const tenant of leaving) await endEpoch(tenant)
      const added = [...configured].filter((tenant) => !known.has(tenant))
      await Promise.all(
        added.map((tenant) => store.append(tenantsKey, tenant, { ttlMs: foreverMs, keep: tenantsKept }))
      )
      // A loss can be told only by what was read before it.
      await Promise.all([...configured].map(current))
    } catch (err) {
      log.debug({ err }, 'the store is away; the sessions of removed tenants end when it is back')
    }
  }
  store.onLost(() => void settle())

  return {
    current,
    /** Whether no later epoch of the tenant is known here. */
    isCurrent: (tenant: TenantId, epoch: number): boolean => epoch >= epochOf(seen(tenant)),
    /** The tenants of the configuration now. Sessions of those that it has no more end, also where no gateway ran. */
    configure(snapshot: Pick<SessionSettings, 'tenants' | 'isWhole'>): Promise<void> {
      const next = new Set(snapshot.tenants.keys())
      isWhole = snapshot.isWhole !== false
      for (const tenant of configured) if (!next.has(tenant)) leaving.add(tenant)
      for (const tenant of next) gone.delete(tenant)
      configured = next
      return settle()
    },
    /**
     * To be called after the session is deleted: a dump in between may then lose the count, but never the end alone.
     * @throws GatewayError unavailable
     */
    async countEnd(tenant: TenantId): Promise<number> {
      const ends = await store.count(sessionEndsKey(tenant), 1, foreverMs)
      saw(tenant, ends)
      return ends
    },
    /** @param text what another process counted */
    heard(tenant: TenantId, text: string): void {
      const ends = endsOf(text)
      if (ends !== undefined && configured.has(tenant)) saw(tenant, ends)
    }
  }
}

const epochOf = (ends: number): number => Math.floor(ends / perEpoch)

function endsOf(text: string): number | undefined {
  const ends = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  return ends <= maxEnds ? ends : undefined
}
