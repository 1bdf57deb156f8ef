// Turns of the event loop are short where more than one tenant has work: each may have a little begun in a turn, as
// measured by the clock, so that whoever asks seldom waits for little, in each phase of its request. A tenant that is
// alone has all of each turn, and nothing is measured.

import { createFairQueue, type WorkOwner } from './fair-queue.ts'

/** The time after the work of one tenant in which the turns of others are still shared. */
const sharedMs = 1_000
/** The number of strangers in that time from which on they count as one more tenant. */
const manyStrangers = 20
/** The time of one tenant in one turn of the event loop, in milliseconds. */
const shareMs = 0.5
/** The most time that is carried over to later turns: the clock also counts what other processes had. */
const maxDebtMs = 10

export type TurnShares = ReturnType<typeof createTurnShares>

/** The shares of tenants in one kind of work. */
export type KindShares = Pick<TurnShares, 'has' | 'begin'>

/** Milliseconds by tenant: in this turn, and in earlier ones beyond its share. */
type Spent = Map<string, number>

export function createTurnShares(now: () => number = () => performance.now()) {
  const spent: Spent = new Map()
  const spentOnLong: Spent = new Map()
  const waiting = createFairQueue<{ readonly run: () => void; readonly tenant: string; readonly ms: number }>()
  let due: Array<() => void> = []
  let isTurnAwaited = false
  let last: string | undefined
  /** Strangers who came in the `sharedMs` that end then. */
  let strangers = { count: 0, until: 0 }
  let sharedUntil = 0
  /** The work that runs: who pays for it, and since when it is not charged; undefined: nobody pays. */
  let running: { tenant: string; readonly spent: Spent; since: number } | undefined

  const isShared = (): boolean => sharedUntil > 0 && now() < sharedUntil
  const spentOf = (tenant: string, of: Spent): number => {
    chargeRunning()
    return of.get(tenant) ?? 0
  }
  /** Whether the tenant has half of its share left: reading leaves the other half, so that requests can begin. */
  const hasHalf = (tenant: string): boolean => !isShared() || spentOf(tenant, spent) < shareMs / 2

  function areStrangersMany(): boolean {
    if (now() >= strangers.until) strangers = { count: 0, until: now() + sharedMs }
    return ++strangers.count >= manyStrangers
  }

  const sharesOf = (of: Spent) => ({
    /** May the tenant have more done in this turn? */
    has: (tenant: string): boolean => !isShared() || spentOf(tenant, of) < shareMs,
    /** The tenant pays for what runs from here on, promises included: until other work begins, or the turn is over. */
    begin(tenant: string): void {
      if (!isShared()) return
      chargeRunning()
      running = { tenant, spent: of, since: now() }
      // Before the event loop waits for anything: that is nobody's work.
      awaitTurn()
    }
  })
  const { has, begin } = sharesOf(spent)

  function chargeRunning(): void {
    if (running === undefined) return
    const at = now()
    charge(running.tenant, at - running.since, running.spent)
    running.since = at
  }

  function charge(tenant: string, ms: number, to: Spent): void {
    // What a stranger costs, whoever that is, the next ones do not pay.
    to.set(tenant, Math.min(tenant === '' ? shareMs : maxDebtMs, (to.get(tenant) ?? 0) + ms))
    awaitTurn()
  }

  function beginNewShares(of: Spent): void {
    for (const [tenant, ms] of of)
      if (ms <= shareMs) of.delete(tenant)
      else of.set(tenant, ms - shareMs)
  }

  function awaitTurn(): void {
    if (isTurnAwaited) return
    isTurnAwaited = true
    setImmediate(nextTurn)
  }

  function nextTurn(): void {
    isTurnAwaited = false
    chargeRunning()
    running = undefined
    beginNewShares(spent)
    beginNewShares(spentOnLong)
    for (let next = waiting.next(hasHalf); next !== undefined; next = waiting.next(hasHalf)) {
      charge(next.tenant, next.ms, spent)
      next.run()
    }
    if (spent.size > 0 || spentOnLong.size > 0 || !waiting.isEmpty) awaitTurn()
    const runs = due
    due = []
    for (const run of runs) run()
  }

  return {
    /** Work of the tenant has come; '' is nobody who is known: many of them are one more tenant. */
    note(tenant: string): void {
      if (tenant === '' && !areStrangersMany()) return
      if (tenant === last) return
      if (last !== undefined) sharedUntil = now() + sharedMs
      last = tenant
    },
    isShared,
    has,
    begin,
    /** Each tenant has a second share, for long messages: they do not hold up its short ones. */
    long: sharesOf(spentOnLong),
    /** Charges the work that runs to the tenant from its beginning: the unauthenticated client was let in. */
    renameRunning(tenant: string): void {
      if (running?.tenant === '' && running.spent === spent) running.tenant = tenant
    },
    /** The tenant's work begins, be it only to put it off. @returns whether the tenant may have it done in this turn */
    take(tenant: string): boolean {
      begin(tenant)
      return has(tenant)
    },
    /** Runs it in a later turn, in which its tenant has a share: tenants take turns, and so do the callers of each. */
    later(run: () => void, owner: WorkOwner, ms: number): void {
      waiting.add({ run, tenant: owner.tenant, ms }, owner)
      awaitTurn()
    },
    /** Runs it in the next turn, when all have new shares. */
    inNextTurn(run: () => void): void {
      due.push(run)
      awaitTurn()
    }
  }
}

/** The shares of the process, because there is one event loop. */
export const turnShares = createTurnShares()
