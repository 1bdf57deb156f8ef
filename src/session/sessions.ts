// Legacy sessions: the record behind an Mcp-Session-Id, bound to the caller that opened it, checked on every use. It
// never authenticates anybody. A local copy serves for a while, and only while messages of the store arrive.

import { LRUCache } from 'lru-cache'
import {
  type ClientCapabilities,
  type EndpointName,
  GatewayError,
  type Implementation,
  type Revision,
  sessionId,
  tenantId,
  type TenantId
} from '../protocol/messages.ts'
import type { LogLevel } from '../protocol/seams.ts'
import type { Log } from '../observe/log.ts'
import { sessionKeys, sessionsChannel } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { type Clock, every } from '../time/clock.ts'
import { createSessionEpochs } from './session-epochs.ts'
import { createSessionSlots } from './session-limit.ts'
import { decodeSessionRecord } from './session-record.ts'

/** Who opened a session. No part of the token: a refreshed token keeps its session. */
export interface Owner {
  readonly tenant: TenantId
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
}

export interface SessionRecord {
  readonly owner: Owner
  readonly endpoint: EndpointName
  /** Of its tenant: a session ends with it, see session-epochs.ts. */
  readonly epoch: number
  /** Its slot in the limit of sessions of its owner. */
  readonly seat: number
  readonly revision: Revision
  readonly clientInfo: Implementation | undefined
  readonly capabilities: ClientCapabilities
  readonly logLevel: LogLevel | undefined
  /** Epoch ms. */
  readonly openedAt: number
  readonly touchedAt: number
}

export type NegotiatedClient = Pick<SessionRecord, 'revision' | 'clientInfo' | 'capabilities'>

/** `key` (a digest) names it inside the gateway; the id is a secret of its client. */
export interface Session {
  readonly key: string
  readonly record: SessionRecord
}

export interface SessionLimits {
  readonly sessionIdleMs: number
  readonly sessionMaxMs: number
  readonly sessionsPerPrincipal: number
}

// Where other processes write to the store: long enough to keep it off the hot path, short enough that a lost message
// does no harm for long.
const copyMs = 2_000
// Where none does, no message is lost. As long as a session is used without a write.
const soleCopyMs = 60_000
const maxCopies = 20_000

export type Sessions = Awaited<ReturnType<typeof createSessions>>

