// Warnings about one connection to an upstream, limited so that a server cannot fill the log.

import { createTokenBucket } from '../../limits/limits.ts'
import type { Log } from '../../observe/log.ts'
import type { Clock } from '../../time/clock.ts'

export interface LimitedWarnings {
  /** Writes the warning, or counts it where there were too many lately. */
  warn(fields: object, text: string): void
  /** Logs how many were left out, if any were. */
  end(): void
}

const perSecond = 20
const burst = 50

/** One for each connection. */
export function createLimitedWarnings(upstream: string, clock: Clock, log: Log): LimitedWarnings {
  const bucket = createTokenBucket(clock, perSecond, burst)
  let omitted = 0

  function end(): void {
    if (omitted > 0) log.warn({ upstream, warnings: omitted }, 'left out warnings about the upstream: too many at once')
    omitted = 0
  }

  return {
    warn(fields, text) {
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
