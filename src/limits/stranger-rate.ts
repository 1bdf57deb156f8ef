// How often strangers may have something done, by the addresses that they come from, or their networks of IPv6: one
// of them gets half of what all get, so that one stranger keeps nobody out who comes from elsewhere.

import type { Clock } from '../time/clock.ts'
import { networkOf } from './client-network.ts'
import { createTokenBucket } from './limits.ts'

/** The share of one address, or one network of IPv6. */
export const strangersShare = 0.5
/** Addresses and networks that are counted; beyond, who came least recently is forgotten. */
const maxNetworks = 2_000

/** @param burst at once, after a while without any */
export function createStrangerRate(clock: Pick<Clock, 'now'>, perSecond: number, burst: number) {
  const all = createTokenBucket(clock, perSecond, burst)
  const networks = new Map<string, ReturnType<typeof createTokenBucket>>()
  return {
    /** @returns false where it is too often */
    take(address: string): boolean {
      const network = networkOf(address)
      const own = networks.get(network) ?? createTokenBucket(clock, perSecond * strangersShare, burst * strangersShare)
      // In the order in which they came last.
      networks.delete(network)
      networks.set(network, own)
      const [oldest] = networks.size > maxNetworks ? networks.keys() : []
      if (oldest !== undefined) networks.delete(oldest)
      return own.take() && all.take()
    }
  }
}
