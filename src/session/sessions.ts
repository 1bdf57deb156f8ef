// Legacy sessions: the record behind an Mcp-Session-Id, bound to the caller that opened it, checked on every use. It
// never authenticates anybody. A local copy serves for a while, and only while messages of the store arrive.

import { LRUCache } from 'lru-cache'
import { type EndpointName, type SessionId, sessionId, tenantId, type TenantId } from '../protocol/messages.ts'
import type { Log } from '../observe/log.ts'
import { sessionsChannel } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { type Clock, every } from '../time/clock.ts'
import { createSessionEpochs } from './session-epochs.ts'
import { createSessionIndex, sessionHandle, type SessionSettings, timeLeft } from './session-index.ts'
import { createSessionKeepers } from './elsewhere/session-keepers.ts'
import { createSessionSlots } from './session-limit.ts'
import {
  createKeyMaker,
  decodeSessionRecord,
  type NegotiatedClient,
  type Owner,
  sameOwner,
  type SessionRecord
} from './session-record.ts'
import { createUnfinished } from './unfinished.ts'

/** `key` (a digest) names it inside the gateway; the id is a secret of its client. */
export interface Session {
  readonly key: string
  readonly record: SessionRecord
}

// Where other processes write to the store: long enough to keep it off the hot path, short enough that a lost message
// does no harm for long.
const copyMs = 2_000
// Where none does, no message is lost. As long as a session is used without a write.
const soleCopyMs = 60_000
const maxCopies = 20_000

type Found = Session | undefined

export type Sessions = Awaited<ReturnType<typeof createSessions>>

interface SessionsOptions {
  readonly store: Store
  /** This process: it is the home of the sessions that it opens. */
  readonly node: string
  /** The time of day. */
  readonly clock: Clock
  readonly randomBytes: (size: number) => Buffer
  readonly snapshot: () => SessionSettings
  readonly log: Log
}

export async function createSessions(options: SessionsOptions) {
  const { store, clock, randomBytes, snapshot, node, log } = options
  const unfinished = createUnfinished(clock, log)
  const slots = createSessionSlots(store, clock, randomBytes, unfinished)
  const epochs = createSessionEpochs(store, log)
  const index = createSessionIndex(options, epochs.current)
  const { copies, copy, write, find, outdate } = createSessionRecords(options, slots, epochs, index, ended)
  const sweep = every(clock, 30_000, () => copies.purgeStale())
  const keyOf = createKeyMaker()
  const listeners: Array<(key: string, ended?: Session) => void> = []
  function ended(key: string, session?: Session): void {
    outdate()
    copies.delete(key)
    for (const listener of listeners) listener(key, session)
  }
  function forgetCopies(): void {
    outdate()
    copies.clear()
  }

  const unsubscribe = await store.subscribe(sessionsChannel, (message) => {
    outdate()
    // `=key`: the record changed.
    if (message.startsWith('=')) return void copies.delete(message.slice(1))
    const [ends = '', tenant = '', key] = message.split(' ')
    epochs.heard(tenantId(tenant), ends)
    if (key === undefined) copies.clear()
    else ended(key)
  })
  store.onLost(forgetCopies)
  await epochs.configure(snapshot())

  /** Drawn again where what names it for people begins with a dash: a command line would take that for an option. */
  function newId(owner: Owner, endpoint: EndpointName): { id: SessionId; key: string } {
    const id = sessionId(randomBytes(32).toString('base64url'))
    const key = keyOf(owner.tenant, endpoint, id)
    return sessionHandle(key).startsWith('-') ? newId(owner, endpoint) : { id, key }
  }

  async function end(session: Session): Promise<void> {
    const { key, record } = session
    // Even where the store fails, it is not served from the copy any more.
    copies.delete(key)
    const isFirst = await store.delete(key)
    ended(key, isFirst ? session : undefined)
    await slots.release(record, key)
    await store.publish(sessionsChannel, `${await epochs.countEnd(record.owner.tenant)} ${record.owner.tenant} ${key}`)
    await index.remove(session)
  }

  return {
    /** @throws GatewayError too_many, unavailable */
    async open(owner: Owner, endpoint: EndpointName, client: NegotiatedClient) {
      const { limits, tenants } = snapshot()
      const { sessionIdleMs, sessionMaxMs, sessionsPerPrincipal: perPrincipal } = limits
      const ttlMs = Math.min(sessionIdleMs, sessionMaxMs)
      const { id, key } = newId(owner, endpoint)
      const epoch = await epochs.current(owner.tenant)
      const perTenant = tenants.get(owner.tenant)?.resources?.sessions
      const seats = await slots.take({ owner, epoch }, key, { perPrincipal, perTenant, idleMs: sessionIdleMs }, ttlMs)
      const place = { owner, endpoint, epoch, home: node, firstHome: node, openedAt: clock.now() }
      const record: SessionRecord = { ...place, touchedAt: place.openedAt, ...seats, ...client, logLevel: undefined }
      const session = { key, record }
      const taken = store.set(key, JSON.stringify(record), { ttlMs, when: 'absent' })
      await unfinished.orLater(taken, key, () => end(session))
      await index.add(session)
      copy(key, record)
      return { id, session }
    },

    find,
    index,
    keepers: createSessionKeepers(store, node, randomBytes),
    /** Returns the epoch of what is kept for a tenant beside sessions. @throws GatewayError unavailable */
    epochOf: epochs.current,
    isCurrentEpoch: epochs.isCurrent,
    /** Finds a session by the id that came on `connection`; a promise where the store is asked. */
    load: (id: string, owner: Owner, endpoint: EndpointName, connection?: object): ReturnType<typeof find> =>
      find(keyOf(owner.tenant, endpoint, id, connection), owner, endpoint),

    /**
     * For a session that was opened before its client had sent `initialize`.
     * @returns undefined where it has ended. @throws GatewayError unavailable
     */
    initialize: ({ key, record }: Session, client: NegotiatedClient) =>
      write(key, { ...record, ...client, touchedAt: clock.now() }),

    /** @returns undefined where it has ended. @throws GatewayError unavailable */
    async update({ key, record }: Session, changes: Partial<Pick<SessionRecord, 'logLevel' | 'home'>>) {
      const updated = await write(key, { ...record, ...changes, touchedAt: clock.now() })
      await store.publish(sessionsChannel, `=${key}`)
      return updated
    },

    /** Ends it at every process, and for good (session-epochs.ts). @throws GatewayError unavailable: it ends later */
    end: (session: Session) => unfinished.orLater(end(session), session.key, () => end(session)),

    /** Ends the sessions of removed tenants; to be called after each reload. Never rejects. */
    endRemovedTenants(): Promise<void> {
      forgetCopies()
      return epochs.configure(snapshot())
    },

    /** @param listener called with the key of each that ended, at any process; at the one that ended it with all */
    onEnded(listener: (key: string, session?: Session) => void): void {
      listeners.push(listener)
    },

    async close(): Promise<void> {
      for (const each of [sweep, unfinished]) each.close()
      await unsubscribe()
      copies.clear()
    }
  }
}

