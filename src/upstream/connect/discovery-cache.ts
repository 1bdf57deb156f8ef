// What was found out about servers, by hash of their definition, which holds the credentials: with others, another
// server may answer. Bounded, because definitions come and go with the configuration.

import type { Clock } from '../../time/clock.ts'

export interface DiscoveryCache<T> {
  get(hash: string): T | undefined
  /** @param lifetimeMs how long it holds; default until it is deleted */
  set(hash: string, found: T, lifetimeMs?: number): void
  delete(hash: string): void
}

/** Far more than a gateway has upstreams; one that was forgotten is asked again. */
const maxEntries = 10_000

export function createDiscoveryCache<T>(clock: Clock): DiscoveryCache<T> {
  /** The one confirmed least recently first. */
  const entries = new Map<string, { readonly found: T; readonly until: number }>()
  return {
    get(hash) {
      const entry = entries.get(hash)
      return entry !== undefined && entry.until > clock.now() ? entry.found : undefined
    },
    set(hash, found, lifetimeMs = Infinity) {
      entries.delete(hash)
      entries.set(hash, { found, until: clock.now() + lifetimeMs })
      const [oldest = hash] = entries.keys()
      if (entries.size > maxEntries) entries.delete(oldest)
    },
    delete(hash) {
      entries.delete(hash)
    }
  }
}
