// Connections of this process into sessions at servers over HTTP that another process has: the home of the client's
// session, which lends them for some seconds at a time (lent-sessions.ts). Calls that come here are sent on them, each
// on a POST of its own. Where nothing is lent, or no longer, a call goes to the home as before.

import type { Endpoint, HttpDefinition, UpstreamDefinition } from '../../config/snapshot.ts'
import type { SessionSharing, Upstream } from '../../protocol/seams.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import { every, pause } from '../../time/clock.ts'
import { lentIds } from '../../upstream/rpc/request-ids.ts'
import { scopeOf } from '../call/call.ts'
import {
  borrowedScopeOf,
  type BorrowedSessionsOptions,
  createBorrowedConnections,
  createFollowedHomes,
  type Loan,
  nothingLent
} from './borrowed-connections.ts'
import { lentMs } from './borrowers.ts'
import type { Recall } from './lent-sessions.ts'
import { isBusy } from './overheard.ts'
import type { SessionConnection } from './session-connections.ts'

/** Calls of a session that go to its home before one asks to have the session: most sessions make few. */
const callsAtHome = 2
/** Where the home has lent nothing, or did not answer: an earlier version never does. */
const refusedMs = 30_000
/** Where the home says that it may lend in a moment. */
const soonMs = 1_000
/** Without a call here, until the connection is closed: each takes some 20 KB. */
const unusedMs = 30_000
/** Until it is looked again whether calls in the sessions of a home that stops have ended. */
const lookMs = 50
/** Of the ids: new ones are asked for while there are more calls in flight than a session may have. */
const spareIds = lentIds / 4

/** Ends a loan; one that is still being asked for is discarded when it arrives. */
const end = (loan: Loan, next: Partial<Loan>): void => void Object.assign(loan, next, { until: 0, ends: loan.ends + 1 })

const hasIds = (sharing: SessionSharing | undefined, count: number): boolean => (sharing?.series()?.left ?? 0) > count

