// Keeps connections that are in use without a call, such as those that a client listens on, from being closed as idle.

import type { Clock, Timer } from '../../time/clock.ts'

export interface KeepAlive {
  /** A connection that is closed after `idleMs` is in use from now on. */
  add(idleMs: number): void
  close(): void
}

/**
 * @param touchAll touches all connections that are in use.
 * @returns the shortest of their idle times in milliseconds; Infinity where none is in use, which ends the timer
 * @param maxMs between two touches at most
 */
export function createKeepAlive(clock: Clock, touchAll: () => number, maxMs = 5_000): KeepAlive {
  let timer: Timer | undefined
  let intervalMs = Infinity
  let closed = false

  function run(): void {
    timer?.close()
    timer = undefined
    const idleMs = touchAll()
    if (idleMs === Infinity || closed) return
    intervalMs = Math.min(maxMs, idleMs / 3)
    timer = clock.timer(intervalMs, run)
    timer.unref()
  }

  return {
    add(idleMs) {
      if (!closed && (timer === undefined || idleMs / 3 < intervalMs)) run()
    },
    close() {
      closed = true
      timer?.close()
    }
  }
}
