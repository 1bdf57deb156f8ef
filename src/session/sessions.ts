// Legacy sessions: the record behind an Mcp-Session-Id. Bound to who opened it, checked on every use; it never authenticates anybody.
// Records live in the store. The hot path reads a local copy for at most a few seconds, and only while the store's messages reach us.

import { LRUCache } from 'lru-cache'
import { GatewayError } from '../protocol/errors.ts'
import { sessionId } from '../protocol/ids.ts'
import type { EndpointName, SessionId, TenantId } from '../protocol/ids.ts'
import type { LogLevel } from '../protocol/levels.ts'
import type { ClientCapabilities, Implementation } from '../protocol/messages.ts'
import type { Revision } from '../protocol/revisions.ts'
import { sessionKeys, sessionsChannel } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { createSeats } from './cap.ts'

/** Who a session belongs to: never token bytes, so that a refreshed token keeps its session. */
export interface Owner {
  readonly tenant: TenantId
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
}

export interface SessionRecord {
  readonly owner: Owner
  readonly endpoint: EndpointName
  /** Where it counts for the cap of its owner (cap.ts). */
  readonly seat: number
  readonly revision: Revision
  readonly clientInfo: Implementation | undefined
  readonly capabilities: ClientCapabilities
  readonly logLevel: LogLevel | undefined
  /** Epoch ms. */
  readonly openedAt: number
  readonly touchedAt: number
}

/** What a client says of itself in `initialize`, and what was agreed on. */
export type Hello = Pick<SessionRecord, 'revision' | 'clientInfo' | 'capabilities'>

/** A session as the rest of the gateway sees it. `key` names it inside (a digest); the id itself is a secret of the client. */
export interface Session {
  readonly key: string
  readonly record: SessionRecord
}

export interface SessionLimits {
  readonly sessionIdleMs: number
  readonly sessionMaxMs: number
  readonly sessionsPerPrincipal: number
}

export interface SessionsOptions {
  readonly store: Store
  readonly clock: { now (): number }
  readonly randomBytes: (size: number) => Buffer
  readonly limits: () => SessionLimits
}

export interface Sessions {
  /** @throws GatewayError too_many, unavailable */
  open (owner: Owner, endpoint: EndpointName, hello: Hello): Promise<{ id: SessionId, session: Session }>
  /** @returns undefined for an unknown, ended or foreign session: the caller cannot tell which. @throws GatewayError unavailable */
  load (id: string, owner: Owner, endpoint: EndpointName): Promise<Session | undefined>
  /** For a session that was opened before its client had said anything. @returns undefined where it has ended. @throws GatewayError unavailable */
  introduce (session: Session, hello: Hello): Promise<Session | undefined>
  setLogLevel (session: Session, level: LogLevel): Promise<void>
  /** Ends it everywhere. */
  end (session: Session): Promise<void>
  /** Called with the key of every session that ended, here or at another process. */
  onEnded (listener: (key: string) => void): void
  close (): Promise<void>
}

// Long enough to keep the store off the hot path, short enough that a lost message does no harm for long.
const copyMs = 2_000
const copies = 20_000

