// What has ended, counted many at a time: between two calls the code and the data that count have been displaced by
// those of the calls, and cost three to four times as much.

import { type Clock, createDelay } from '../time/clock.ts'

/** Between two times that what waits is counted, in milliseconds; and how many wait at most. */
const countEveryMs = 50
const maxWaiting = 512

/**
 * @param clock for durations
 * @param first is given what waits, in its order; never throws
 */
export function createCountedLater<Ended>(clock: Pick<Clock, 'timer'>, first: (ended: readonly Ended[]) => void) {
  const counts = [first]
  const delay = createDelay(clock)
  let waiting: Ended[] = []
  function settle(): void {
    if (waiting.length === 0) return
    const taken = waiting
    waiting = []
    delay.close()
    for (const count of counts) count(taken)
  }
  return {
    /** @param mayWait it is small enough to be held until then */
    add(ended: Ended, mayWait: boolean): void {
      if (!mayWait) for (const count of counts) count([ended])
      else if (waiting.push(ended) >= maxWaiting) settle()
      else if (waiting.length === 1) delay.start(countEveryMs, settle)
    },
    /** Another one that counts, after those before it. */
    also: (count: typeof first): void => void counts.push(count),
    /** Counts what waits: before anybody reads the counts. */
    settle
  }
}
