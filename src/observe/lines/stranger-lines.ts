// How many lines of the log strangers get: requests of whoever is not let in cost them nothing, and a flood of them
// must not fill the disk.

import { createStrangerRate } from '../../limits/stranger-rate.ts'
import type { Clock } from '../../time/clock.ts'
import type { Log } from '../log.ts'

/** At any level but `debug`; of one address, or one network of IPv6, half of it. */
const linesPerSecond = 100
const linesAtOnce = 1_000
/** Between two warnings, in milliseconds. */
const warnMs = 60_000

export type StrangerLines = ReturnType<typeof createStrangerLines>

/** @param clock for durations */
export function createStrangerLines(clock: Clock, log: Log) {
  const rate = createStrangerRate(clock, linesPerSecond, linesAtOnce)
  /** Since the last warning; undefined: there is none of the last minute. */
  let further: number | undefined

  function warnAgain(): void {
    const requests = further ?? 0
    further = requests === 0 ? undefined : 0
    if (requests === 0) return
    log.warn({ requests, withinMs: warnMs }, 'too many requests of strangers: more lines were left out')
    clock.timer(warnMs, warnAgain).unref()
  }

  return {
    /** @param address of the client. @returns the level of its line: those beyond are at `debug` */
    levelOf<Level extends string>(level: Level, address: string | undefined): Level | 'debug' {
      if (level === 'debug' || rate.take(address ?? '')) return level
      if (further === undefined) {
        log.warn('too many requests of strangers: lines of those beyond are left out (logLevel debug has them)')
        clock.timer(warnMs, warnAgain).unref()
      }
      further = (further ?? -1) + 1
      return 'debug'
    }
  }
}