export async function createSessions ({ store, clock, randomBytes, limits }: SessionsOptions): Promise<Sessions> {
  const seats = createSeats({ store, clock, randomBytes })
  const local = new LRUCache<string, SessionRecord>({ max: copies, ttl: copyMs, ttlResolution: 0, perf: clock })
  // What has expired is not served, but would be kept.
  const sweep = setInterval(() => local.purgeStale(), 30_000)
  sweep.unref()
  const listeners: Array<(key: string) => void> = []
  // Grows with every message and loss: what was read before may be older than what we were told meanwhile, and is not kept.
  let generation = 0
  const forget = (key: string): void => {
    local.delete(key)
    for (const listener of listeners) listener(key)
  }
  const unsubscribe = await store.subscribe(sessionsChannel, (message) => {
    generation++
    // `=key`: the record changed; `key`: the session ended.
    if (message.startsWith('=')) local.delete(message.slice(1))
    else forget(message)
  })
  store.onLost(() => {
    generation++
    local.clear()
  })

  // As many as there are endpoints: callers name only those that the configuration has.
  const keys = new Map<TenantId, Map<EndpointName, (id: string) => string>>()
  function keyOf (tenant: TenantId, endpoint: EndpointName, id: string): string {
    let ofTenant = keys.get(tenant)
    if (ofTenant === undefined) keys.set(tenant, ofTenant = new Map())
    let keyFor = ofTenant.get(endpoint)
    if (keyFor === undefined) ofTenant.set(endpoint, keyFor = sessionKeys(tenant, endpoint))
    return keyFor(id)
  }
  const ttlOf = (record: SessionRecord, now: number): number =>
    Math.min(limits().sessionIdleMs, record.openedAt + limits().sessionMaxMs - now)
  const keep = (key: string, record: SessionRecord): void => {
    if (store.live) local.set(key, record)
  }

  async function write (key: string, record: SessionRecord): Promise<boolean> {
    const ttlMs = ttlOf(record, clock.now())
    if (ttlMs <= 0) return false
    // Only if it is still there: a session that ended meanwhile must not come back to life.
    if (!await store.set(key, JSON.stringify(record), { ttlMs, when: 'present' })) return false
    await seats.prolong(record.owner, record.seat, key, ttlMs)
    keep(key, record)
    return true
  }

  async function read (key: string): Promise<SessionRecord | undefined> {
    const copy = local.get(key)
    if (copy !== undefined && store.live) return copy
    const before = generation
    const text = await store.get(key)
    const record = text === undefined ? undefined : decode(text)
    if (record === undefined) {
      local.delete(key)
      return undefined
    }
    if (generation === before) keep(key, record)
    return record
  }

  return {
    async open (owner, endpoint, hello) {
      const { sessionIdleMs, sessionMaxMs, sessionsPerPrincipal } = limits()
      const ttlMs = Math.min(sessionIdleMs, sessionMaxMs)
      const id = sessionId(randomBytes(32).toString('base64url'))
      const key = keyOf(owner.tenant, endpoint, id)
      const seat = await seats.take(owner, key, sessionsPerPrincipal, ttlMs)
      if (seat === undefined) {
        throw new GatewayError('too_many', `This caller has ${sessionsPerPrincipal} sessions, which is the limit (limits.sessionsPerPrincipal). End sessions with DELETE, or retry later.`, {
          headers: { 'Retry-After': String(Math.ceil(Math.min(sessionIdleMs, 60_000) / 1000)) }
        })
      }
      const now = clock.now()
      const record: SessionRecord = { owner, endpoint, seat, ...hello, logLevel: undefined, openedAt: now, touchedAt: now }
      await store.set(key, JSON.stringify(record), { ttlMs, when: 'absent' })
      keep(key, record)
      return { id, session: { key, record } }
    },

    async load (id, owner, endpoint) {
      const key = keyOf(owner.tenant, endpoint, id)
      const record = await read(key)
      if (record === undefined || !sameOwner(record.owner, owner) || record.endpoint !== endpoint) return undefined
      const now = clock.now()
      const { sessionIdleMs, sessionMaxMs } = limits()
      if (now - record.touchedAt > sessionIdleMs || now - record.openedAt > sessionMaxMs) {
        await store.delete(key)
        forget(key)
        await seats.leave(owner, record.seat, key)
        return undefined
      }
      // Written at a tenth of the idle time, not on every request.
      if (now - record.touchedAt > Math.min(60_000, sessionIdleMs / 10)) {
        const touched = { ...record, touchedAt: now }
        return await write(key, touched) ? { key, record: touched } : undefined
      }
      return { key, record }
    },

    async introduce ({ key, record }, hello) {
      const introduced = { ...record, ...hello, touchedAt: clock.now() }
      return await write(key, introduced) ? { key, record: introduced } : undefined
    },

    async setLogLevel ({ key, record }, logLevel) {
      await write(key, { ...record, logLevel, touchedAt: clock.now() })
      await store.publish(sessionsChannel, `=${key}`)
    },

    async end ({ key, record: { owner, seat } }) {
      // Whatever becomes of it in the store: a session that was asked to end is not served from the copy any more.
      local.delete(key)
      await store.delete(key)
      forget(key)
      await store.publish(sessionsChannel, key)
      await seats.leave(owner, seat, key)
    },

    onEnded (listener) {
      listeners.push(listener)
    },

    async close () {
      clearInterval(sweep)
      await unsubscribe()
      local.clear()
    }
  }
}

export const sameOwner = (a: Owner, b: Owner): boolean =>
  a.tenant === b.tenant && a.issuer === b.issuer && a.subject === b.subject && a.clientId === b.clientId

/** A value from the store is judged before it is used: half a record is no record. */
function decode (text: string): SessionRecord | undefined {
  let value: SessionRecord | null
  try {
    value = JSON.parse(text) as SessionRecord | null
  } catch {
    return undefined // Not ours: the session counts as absent and the client opens a new one.
  }
  if (value === null) return undefined
  const { owner, endpoint, seat, revision, capabilities, openedAt, touchedAt } = value
  const whole = typeof owner?.tenant === 'string' && typeof owner.subject === 'string' && typeof endpoint === 'string' && Number.isSafeInteger(seat) &&
    typeof revision === 'string' && typeof capabilities === 'object' && capabilities !== null && Number.isFinite(openedAt) && Number.isFinite(touchedAt)
  return whole ? { ...value, logLevel: value.logLevel, clientInfo: value.clientInfo } : undefined
}
