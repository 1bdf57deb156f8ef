// The delay before a session at an HTTP server is begun again.

import { type Clock, backoffMs, pause } from '../../time/clock.ts'

/** The delays from the second restart on. */
const restartBackoff = { firstMs: 1_000, maxMs: 60_000 }
/** A session that lived so long resets the delay, in milliseconds. */
const provenMs = 60_000

/**
 * The first restart is immediate, later ones back off: otherwise a server that forgets each session at once would
 * decide how often the gateway connects.
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
