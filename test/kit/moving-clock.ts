// The time of day of this process can be moved, and stopped. To be imported before anything that reads the clock.

const { now } = Date
let shiftMs = 0
let stoppedAt: number | undefined
Date.now = () => (stoppedAt ?? now()) + shiftMs

/** From now on it is so much later than it is. */
export function moveClock(ms: number): void {
  shiftMs = ms
}

/** From now on it is later by what it is moved alone, however long anything takes. */
export function stopClock(): void {
  stoppedAt = now()
}
