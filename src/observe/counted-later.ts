// What has ended, counted many at a time: between two calls the code and the data that count have been displaced by
// those of the calls, and cost three to four times as much.

import { type Clock, createDelay } from '../time/clock.ts'

/** Between two times that what waits is counted, in milliseconds; and how many wait at most. */
const countEveryMs = 50
const maxWaiting = 128

/**
 * @param clock for durations
 * @param count is given what waits, in its order; never throws
 */
export function createCountedLater<Ended>(clock: Pick<Clock, 'timer'>, count: (ended: readonly Ended[]) => void) {
  const delay = createDelay(clock)
  let waiting: Ended[] = []
  function settle(): void {
    if (waiting.length === 0) return
    const taken = waiting
    waiting = []
    delay.close()
    count(taken)
  }
  return {
    /** @param mayWait it is small enough to be held until then */
    add(ended: Ended, mayWait: boolean): void {
      if (!mayWait) count([ended])
      else if (waiting.push(ended) >= maxWaiting) settle()
      else if (!delay.pending) delay.start(countEveryMs, settle)
    },
    /** Counts what waits: before anybody reads the counts. */
    settle
  }
}
