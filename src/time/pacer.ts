// Work at a limited rate: what is beyond the rate waits, in the order in which it came.

import { type Clock, createDelay } from './clock.ts'

export type Pacer = ReturnType<typeof createPacer>

/** @param rate `burst`: how many run at once after a while without any; then `perSecond` */
export function createPacer(clock: Clock, { perSecond, burst }: { perSecond: number; burst: number }) {
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

  return {
    /** Calls `run` once when it is its turn: at once where nothing waits and the rate allows it. */
    enter(run: () => void): void {
      waiting.add(run)
      if (!delay.pending) next()
    },
    /** It gives up its turn: it is not called after this. */
    leave(run: () => void): void {
      waiting.delete(run)
      if (waiting.size === 0) delay.close()
    }
  }
}
