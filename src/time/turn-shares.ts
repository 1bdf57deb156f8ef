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

export function createTurnShares(now: () => number = () => performance.now()) {
  /** By tenant, in milliseconds: in this turn, and in earlier ones beyond its share. */
  const spent = new Map<string, number>()
  const waiting = createFairQueue<{ readonly run: () => void; readonly tenant: string; readonly ms: number }>()
  let due: Array<() => void> = []
  let isTurnAwaited = false
  let last = ''
  let sharedUntil = 0
  /** Whose work is under way, and what of it is not charged yet; undefined: nobody's. */
  let running: { tenant: string; since: number } | undefined

  const isShared = (): boolean => sharedUntil > 0 && now() < sharedUntil
  const spentOf = (tenant: string): number => {
    chargeRunning()
    return spent.get(tenant) ?? 0
  }
  const has = (tenant: string): boolean => !isShared() || spentOf(tenant) < shareMs
  /** Who waits to read on leaves room for what is read: else no request would be begun. */
  const hasHalf = (tenant: string): boolean => !isShared() || spentOf(tenant) < shareMs / 2

  function chargeRunning(): void {
    if (running === undefined) return
    const at = now()
    charge(running.tenant, at - running.since)
    running.since = at
  }

  function charge(tenant: string, ms: number): void {
    // What a stranger costs, whoever that is, the next ones do not pay.
    spent.set(tenant, Math.min(tenant === '' ? shareMs : maxDebtMs, (spent.get(tenant) ?? 0) + ms))
    awaitTurn()
  }

  function begin(tenant: string): void {
    if (!isShared()) return
    chargeRunning()
    running = { tenant, since: now() }
    // Before the event loop waits for anything: that is nobody's work.
    awaitTurn()
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
    for (const [tenant, ms] of spent)
      if (ms <= shareMs) spent.delete(tenant)
      else spent.set(tenant, ms - shareMs)
    for (let next = waiting.next(hasHalf); next !== undefined; next = waiting.next(hasHalf)) {
      charge(next.tenant, next.ms)
      next.run()
    }
    if (spent.size > 0 || !waiting.isEmpty) awaitTurn()
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
    /** May the tenant have more done in this turn? */
    has,
    /** What runs from here on, promises included, is the tenant's: until other work begins, or the turn is over. */
    begin,
    /** What runs was begun for nobody who was known, and is the tenant's. */
    isOf(tenant: string): void {
      if (running !== undefined) running.tenant = tenant
    },
    /** @returns whether the tenant had so much of its share left; then its work begins */
    take(tenant: string): boolean {
      if (!has(tenant)) return false
      begin(tenant)
      return true
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