export async function createSessions({
  store,
  clock,
  randomBytes,
  snapshot,
  log
}: {
  readonly store: Store
  /** The time of day. */
  readonly clock: Clock
  readonly randomBytes: (size: number) => Buffer
  readonly snapshot: () => { readonly limits: SessionLimits; readonly tenants: ReadonlyMap<TenantId, unknown> }
  readonly log: Log
}) {
  const slots = createSessionSlots(store, clock, randomBytes)
  const epochs = createSessionEpochs(store, log)
  const copies = createCopies(store.shared ? copyMs : soleCopyMs, clock)
  const sweep = every(clock, 30_000, () => copies.purgeStale())
  const keyOf = createKeyMaker()
  const listeners: Array<(key: string) => void> = []
  // Grows with every message, end and loss: what was read or written before may be out of date, and is not kept.
  let generation = 0

  function ended(key: string): void {
    generation++
    copies.delete(key)
    for (const listener of listeners) listener(key)
  }
  function forgetCopies(): void {
    generation++
    copies.clear()
  }

  const unsubscribe = await store.subscribe(sessionsChannel, (message) => {
    generation++
    // `=key`: the record changed.
    if (message.startsWith('=')) return void copies.delete(message.slice(1))
    const [ends = '', tenant = '', key] = message.split(' ')
    epochs.heard(tenantId(tenant), ends)
    if (key === undefined) copies.clear()
    else ended(key)
  })
  store.onLost(forgetCopies)
  await epochs.configure(snapshot().tenants.keys())

  const copy = (key: string, record: SessionRecord): void => {
    if (store.live && epochs.isCurrent(record.owner.tenant, record.epoch)) copies.set(key, record)
  }

  async function write(key: string, record: SessionRecord): Promise<Session | undefined> {
    const ttlMs = timeLeft(snapshot().limits, clock.now() - record.openedAt)
    if (ttlMs <= 0) return undefined
    const before = generation
    // Only where it still exists: a session that ended meanwhile must not come back to life.
    if (!(await store.set(key, JSON.stringify(record), { ttlMs, when: 'present' }))) return undefined
    await slots.prolong(record, key, ttlMs)
    if (generation === before) copy(key, record)
    return { key, record }
  }

  async function read(key: string, tenant: TenantId): Promise<SessionRecord | undefined> {
    const before = generation
    // Asked in this order, in one trip: a store that came back without the end of a session says so first.
    const [epoch, text] = await Promise.all([epochs.current(tenant), store.get(key)])
    const record = text === undefined ? undefined : decodeSessionRecord(text)
    if (text !== undefined && record === undefined)
      log.warn({ key }, 'a session in the store is damaged and counts as absent; who else can write to the store?')
    if (record?.epoch !== epoch) copies.delete(key)
    else if (generation === before) copy(key, record)
    return record?.epoch === epoch ? record : undefined
  }

  return {
    /** @throws GatewayError too_many, unavailable */
    async open(owner: Owner, endpoint: EndpointName, client: NegotiatedClient) {
      const { sessionIdleMs, sessionMaxMs, sessionsPerPrincipal } = snapshot().limits
      const ttlMs = Math.min(sessionIdleMs, sessionMaxMs)
      const id = sessionId(randomBytes(32).toString('base64url'))
      const key = keyOf(owner.tenant, endpoint, id)
      const epoch = await epochs.current(owner.tenant)
      const seat = await slots.take({ owner, epoch }, key, sessionsPerPrincipal, ttlMs)
      if (seat === undefined) throw tooManySessions(sessionsPerPrincipal, sessionIdleMs)
      const times = { openedAt: clock.now(), touchedAt: clock.now() }
      const record: SessionRecord = { owner, endpoint, epoch, seat, ...client, logLevel: undefined, ...times }
      await store.set(key, JSON.stringify(record), { ttlMs, when: 'absent' })
      copy(key, record)
      return { id, session: { key, record } }
    },

    /**
     * @returns undefined for an unknown, ended or foreign session: the caller cannot tell which
     * @throws GatewayError unavailable
     */
    async load(id: string, owner: Owner, endpoint: EndpointName): Promise<Session | undefined> {
      const key = keyOf(owner.tenant, endpoint, id)
      const record = (store.live ? copies.get(key) : undefined) ?? (await read(key, owner.tenant))
      if (record === undefined || !sameOwner(record.owner, owner) || record.endpoint !== endpoint) return undefined
      const now = clock.now()
      const { sessionIdleMs, sessionMaxMs } = snapshot().limits
      if (now - record.touchedAt > sessionIdleMs || now - record.openedAt > sessionMaxMs) {
        await store.delete(key)
        ended(key)
        await slots.release(record, key)
        return undefined
      }
      if (now - record.touchedAt <= Math.min(60_000, sessionIdleMs / 10)) return { key, record }
      return await write(key, { ...record, touchedAt: now })
    },

    /**
     * For a session that was opened before its client had sent `initialize`.
     * @returns undefined where it has ended. @throws GatewayError unavailable
     */
    initialize: ({ key, record }: Session, client: NegotiatedClient) =>
      write(key, { ...record, ...client, touchedAt: clock.now() }),

    async setLogLevel({ key, record }: Session, logLevel: LogLevel): Promise<void> {
      await write(key, { ...record, logLevel, touchedAt: clock.now() })
      await store.publish(sessionsChannel, `=${key}`)
    },

    /** Ends it at every process, and for good: see session-epochs.ts. @throws GatewayError unavailable */
    async end({ key, record }: Session): Promise<void> {
      const { tenant } = record.owner
      // Even where the store fails, it is not served from the copy any more.
      copies.delete(key)
      await store.delete(key)
      ended(key)
      await store.publish(sessionsChannel, `${await epochs.countEnd(tenant)} ${tenant} ${key}`)
      await slots.release(record, key)
    },

    /** After each reload: sessions of tenants that the configuration has no more end. Never rejects. */
    endRemovedTenants(): Promise<void> {
      forgetCopies()
      return epochs.configure(snapshot().tenants.keys())
    },

    /** Called with the key of every session that ended, here or at another process. */
    onEnded(listener: (key: string) => void): void {
      listeners.push(listener)
    },

    async close(): Promise<void> {
      sweep.close()
      await unsubscribe()
      copies.clear()
    }
  }
}

/** The cache does not serve expired copies, but keeps them: they have to be swept. */
const createCopies = (ttl: number, clock: Clock) =>
  new LRUCache<string, SessionRecord>({ max: maxCopies, ttl, ttlResolution: 0, perf: clock })

const timeLeft = ({ sessionIdleMs, sessionMaxMs }: SessionLimits, ageMs: number): number =>
  Math.min(sessionIdleMs, sessionMaxMs - ageMs)

export const sameOwner = (a: Owner, b: Owner): boolean =>
  a.tenant === b.tenant && a.issuer === b.issuer && a.subject === b.subject && a.clientId === b.clientId

/** As many makers are kept as there are endpoints, since callers name only configured ones. No name has a slash. */
function createKeyMaker() {
  const makers = new Map<string, (id: string) => string>()
  return (tenant: TenantId, endpoint: EndpointName, id: string): string => {
    const name = `${tenant}/${endpoint}`
    const keyFor = makers.get(name) ?? sessionKeys(tenant, endpoint)
    makers.set(name, keyFor)
    return keyFor(id)
  }
}

function tooManySessions(limit: number, idleMs: number): GatewayError {
  const message =
    `This caller has ${limit} sessions, which is the limit ` +
    '(limits.sessionsPerPrincipal). End sessions with DELETE, or retry later.'
  const seconds = Math.ceil(Math.min(idleMs, 60_000) / 1000)
  return new GatewayError('too_many', message, { headers: { 'Retry-After': String(seconds) } })
}
