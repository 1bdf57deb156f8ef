// How often somebody may do something, each by a name or an address.

import { LRUCache } from 'lru-cache'
import { createTokenBucket } from '../limits/limits.ts'
import type { Clock } from '../time/clock.ts'

/** Addresses and keys whose requests are counted; beyond, the least recent are forgotten. */
const maxCounted = 10_000

export function createRates(
  clock: Clock,
  { perSecond, burst }: { readonly perSecond: number; readonly burst: number }
) {
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
