// The time of day of this process can be moved. To be imported before anything that reads the clock.

const { now } = Date
let shiftMs = 0
Date.now = () => now() + shiftMs

/** From now on it is so much later than it is. */
export function moveClock(ms: number): void {
  shiftMs = ms
}