/**
 * The records in the store, and copies of those that this process has read or written.
 * @param onExpired called when the time of a session is over; with the session at the first process that notices
 */
function createSessionRecords(
  { store, clock, snapshot, log }: SessionsOptions,
  slots: ReturnType<typeof createSessionSlots>,
  epochs: ReturnType<typeof createSessionEpochs>,
  index: Pick<ReturnType<typeof createSessionIndex>, 'add' | 'remove'>,
  onExpired: (key: string, session?: Session) => void
) {
  const ttl = store.shared ? copyMs : soleCopyMs
  // It does not serve expired copies, but keeps them: they have to be swept.
  const copies = new LRUCache<string, SessionRecord>({ max: maxCopies, ttl, ttlResolution: 0, perf: clock })
  // Grows with every message, end and loss: what was read or written before may be out of date, and is not kept.
  let generation = 0

  const copy = (key: string, record: SessionRecord): void => {
    if (store.live && epochs.isCurrent(record.owner.tenant, record.epoch)) copies.set(key, record)
  }

  async function write(key: string, record: SessionRecord): Promise<Session | undefined> {
    const ttlMs = timeLeft(snapshot().limits, clock.now() - record.openedAt)
    if (ttlMs <= 0) return undefined
    const before = generation
    // Only where it still exists: a session that ended meanwhile must not come back to life.
    if (!(await store.set(key, JSON.stringify(record), { ttlMs, when: 'present' }))) return undefined
    // Opened before anybody asked for the list, it is in it from now on.
    await Promise.all([slots.prolong(record, key, ttlMs), index.add({ key, record })])
    if (generation === before) copy(key, record)
    return { key, record }
  }

  async function read(key: string, tenant: TenantId): Promise<SessionRecord | undefined> {
    const before = generation
    // Asked in this order, in one trip: a store that came back without the end of a session says so first.
    const [epoch, text] = await Promise.all([epochs.current(tenant), store.get(key)])
    const record = text === undefined ? undefined : decodeSessionRecord(text)
    if (text !== undefined && record === undefined)
      log.warn(
        { storeKey: key },
        'a session in the store is damaged and counts as absent; who else can write to the store?'
      )
    if (record?.epoch !== epoch) copies.delete(key)
    else if (generation === before) copy(key, record)
    return record?.epoch === epoch ? record : undefined
  }

  /**
   * @returns undefined for an unknown, ended or foreign session: the caller cannot tell which
   * @throws GatewayError unavailable
   */
  function find(key: string, owner: Owner, endpoint: EndpointName): Found | Promise<Found> {
    const copied = store.live ? copies.get(key) : undefined
    if (copied !== undefined) return checked(key, copied, owner, endpoint)
    return read(key, owner.tenant).then((record) => checked(key, record, owner, endpoint))
  }

  type Read = SessionRecord | undefined
  function checked(key: string, record: Read, owner: Owner, endpoint: EndpointName): Found | Promise<Found> {
    if (record === undefined || !sameOwner(record.owner, owner) || record.endpoint !== endpoint) return undefined
    const now = clock.now()
    const { sessionIdleMs, sessionMaxMs } = snapshot().limits
    if (now - record.touchedAt > sessionIdleMs || now - record.openedAt > sessionMaxMs) return expire(key, record)
    if (now - record.touchedAt <= Math.min(60_000, sessionIdleMs / 10)) return { key, record }
    return write(key, { ...record, touchedAt: now })
  }

  async function expire(key: string, record: SessionRecord): Promise<undefined> {
    const isFirst = await store.delete(key)
    onExpired(key, isFirst ? { key, record } : undefined)
    await slots.release(record, key)
    await index.remove({ key, record })
  }

  return {
    copies,
    copy,
    write,
    find,
    outdate: (): void => void generation++
  }
}
