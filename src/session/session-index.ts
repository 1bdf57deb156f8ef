// The sessions of a tenant, for whoever runs the gateway: their keys in the store, by the time at which they were
// opened, so that every process lists those of all. What names a session here opens none.

import { loggedSessionChars } from '../observe/call-text.ts'
import type { Log } from '../observe/log.ts'
import { hash } from 'node:crypto'
import type { Resources } from '../config/snapshot.ts'
import type { TenantId } from '../protocol/messages.ts'
import { openSessionsKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { nextTurn } from '../time/turns.ts'
import { decodeSessionRecord, type SessionRecord } from './session-record.ts'

export interface SessionLimits {
  readonly sessionIdleMs: number
  readonly sessionMaxMs: number
  readonly sessionsPerPrincipal: number
}

/** Returns the time that a session of that age has left, in milliseconds. */
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
/** Members that are read at once where their records are not: some 120 KiB. */
const membersAtOnce = 1_000
const handleLength = 22
/** The length of a time in base 36: enough until the year 5188. */
const timeLength = 9
/** What idles out leaves its key: each so many additions, `readAtOnce` others are looked at, and what is over goes. */
const additionsPerSweep = 25

/**
 * @returns for people, because the key tells where the record stands: what the log calls the session, and as much of a
 * digest as makes it one among all
 */
export const sessionHandle = (key: string): string =>
  (key.slice(-loggedSessionChars) + hash('sha256', key, 'base64url')).slice(0, handleLength)

const timeText = (at: number): string => Math.max(0, Math.floor(at)).toString(36).padStart(timeLength, '0')

/** Sorts by the time at which the session was opened. */
const memberOf = ({ key, record }: Pick<ListedSession, 'key' | 'record'>): string =>
  `${timeText(record.openedAt)}.${sessionHandle(key)} ${key}`

const keyIn = (member: string): string => member.slice(member.indexOf(' ') + 1)

/** Returns the place of a session in the list, also once it has ended. */
export const sessionCursor = (session: ListedSession): string => memberOf(session).split(' ', 1)[0] ?? ''

/** Members, those of the newest sessions first. @throws GatewayError unavailable */
async function* membersOf(
  store: Store,
  tenant: TenantId,
  max: number,
  after?: string
): AsyncGenerator<readonly string[], void> {
  let before = after
  for (;;) {
    const found = await store.members(openSessionsKey(tenant), { max, ...(before !== undefined && { before }) })
    if (found.length > 0) yield found
    if (found.length < max) return
    before = found.at(-1)
    await nextTurn()
  }
}

/** No caller is refused because a list for administrators cannot be kept: what fails is told once, until it works. */
function createWarnings(log: Log) {
  const failing = new Set<string>()
  /** Never rejects. */
  return async (what: string, change: Promise<unknown>): Promise<void> => {
    try {
      await change
      failing.delete(what)
    } catch (err) {
      if (failing.has(what)) return
      failing.add(what)
      log.warn(
        { err },
        `the list of open sessions, for administrators, cannot be kept (${what}); sessions go on. Does the user of ` +
          'Redis have all commands that docs/storage.md lists?'
      )
    }
  }
}

interface IndexOptions {
  readonly store: Store
  readonly clock: { now(): number }
  readonly snapshot: () => SessionSettings
  readonly log: Log
}

/** @param epochOf sessions of an earlier epoch have ended */
export function createSessionIndex(
  { store, clock, snapshot, log }: IndexOptions,
  epochOf: (tenant: TenantId) => Promise<number>
) {
  const kept = createWarnings(log)
  /** @returns the sessions that are open, and the members of the list that stand for none any more */
  async function judged(tenant: TenantId, members: readonly string[]) {
    const epoch = await epochOf(tenant)
    const { sessionIdleMs, sessionMaxMs } = snapshot().limits
    const texts = await Promise.all(members.map((member) => store.get(keyIn(member))))
    const now = clock.now()
    const open: ListedSession[] = []
    const over: string[] = []
    for (const [at, member] of members.entries()) {
      const text = texts[at]
      const record = text === undefined ? undefined : decodeSessionRecord(text)
      const isOver =
        record?.owner.tenant !== tenant ||
        record.epoch < epoch ||
        now - record.touchedAt > sessionIdleMs ||
        now - record.openedAt > sessionMaxMs
      if (isOver) over.push(member)
      // Of a later epoch: the tenant came back just now.
      else if (record.epoch === epoch) open.push({ key: keyIn(member), record })
    }
    return { open, over }
  }

  async function drop(tenant: TenantId, members: readonly string[]): Promise<void> {
    await Promise.all(members.map((member) => store.removeMember(openSessionsKey(tenant), member)))
  }

  /** Open sessions, the newest first, a few at a time; what is found over goes. @throws GatewayError unavailable */
  async function* pages(tenant: TenantId, after?: string): AsyncGenerator<readonly ListedSession[], void> {
    for await (const found of membersOf(store, tenant, readAtOnce, after)) {
      const { open, over } = await judged(tenant, found)
      void kept('what is over', drop(tenant, over))
      yield open
    }
  }

  interface Sweep {
    additions: number
    /** How far this process is with its look at all members, for those that are over. */
    before?: string | undefined
    isRunning: boolean
  }
  /** As many as there are tenants. */
  const sweeps = new Map<TenantId, Sweep>()

  function sweepOf(tenant: TenantId): Sweep {
    const known = sweeps.get(tenant) ?? { additions: 0, isRunning: false }
    sweeps.set(tenant, known)
    return known
  }

  /** Looks at the next few members. */
  async function sweep(tenant: TenantId): Promise<void> {
    const state = sweepOf(tenant)
    if (state.isRunning) return
    state.isRunning = true
    try {
      const next = await membersOf(store, tenant, readAtOnce, state.before).next()
      const found = next.done === true ? [] : next.value
      state.before = found.length < readAtOnce ? undefined : found.at(-1)
      await drop(tenant, (await judged(tenant, found)).over)
    } finally {
      state.isRunning = false
    }
  }

  return {
    /** Reads the record as it stands in the store, also of a tenant that is gone. @throws GatewayError unavailable */
    async recordOf(key: string): Promise<SessionRecord | undefined> {
      const text = await store.get(key)
      return text === undefined ? undefined : decodeSessionRecord(text)
    },

    /** The session was opened, or is in use. Never rejects. */
    async add(session: ListedSession): Promise<void> {
      const { admin, limits } = snapshot()
      if (admin === undefined) return
      const { tenant } = session.record.owner
      const from = timeText(clock.now() - limits.sessionMaxMs)
      const options = { ttlMs: limits.sessionMaxMs, from }
      await kept('additions', store.addMember(openSessionsKey(tenant), memberOf(session), options))
      // Nobody waits for it: it is not the work of this caller.
      if (++sweepOf(tenant).additions % additionsPerSweep === 0) void kept('what is over', sweep(tenant))
    },

    /** The session has ended. Never rejects. */
    async remove(session: ListedSession): Promise<void> {
      if (snapshot().admin === undefined) return
      await kept('removals', store.removeMember(openSessionsKey(session.record.owner.tenant), memberOf(session)))
    },

    pages,

    /**
     * The number of open sessions, by their members: of more than `readAtOnce` some may have idled out a while ago.
     * @throws GatewayError unavailable
     */
    async count(tenant: TenantId, max: number): Promise<number> {
      await kept('what is over', sweep(tenant))
      let count = 0
      for await (const found of membersOf(store, tenant, Math.min(max, membersAtOnce))) {
        count += found.length
        if (count >= max) return max
      }
      return count
    },

    /**
     * Open sessions, the newest first.
     * @param max of the answer
     * @param after the cursor of the last one that is known already
     * @throws GatewayError unavailable
     */
    async list(tenant: TenantId, max: number, after?: string): Promise<ListedSession[]> {
      const found: ListedSession[] = []
      for await (const page of pages(tenant, after)) {
        found.push(...page)
        if (found.length >= max) break
      }
      return found.slice(0, max)
    },

    /** @returns the open session of the tenant with this handle. @throws GatewayError unavailable */
    async find(tenant: TenantId, handle: string): Promise<ListedSession | undefined> {
      for await (const found of membersOf(store, tenant, membersAtOnce)) {
        const member = found.find((each) => each.startsWith(`.${handle} `, timeLength))
        if (member !== undefined) return (await judged(tenant, [member])).open[0]
      }
      return undefined
    }
  }
}
