// Warnings about one connection to an upstream. What it does wrong a thousand times costs it a count, not us our log.

import { createBucket } from './bucket.ts'
import type { Log } from '../observe/log.ts'
import type { Clock } from './clock.ts'

export interface Complaints {
  /** Writes the warning, or counts it where there were too many of late. */
  warn (fields: object, text: string): void
  /** Says how many were left out, if any were. */
  end (): void
}

const perSecond = 20
const burst = 50

/** One for each connection: all that is said of it shares the same measure. */
export function createComplaints (upstream: string, clock: Clock, log: Log): Complaints {
  const bucket = createBucket(clock, perSecond, burst)
  let omitted = 0

  function end (): void {
    if (omitted > 0) log.warn({ upstream, warnings: omitted }, 'left out warnings about the upstream: too many at once')
    omitted = 0
  }

  return {
    warn (fields, text) {
      if (!bucket.take()) {
        omitted++
        return
      }
      end()
      log.warn({ upstream, ...fields }, text)
    },
    end
  }
}