export function createBorrowedSessions(options: BorrowedSessionsOptions) {
  const { pool, bus, live, clock, log } = options
  const { question, connect } = createBorrowedConnections(options)
  const loans = new WeakMap<LiveSession, Map<UpstreamDefinition['hash'], Loan>>()
  /** By key of the session: the scopes in which a connection was opened. */
  const scopes = new Map<string, Set<string>>()
  /** With open connections. */
  const open = new Set<Loan>()
  const homes = createFollowedHomes(bus, (home) => void giveBack(home))

  function loanOf(session: LiveSession, definition: HttpDefinition, endpoint: Endpoint): Loan {
    const ofSession = loans.get(session) ?? new Map<string, Loan>()
    loans.set(session, ofSession)
    const known = ofSession.get(definition.hash)
    if (known !== undefined) return Object.assign(known, { endpoint })
    const loan: Loan = { session, definition, endpoint, ...nothingLent(), connections: new Set() }
    ofSession.set(definition.hash, loan)
    return loan
  }

  /** In the background: nobody waits for it. */
  async function borrow(loan: Loan): Promise<void> {
    const { session, definition, ends } = loan
    const askedAt = clock.now()
    const scope = borrowedScopeOf(session, definition)
    Object.assign(loan, { isAsking: true, heldAt: askedAt, dueAt: askedAt + lentMs / 2 })
    // What is asked for may be given back meanwhile, too.
    open.add(loan)
    const isGivenBack = (): boolean => loan.ends !== ends
    let waitMs = refusedMs
    try {
      // Not one that was given up, on which calls may still run.
      const current = pool.use(definition, scope)?.sharing
      const has = hasIds(current, spareIds * 2) ? current?.id() : undefined
      const { lent, same = false, soon = false } = await question(loan, { has })
      if (isGivenBack()) throw new Error('it was given back before it came')
      if (!same) {
        // It may be another session than before: what runs there goes on to its end.
        pool.leave(scope)
        if (soon) waitMs = soonMs
        if (lent === undefined) throw new Error('its home lends nothing')
        if (lent.id === loan.refused) throw new Error('its server does not take calls in it from here')
        loan.connections.add(await connect(loan, lent))
        scopes.set(session.key, (scopes.get(session.key) ?? new Set()).add(scope))
        if (live.get(session.key) !== session) release(session.key)
      }
      if (isGivenBack()) {
        pool.leave(scope)
        throw new Error('it was given back while it was opened')
      }
      loan.until = askedAt + lentMs
      homes.follow(loan.home)
    } catch (err) {
      if (!isGivenBack()) Object.assign(loan, { until: 0, dueAt: askedAt + waitMs })
      const { tenant, name: upstream } = definition
      log.debug({ err, tenant, upstream }, 'calls go to the process that has the session at the upstream')
    } finally {
      loan.isAsking = false
    }
  }

  /** As long as calls run here, whoever has their session must not end it as idle. */
  async function hold(loan: Loan, sharing: SessionSharing): Promise<void> {
    const { home } = loan.session.session.record
    loan.heldAt = clock.now()
    // Another one has it by now, which lends it anew for the calls that are to come.
    if (home !== loan.home) end(loan, { home, dueAt: 0 })
    await question(loan, { has: sharing.id(), isRunning: true }).catch((err: unknown) => {
      loan.until = 0
      log.debug({ err, tenant: loan.session.tenant }, 'the process that has the session at an upstream is not there')
    })
  }

  function check(loan: Loan): void {
    const { connections, definition, session, calledAt } = loan
    const scope = borrowedScopeOf(session, definition)
    if (clock.now() >= calledAt + unusedMs) pool.leave(scope)
    const newest = pool.peek(definition, scope)
    for (const each of connections) if (each !== newest && !isBusy(each)) connections.delete(each)
    if (connections.size === 0 && !loan.isAsking) open.delete(loan)
    if (loan.isAsking || clock.now() < loan.heldAt + lentMs / 2) return
    const busy = [...connections].find(isBusy)?.sharing
    if (busy !== undefined) void hold(loan, busy)
  }
  const checks = every(clock, lentMs / 4, () => {
    open.forEach(check)
    homes.keep(new Set([...open].filter(({ until }) => until > clock.now()).map(({ home }) => home)))
  })

  /** The home is gone, or stops: the next call goes there, and finds who follows. @returns what was lent */
  function giveBack(home: string): Upstream[] {
    const lent = [...open].filter((loan) => loan.home === home)
    for (const loan of lent) {
      end(loan, { dueAt: clock.now() + refusedMs })
      // What the next home lends is used on another connection: that of this one has an end.
      pool.leave(borrowedScopeOf(loan.session, loan.definition))
    }
    return lent.flatMap(({ connections }) => [...connections])
  }

  bus.serve('recall', async (asked) => {
    const lent = giveBack((asked as Recall).home)
    // A call that has just been given a connection is not running yet.
    do await pause(clock, lookMs)
    while (lent.some(isBusy))
    return {}
  })

  function release(key: string): void {
    // `pool.release` never rejects.
    for (const scope of scopes.get(key) ?? []) void pool.release(scope)
    scopes.delete(key)
  }
  live.onDrop(release)

  return {
    /**
     * For a call of a session that lives at another process.
     * @param definition undefined: it is for no one upstream
     * @returns undefined: it has to go there
     */
    use(
      session: LiveSession,
      definition: UpstreamDefinition | undefined,
      endpoint: Endpoint
    ): SessionConnection | undefined {
      if (definition?.type !== 'http' || definition.isolation !== 'session') return undefined
      if (!definition.lendSessions) return undefined
      const loan = loanOf(session, definition, endpoint)
      const { home } = session.session.record
      if (loan.home !== home) end(loan, { home, dueAt: 0, calls: 0 })
      const now = clock.now()
      const isLent = now < loan.until
      const upstream = isLent ? pool.use(definition, borrowedScopeOf(session, definition)) : undefined
      loan.calls = now - loan.calledAt < lentMs ? loan.calls + 1 : 1
      loan.calledAt = now
      const isDue = now >= loan.dueAt || (isLent && !hasIds(upstream?.sharing, spareIds * 2))
      if (isDue && !loan.isAsking && loan.calls >= callsAtHome) void borrow(loan)
      if (upstream === undefined || !hasIds(upstream.sharing, spareIds)) return undefined
      return { upstream, definition, scope: scopeOf(definition, session) }
    },
    /** The connections into a session that lives elsewhere, the newest first. */
    all: (session: LiveSession, hash: string): Upstream[] =>
      [...(loans.get(session)?.get(hash)?.connections ?? [])].toReversed(),
    close(): void {
      checks.close()
      homes.keep(new Set())
    }
  }
}
