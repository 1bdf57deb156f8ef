// A token bucket: bursts pass, floods do not.

import type { Clock } from './clock.ts'

export interface Bucket {
  /** @returns false when there is nothing left to take */
  take (): boolean
}

/** Holds up to `burst` tokens and gains `perSecond` of them. */
export function createBucket (clock: Clock, perSecond: number, burst: number): Bucket {
  let tokens = burst
  let filledAt = clock.now()
  return {
    take () {
      if (tokens < 1) {
        const now = clock.now()
        tokens = Math.min(burst, tokens + Math.max(0, now - filledAt) * perSecond / 1000)
        filledAt = now
        if (tokens < 1) return false
      }
      tokens -= 1
      return true
    }
  }
}
