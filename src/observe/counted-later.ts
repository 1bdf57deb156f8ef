// What has ended, counted many at a time: between two calls the code and the data that count have been displaced by
// those of the calls, and cost three to four times as much.

import { type Clock, createDelay } from '../time/clock.ts'

/** Between two times that what waits is counted, in milliseconds; and how many wait at most. */
const countEveryMs = 50
const maxWaiting = 128

/**
 * @param clock for durations
 * @param count what is counted; never throws
 */
export function createCountedLater<Ended>(clock: Pick<Clock, 'timer'>, count: (ended: Ended) => void) {
  const delay = createDelay(clock)
  let waiting: Ended[] = []
  function settle(): void {
    const taken = waiting
    waiting = []
    delay.close()
    for (const each of taken) count(each)
  }
  return {
    /** @param mayWait it is small enough to be held until then */
    add(ended: Ended, mayWait: boolean): void {
      if (!mayWait) count(ended)
      else if (waiting.push(ended) >= maxWaiting) settle()
      else if (!delay.pending) delay.start(countEveryMs, settle)
    },
    /** Counts what waits: before anybody reads the counts. */
    settle
  }
}
