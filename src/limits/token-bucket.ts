// A token bucket: bursts pass, floods do not.

import type { Clock } from '../time/clock.ts'

export interface TokenBucket {
  /** @returns false when the bucket is empty */
  take(): boolean
}

/** Holds up to `burst` tokens and gains `perSecond` of them. */
export function createTokenBucket(clock: Clock, perSecond: number, burst: number): TokenBucket {
  let tokens = burst
  let filledAt = clock.now()
  return {
    take() {
      if (tokens < 1) {
        const now = clock.now()
        tokens = Math.min(burst, tokens + (Math.max(0, now - filledAt) * perSecond) / 1000)
        filledAt = now
        if (tokens < 1) return false
      }
      tokens -= 1
      return true
    }
  }
}
