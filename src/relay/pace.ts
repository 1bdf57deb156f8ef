// How often an upstream may make the gateway read its lists: `list_changed` costs its sender a few bytes, and us a whole listing.

/** Milliseconds from the beginning of one reading to the next, over time. */
export const readEveryMs = 1_000
/** As many more may follow the first at once: changes come in twos and threes, and clients wait for them. */
export const spareReadings = 3

export interface PaceClock {
  now (): number
  timer (ms: number, run: () => void): { close (): unknown, unref (): unknown }
}

export interface Pace {
  /** Resolves when the next reading may begin, at once where the last one began long enough ago or the signal is aborted. Never rejects. */
  next (signal: AbortSignal): Promise<void>
}

/** The pace of one reader, which waits for each `next` before it asks for another. */
export function createPace (clock: PaceClock): Pace {
  const aheadMs = spareReadings * readEveryMs
  // When the next reading would be due if they were spread evenly.
  let due = -Infinity
  return {
    async next (signal) {
      // A clock that was set back must not stop the reading.
      const waitMs = Math.min(due - aheadMs - clock.now(), readEveryMs)
      if (waitMs > 0) await pause(clock, waitMs, signal)
      const now = clock.now()
      due = Math.min(Math.max(due, now), now + aheadMs) + readEveryMs
    }
  }
}

/** Resolves after a time, or when the signal is aborted. */
export function pause (clock: PaceClock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      timer.close()
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.timer(ms, done)
    timer.unref()
    signal.addEventListener('abort', done, { once: true })
  })
}
