// Caches valid tokens for a while, so that a call costs one hash and one lookup. Refused tokens are not cached: made-up
// ones could fill the memory.

import { hash } from 'node:crypto'
import type { Clock } from '../time/clock.ts'
import type { Principal } from './principal.ts'

/** The content of a verified credential. */
export interface Verified {
  readonly principal: Principal
  /** Thumbprint of the key whose holder alone may send it (RFC 9449 section 6.1). */
  readonly boundTo?: string | undefined
}

const maxAgeMs = 60_000

/** The numbers of lookups and of hits. */
export interface CacheUses {
  readonly hits: number
  readonly misses: number
}

/**
 * Returns the cache key: a digest of the token and the resource, because a token may be valid at one resource only. The
 * token itself is never a key. A line feed separates the two, which no token contains.
 */
export function digestOf(resource: string, token: string): string {
  return hash('sha256', `${resource}\n${token}`, 'base64url')
}

/**
 * One per tenant: no tenant's flood pushes out the tokens of another.
 * @param max entries; the oldest is dropped first
 */
export function createTokenCache(clock: Pick<Clock, 'now'>, max = 5000) {
  // In order of insertion, which is the order of expiry but for tokens that end sooner.
  const entries = new Map<string, { readonly verified: Verified; readonly since: number; readonly until: number }>()

  // `since`: a clock that is set back must not prolong an entry.
  const isAlive = ({ since, until }: { since: number; until: number }, now: number): boolean =>
    now >= since && now < until

  return {
    get(digest: string): Verified | undefined {
      const entry = entries.get(digest)
      if (entry === undefined) return undefined
      if (isAlive(entry, clock.now())) return entry.verified
      entries.delete(digest)
      return undefined
    },

    /** @param longestMs at most a minute */
    set(digest: string, verified: Verified, longestMs = maxAgeMs): void {
      const now = clock.now()
      const until = Math.min(now + Math.min(longestMs, maxAgeMs), verified.principal.expiresAt ?? Infinity)
      // No entry outlives `exp`: within the leeway a token is verified each time.
      if (until <= now) return
      entries.delete(digest)
      for (const [oldest, entry] of entries) {
        if (entries.size < max && isAlive(entry, now)) break
        entries.delete(oldest)
      }
      entries.set(digest, { verified, since: now, until })
    },

    get size() {
      return entries.size
    }
  }
}
