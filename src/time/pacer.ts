// Work at a limited rate: what is beyond the rate waits, in the order in which it came.

import { abortable, type Clock, createDelay } from './clock.ts'

interface Rate {
  readonly perSecond: number
  /** How many run at once after a while without any. */
  readonly burst: number
}

/** Pacers that are kept; beyond, the least recent is forgotten. */
const maxPacers = 1_000

export function createPacer(clock: Clock, { perSecond, burst }: Rate) {
  const intervalMs = 1000 / perSecond
  const aheadMs = burst * intervalMs
  const waiting = new Set<() => void>()
  const delay = createDelay(clock)
  /** When the next would be due if all were spread evenly. */
  let dueAt = -Infinity

  function next(): void {
    for (const run of waiting) {
      const now = clock.now()
      // Not further ahead than a burst: a clock that was set back stops nothing.
      const nextDueAt = Math.min(Math.max(dueAt, now), now + aheadMs) + intervalMs
      const waitMs = nextDueAt - aheadMs - now
      if (waitMs > 0) return delay.start(Math.ceil(waitMs), next)
      dueAt = nextDueAt
      waiting.delete(run)
      run()
    }
  }

  /** Calls `run` once when it is its turn: at once where nothing waits and the rate allows it. */
  function enter(run: () => void): void {
    waiting.add(run)
    if (!delay.pending) next()
  }

  /** It gives up its turn: it is not called after this. */
  function leave(run: () => void): void {
    waiting.delete(run)
    if (waiting.size === 0) delay.close()
  }

  return {
    enter,
    leave,
    /** Resolves when it is its turn, or when the signal is aborted. Never rejects. */
    async turn(signal: AbortSignal): Promise<void> {
      const { promise, resolve } = Promise.withResolvers<void>()
      enter(resolve)
      await abortable(promise, signal).catch(() => leave(resolve))
    }
  }
}

/** @returns a function like `turn`, at the same rate for each key */
export function createPacers(clock: Clock, rate: Rate): (key: string, signal: AbortSignal) => Promise<void> {
  const pacers = new Map<string, ReturnType<typeof createPacer>>()
  return async (key, signal) => {
    const pacer = pacers.get(key) ?? createPacer(clock, rate)
    pacers.delete(key)
    pacers.set(key, pacer)
    const [oldest] = pacers.size > maxPacers ? pacers.keys() : []
    if (oldest !== undefined) pacers.delete(oldest)
    await pacer.turn(signal)
  }
}
