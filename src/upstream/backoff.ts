// How long an upstream that failed is left alone. One record per definition, whatever the number of its connections.

import type { Clock } from './clock.ts'

export interface Backoff {
  failures: number
  /** No attempt before this time. */
  retryAt: number
  lastError: string | undefined
}

const firstMs = 1_000
const longestMs = 60_000

export const noBackoff = (): Backoff => ({ failures: 0, retryAt: 0, lastError: undefined })

/** Notes a failure. Those of one wave count once: a hundred sessions that fail together are one failure of the upstream. */
export function failed (backoff: Backoff, message: string, clock: Clock, random: () => number): void {
  const now = clock.now()
  backoff.lastError = message
  if (now < backoff.retryAt) return
  backoff.failures += 1
  const delay = Math.min(longestMs, firstMs * 2 ** Math.min(backoff.failures - 1, 10))
  // Replicas that lost the same upstream must not come back in step.
  backoff.retryAt = now + Math.min(longestMs, Math.round(delay * (1 + random() * 0.25)))
}

/** Notes that it works again. */
export function worked (backoff: Backoff): void {
  backoff.failures = 0
  backoff.retryAt = 0
  backoff.lastError = undefined
}
