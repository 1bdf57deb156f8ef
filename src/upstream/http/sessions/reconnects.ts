// When streams of one upstream that have ended are opened again: the server says after which time, and the rate for
// one stream and for all of them bounds how often, whatever comes on them. A server may end a stream after each event
// on purpose and have its client come back (SEP-1699).

import { createPacer } from '../../../time/pacer.ts'
import type { Clock, Timer } from '../../../time/clock.ts'

/** Of one stream: quick at first, and then as often as a server has clients poll that says `retry: 1000`. */
const streamRate = { perSecond: 1, burst: 5 }
/** Of all streams to one upstream at this process. */
const upstreamRate = { perSecond: 100, burst: 50 }
/** A stream that was not opened again for this long does not wait for those others, in milliseconds. */
const restMs = 10_000
/** Of these, so that a thousand streams that are cut together are not opened in one turn of the event loop. */
const restedRate = { perSecond: 1_000, burst: 50 }

/** Opens one stream again, as `run` does, after `ms` or later. Closed, it is not opened. */
export type Reconnect = (ms: number, run: () => void) => Pick<Timer, 'close' | 'unref'>

/** What the streams to one upstream share. */
export function createReconnects(clock: Clock) {
  const all = createPacer(clock, upstreamRate)
  const rested = createPacer(clock, restedRate)
  return {
    /** Of one stream, to be kept for as long as it is opened again. */
    stream(): Reconnect {
      const own = createPacer(clock, streamRate)
      let openedAt = -Infinity
      return (ms, run) => {
        const open = (): void => {
          openedAt = clock.now()
          run()
        }
        // So that all come back soon to a server that was restarted, and a short call is not held up by others.
        const enter = (): void => (clock.now() - openedAt >= restMs ? rested : all).enter(open)
        const timer = clock.timer(ms, () => own.enter(enter))
        return {
          unref: () => timer.unref(),
          close() {
            timer.close()
            own.leave(enter)
            for (const pacer of [all, rested]) pacer.leave(open)
          }
        }
      }
    }
  }
}
