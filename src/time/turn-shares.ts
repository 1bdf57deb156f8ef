// Turns of the event loop are short where more than one tenant has work: each may have a little begun in a turn, as
// measured by the clock, so that whoever asks seldom waits for little, in each phase of its request. A tenant that is
// alone has all of each turn, and nothing is measured.

import { createFairQueue, type WorkOwner } from './fair-queue.ts'

/** So long after the work of another tenant none is alone. */
const sharedMs = 1_000
/** Of one tenant, in one turn of the event loop. */
const shareMs = 0.5
/** What is carried over to later turns at most: the clock also counts what other processes had. */
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
  let last = ''
  let sharedUntil = 0
  /** Whose work is under way, who pays for it, and since when it is not charged; undefined: nobody pays. */
  let running: { tenant: string; readonly spent: Spent; since: number } | undefined

  const isShared = (): boolean => sharedUntil > 0 && now() < sharedUntil
  const spentOf = (tenant: string, of: Spent): number => {
    chargeRunning()
    return of.get(tenant) ?? 0
  }
  /** Who waits to read on leaves room for what is read: else no request would be begun. */
  const hasHalf = (tenant: string): boolean => !isShared() || spentOf(tenant, spent) < shareMs / 2

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
    /** Work of the tenant has come; '' is nobody who is known. */
    note(tenant: string): void {
      if (tenant === last || tenant === '') return
      if (last !== '') sharedUntil = now() + sharedMs
      last = tenant
    },
    isShared,
    has,
    begin,
    /** Each tenant has a second share, for long messages: they do not hold up its short ones. */
    long: sharesOf(spentOnLong),
    /** Who was a stranger is let in: the tenant pays for what runs in the stranger's place, from its beginning. */
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

/** One for the process, because there is one event loop. */
export const turnShares = createTurnShares()
