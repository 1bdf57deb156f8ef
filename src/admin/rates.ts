// Rate limits by name or by client address.

import { LRUCache } from 'lru-cache'
import { networkOf } from '../limits/client-network.ts'
import { createTokenBucket } from '../limits/limits.ts'
import type { Clock } from '../time/clock.ts'

/** Addresses and keys whose requests are counted; beyond, the least recent are forgotten. */
const maxCounted = 10_000

interface Rate {
  readonly perSecond: number
  readonly burst: number
}

export function createRates(clock: Clock, { perSecond, burst }: Rate) {
  const buckets = new LRUCache<string, ReturnType<typeof createTokenBucket>>({ max: maxCounted })
  function bucketOf(who: string): ReturnType<typeof createTokenBucket> {
    const bucket = buckets.get(who) ?? createTokenBucket(clock, perSecond, burst)
    buckets.set(who, bucket)
    return bucket
  }
  return {
    take: (who: string): boolean => bucketOf(who).take(),
    spend: (who: string, count: number): void => bucketOf(who).spend(count)
  }
}

/** Creates rates by address, of IPv6 by its /64: a client with one address has all of them. */
export function createAddressRates(clock: Clock, rate: Rate) {
  const rates = createRates(clock, rate)
  return { take: (address: string): boolean => rates.take(networkOf(address)) }
}
