// Keeps connections that are in use without a call, such as those that a client listens on, from being closed as idle.

import { createDelay, type Clock } from '../../time/clock.ts'

/**
 * @param touchAll touches all connections that are in use.
 * @returns the shortest of their idle times in milliseconds; Infinity where none is in use, which ends the timer
 * @param maxMs between two touches at most
 */
export function createKeepAlive(clock: Clock, touchAll: () => number, maxMs = 5_000) {
  const delay = createDelay(clock)
  let intervalMs = Infinity
  let closed = false

  function run(): void {
    delay.close()
    const idleMs = touchAll()
    if (idleMs === Infinity || closed) return
    intervalMs = Math.min(maxMs, idleMs / 3)
    delay.start(intervalMs, run)
  }

  return {
    /** A connection that is closed after `idleMs` is in use from now on. */
    add(idleMs: number) {
      if (!closed && (!delay.pending || idleMs / 3 < intervalMs)) run()
    },
    close() {
      closed = true
      delay.close()
    }
  }
}
