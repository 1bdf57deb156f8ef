// How often strangers may have something done, by the addresses that they come from: one of them gets half of what all
// get, so that one stranger keeps nobody out who comes from elsewhere.

import type { Clock } from '../time/clock.ts'
import { createTokenBucket } from './limits.ts'

/** Of one address. */
export const strangersShare = 0.5
/** Addresses that are counted; beyond, who came least recently is forgotten. */
const maxAddresses = 2_000

/** @param burst at once, after a while without any */
export function createStrangerRate(clock: Pick<Clock, 'now'>, perSecond: number, burst: number) {
  const all = createTokenBucket(clock, perSecond, burst)
  const addresses = new Map<string, ReturnType<typeof createTokenBucket>>()
  return {
    /** @returns false where it is too often */
    take(address: string): boolean {
      const own = addresses.get(address) ?? createTokenBucket(clock, perSecond * strangersShare, burst * strangersShare)
      // In the order in which they came last.
      addresses.delete(address)
      addresses.set(address, own)
      const [oldest] = addresses.size > maxAddresses ? addresses.keys() : []
      if (oldest !== undefined) addresses.delete(oldest)
      return own.take() && all.take()
    }
  }
}
