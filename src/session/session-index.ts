// The sessions of a tenant, for whoever runs the gateway: the keys of those opened last, in the store, so that every
// process lists those of all. What names a session here opens none.

import { loggedSessionChars } from '../observe/call-text.ts'
import { hash } from 'node:crypto'
import type { Resources } from '../config/snapshot.ts'
import type { TenantId } from '../protocol/messages.ts'
import { sessionsListed, tenantSessionsKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { decodeSessionRecord, type SessionRecord } from './session-record.ts'

export interface SessionLimits {
  readonly sessionIdleMs: number
  readonly sessionMaxMs: number
  readonly sessionsPerPrincipal: number
}

/** Of a session of that age, in milliseconds. */
export const timeLeft = ({ sessionIdleMs, sessionMaxMs }: SessionLimits, ageMs: number): number =>
  Math.min(sessionIdleMs, sessionMaxMs - ageMs)

export interface SessionSettings {
  readonly limits: SessionLimits
  readonly tenants: ReadonlyMap<TenantId, { readonly resources?: Pick<Resources, 'sessions'> | undefined }>
  /** false: there may be more of them, which are not known yet. */
  readonly isWhole?: boolean
  /** undefined: nobody asks for the sessions of a tenant. */
  readonly admin?: unknown
}

interface ListedSession {
  readonly key: string
  readonly record: SessionRecord
}

/** Records that are read at once. */
const readAtOnce = 50
const handleLength = 22

/**
 * @returns for people, because the key tells where the record stands: what the log calls the session, and as much of a
 * digest as makes it one among all
 */
export const sessionHandle = (key: string): string =>
  (key.slice(-loggedSessionChars) + hash('sha256', key, 'base64url')).slice(0, handleLength)

/** @param epochOf sessions of an earlier epoch have ended */
export function createSessionIndex(
  { store, clock, snapshot }: { store: Store; clock: { now(): number }; snapshot: () => SessionSettings },
  epochOf: (tenant: TenantId) => Promise<number>
) {
  async function read(tenant: TenantId, keys: readonly string[]): Promise<ListedSession[]> {
    const epoch = await epochOf(tenant)
    const { sessionIdleMs, sessionMaxMs } = snapshot().limits
    const texts = await Promise.all(keys.map((key) => store.get(key)))
    const now = clock.now()
    return texts.flatMap((text, at) => {
      const record = text === undefined ? undefined : decodeSessionRecord(text)
      const isOpen =
        record?.owner.tenant === tenant &&
        record.epoch === epoch &&
        now - record.touchedAt <= sessionIdleMs &&
        now - record.openedAt <= sessionMaxMs
      return isOpen ? { key: keys[at] ?? '', record } : []
    })
  }

  const keysOf = async (tenant: TenantId): Promise<string[]> => [
    ...new Set((await store.entries(tenantSessionsKey(tenant))).toReversed())
  ]

  return {
    /** As it stands in the store, also of a tenant that is gone. @throws GatewayError unavailable */
    async recordOf(key: string): Promise<SessionRecord | undefined> {
      const text = await store.get(key)
      return text === undefined ? undefined : decodeSessionRecord(text)
    },

    /** The session was opened. @throws GatewayError unavailable */
    async add(tenant: TenantId, key: string): Promise<void> {
      const { admin, limits } = snapshot()
      if (admin === undefined) return
      await store.append(tenantSessionsKey(tenant), key, { ttlMs: limits.sessionMaxMs, keep: sessionsListed })
    },

    /**
     * Open sessions, the newest first.
     * @param max of the answer
     * @param after the handle of the last one that is known already
     * @returns undefined where `after` is none of this tenant. @throws GatewayError unavailable
     */
    async list(tenant: TenantId, max: number, after?: string): Promise<ListedSession[] | undefined> {
      const keys = await keysOf(tenant)
      const from = after === undefined ? 0 : keys.findIndex((key) => sessionHandle(key) === after) + 1
      if (after !== undefined && from === 0) return undefined
      const found: ListedSession[] = []
      for (let at = from; at < keys.length && found.length < max; at += readAtOnce)
        found.push(...(await read(tenant, keys.slice(at, at + readAtOnce))))
      return found.slice(0, max)
    },

    /** @returns the open session of the tenant with this handle. @throws GatewayError unavailable */
    async find(tenant: TenantId, handle: string): Promise<ListedSession | undefined> {
      const key = (await keysOf(tenant)).find((each) => sessionHandle(each) === handle)
      return key === undefined ? undefined : (await read(tenant, [key]))[0]
    }
  }
}
