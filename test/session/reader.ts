// What the tests of session/ share: a reader of a stream that takes as much as a test says, and a clock that the test
// moves.

import { stringOf } from '../../src/protocol/json-text.ts'
import type { Sink } from '../../src/session/stream.ts'
import { wallClock, type Clock } from '../../src/time/clock.ts'

export interface Reader extends Sink {
  /** Events with data, in order. */
  readonly events: Array<{ readonly id: string; readonly data: string }>
  /** Ids of events without data. */
  readonly primes: string[]
  /** Where it was told to come back for, and when. */
  readonly paused: Array<{ readonly id: string; readonly retryMs: number | undefined }>
  readonly ended: boolean
  /** It was closed for not reading. */
  readonly overflown: boolean
  /** The last id it was given. */
  readonly lastId: string
  /** Takes so many events more before the writer has to wait. */
  take(count: number): void
}

/** @param limit events that it takes before `take` is called */
export function reader(limit = Infinity): Reader {
  let left = limit
  let lastId = ''
  let ended = false
  let overflown = false
  let wake = (): void => {}
  const made: Reader = {
    events: [],
    primes: [],
    paused: [],
    get ended() {
      return ended
    },
    get overflown() {
      return overflown
    },
    get lastId() {
      return lastId
    },
    event(id, data) {
      lastId = id
      if (data === undefined) {
        made.primes.push(id)
        return true
      }
      made.events.push({ id, data: stringOf(data) })
      return --left > 0
    },
    drained: () =>
      left > 0
        ? Promise.resolve()
        : new Promise((resolve) => {
            wake = resolve
          }),
    pause(id, retryMs) {
      made.paused.push({ id, retryMs })
      lastId = id
      ended = true
    },
    end() {
      ended = true
    },
    overflow() {
      overflown = true
    },
    take(count) {
      left = count
      wake()
    }
  }
  return made
}

export interface TestClock extends Clock {
  pass(ms: number): void
}

export function clock(now = 1_000_000): TestClock {
  return {
    ...wallClock,
    now: () => now,
    pass(ms) {
      now += ms
    }
  }
}
