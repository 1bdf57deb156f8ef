// How soon a session that the server forgot is made anew: at once the first time, ever later where that goes on, so that a server
// which forgets each session as soon as it has it does not set the pace.

import type { Clock } from './clock.ts'

export interface Pace {
  /** Resolves when it is time for the next session, or when the signal says that nobody wants one any more. */
  turn (signal: AbortSignal): Promise<void>
  /** A session has begun. */
  begun (): void
}

const firstMs = 1_000
const longestMs = 60_000
/** A session that lived so long was a good one. */
const provenMs = 60_000

export function createPace (clock: Clock): Pace {
  let delayMs = 0
  let since = clock.now()

  return {
    turn (signal) {
      const waitMs = clock.now() - since >= provenMs ? 0 : delayMs
      delayMs = waitMs === 0 ? firstMs : Math.min(longestMs, waitMs * 2)
      if (waitMs === 0 || signal.aborted) return Promise.resolve()
      return new Promise((resolve) => {
        const done = (): void => {
          timer.close()
          signal.removeEventListener('abort', done)
          resolve()
        }
        const timer = clock.timer(waitMs, done)
        signal.addEventListener('abort', done, { once: true })
      })
    },
    begun () { since = clock.now() }
  }
}
