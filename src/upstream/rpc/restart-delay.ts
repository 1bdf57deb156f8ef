// How soon a session at a server over HTTP is begun again.

import { type Clock, backoffMs, pause } from '../../time/clock.ts'

/** How soon a session that the server forgot is made anew, from the second time on. */
const restartBackoff = { firstMs: 1_000, maxMs: 60_000 }
/** A session that lived so long was a good one. */
const provenMs = 60_000

/**
 * At once the first time, then later and later: a server that forgets each session as soon as it has it does not decide
 * how often we connect.
 */
export function createRestartDelay(clock: Clock) {
  let restarts = 0
  let since = clock.now()

  return {
    wait(signal: AbortSignal): Promise<void> {
      if (clock.now() - since >= provenMs) restarts = 0
      return restarts++ === 0 ? Promise.resolve() : pause(clock, backoffMs(restarts - 2, restartBackoff), signal)
    },
    sessionBegan(): void {
      since = clock.now()
    }
  }
}
