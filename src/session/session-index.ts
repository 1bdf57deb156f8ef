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
  /** What fails now, and was told. */
  const failing = new Set<string>()

  /** No caller is refused because a list for administrators cannot be kept. Never rejects. */
  async function kept(what: string, change: Promise<unknown>): Promise<void> {
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

  async function open(tenant: TenantId, members: readonly string[]): Promise<ListedSession[]> {
    const epoch = await epochOf(tenant)
    const { sessionIdleMs, sessionMaxMs } = snapshot().limits
    const texts = await Promise.all(members.map((member) => store.get(keyIn(member))))
    const now = clock.now()
    return texts.flatMap((text, at) => {
      const record = text === undefined ? undefined : decodeSessionRecord(text)
      const isOpen =
        record?.owner.tenant === tenant &&
        record.epoch === epoch &&
        now - record.touchedAt <= sessionIdleMs &&
        now - record.openedAt <= sessionMaxMs
      return isOpen ? { key: keyIn(members[at] ?? ''), record } : []
    })
  }

  /** Open sessions, the newest first, a few at a time. @throws GatewayError unavailable */
  async function* pages(tenant: TenantId, after?: string): AsyncGenerator<readonly ListedSession[], void> {
    let before = after
    for (;;) {
      const members = await store.members(openSessionsKey(tenant), {
        max: readAtOnce,
        ...(before !== undefined && { before })
      })
      if (members.length > 0) yield await open(tenant, members)
      if (members.length < readAtOnce) return
      before = members.at(-1)
      await nextTurn()
    }
  }

  /** As many as there are tenants: how far this process is with its look at all members, for those that are over. */
  const sweeps = new Map<TenantId, { additions: number; before?: string | undefined }>()

  async function sweep(tenant: TenantId): Promise<void> {
    const state = sweeps.get(tenant) ?? { additions: 0 }
    sweeps.set(tenant, state)
    if (++state.additions % additionsPerSweep !== 0) return
    const { before } = state
    const members = await store.members(openSessionsKey(tenant), {
      max: readAtOnce,
      ...(before !== undefined && { before })
    })
    state.before = members.length < readAtOnce ? undefined : members.at(-1)
    const still = new Set((await open(tenant, members)).map((each) => each.key))
    const over = members.filter((member) => !still.has(keyIn(member)))
    await Promise.all(over.map((member) => store.removeMember(openSessionsKey(tenant), member)))
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
      await kept('what is over', sweep(tenant))
    },

    /** The session has ended. Never rejects. */
    async remove(session: ListedSession): Promise<void> {
      if (snapshot().admin === undefined) return
      await kept('removals', store.removeMember(openSessionsKey(session.record.owner.tenant), memberOf(session)))
    },

    pages,

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
      for await (const page of pages(tenant)) {
        const found = page.find(({ key }) => sessionHandle(key) === handle)
        if (found !== undefined) return found
      }
      return undefined
    }
  }
}
