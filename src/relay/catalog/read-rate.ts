// How often an upstream may make the gateway read its lists: `list_changed` costs its sender a few bytes, and the
// gateway a whole listing.

import { type Clock, pause } from '../../time/clock.ts'

/** Milliseconds from the beginning of one reading to the next, over time. */
export const readIntervalMs = 1_000
/** As many more may follow the first at once: changes come in twos and threes, and clients wait for them. */
export const readBurst = 3

export interface ReadRate {
  /** Resolves when the next reading may begin, or when the signal is aborted. Never rejects. */
  next(signal: AbortSignal): Promise<void>
}

/** The rate of one reader, which waits for each `next` before it calls another. */
export function createReadRate(clock: Clock): ReadRate {
  const aheadMs = readBurst * readIntervalMs
  // When the next reading would be due if they were spread evenly.
  let dueAt = -Infinity
  return {
    async next(signal) {
      // A clock that was set back must not stop the reading.
      const waitMs = Math.min(dueAt - aheadMs - clock.now(), readIntervalMs)
      if (waitMs > 0) await pause(clock, waitMs, signal)
      const now = clock.now()
      dueAt = Math.min(Math.max(dueAt, now), now + aheadMs) + readIntervalMs
    }
  }
}
