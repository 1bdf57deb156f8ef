// What the tests of the session room share: a reader whose pace the test sets, and a clock that it moves.

import type { Sink } from '../../src/session/stream.ts'

export interface Reader extends Sink {
  /** Events with data, in order. */
  readonly events: Array<{ readonly id: string, readonly data: string }>
  /** Ids of events without data. */
  readonly primes: string[]
  /** Where it was told to come back for, and when. */
  readonly paused: Array<{ readonly id: string, readonly retryMs: number | undefined }>
  readonly ended: boolean
  /** It was closed for not reading. */
  readonly overflown: boolean
  /** The last id it was given. */
  readonly lastId: string
  /** Takes so many events more before it has to be waited for. */
  take (count: number): void
}

/** Without a limit, until `take` was called. */
export function reader (limit = Infinity): Reader {
  let left = limit
  let lastId = ''
  let ended = false
  let overflown = false
  let wake = (): void => {}
  const made: Reader = {
    events: [],
    primes: [],
    paused: [],
    get ended () { return ended },
    get overflown () { return overflown },
    get lastId () { return lastId },
    event (id, data) {
      lastId = id
      if (data === undefined) {
        made.primes.push(id)
        return true
      }
      made.events.push({ id, data })
      return --left > 0
    },
    drained: () => left > 0 ? Promise.resolve() : new Promise((resolve) => { wake = resolve }),
    pause (id, retryMs) {
      made.paused.push({ id, retryMs })
      lastId = id
      ended = true
    },
    end () { ended = true },
    overflow () { overflown = true },
    take (count) {
      left = count
      wake()
    }
  }
  return made
}

export interface TestClock {
  now (): number
  pass (ms: number): void
}

export function clock (now = 1_000_000): TestClock {
  return { now: () => now, pass (ms) { now += ms } }
}
