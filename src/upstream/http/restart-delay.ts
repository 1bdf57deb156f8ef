// How soon a session that the server forgot is made anew: at once the first time, then later and later, so that a
// server which forgets each session as soon as it has it does not decide how often we connect.

import { backoffMs, type Clock, pause } from '../../time/clock.ts'

export interface RestartDelay {
  /** Resolves when it is time for the next session, or when the signal is aborted. */
  wait(signal: AbortSignal): Promise<void>
  /** A session has begun. */
  sessionBegan(): void
}

const backoff = { firstMs: 1_000, maxMs: 60_000 }
/** A session that lived so long was a good one. */
const provenMs = 60_000

export function createRestartDelay(clock: Clock): RestartDelay {
  let restarts = 0
  let since = clock.now()

  return {
    wait(signal) {
      if (clock.now() - since >= provenMs) restarts = 0
      return restarts++ === 0 ? Promise.resolve() : pause(clock, backoffMs(restarts - 2, backoff), signal)
    },
    sessionBegan() {
      since = clock.now()
    }
  }
}
