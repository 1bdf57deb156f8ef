// Remembers tokens that were found good, for a minute at most, so that the path of a call costs one hash and one lookup.
// One per tenant: nobody's flood pushes out the verdicts of others. Refusals are not remembered: they could be made to fill it.

import { hash } from 'node:crypto'
import type { Principal } from './principal.ts'

export interface Clock {
  /** Epoch milliseconds. */
  now (): number
}

export interface VerdictOptions {
  readonly clock: Clock
  /** Entries; the oldest goes first. */
  readonly max?: number
  readonly maxAgeMs?: number
}

export interface Verdicts {
  get (digest: string): Principal | undefined
  set (digest: string, principal: Principal): void
  readonly size: number
}

/** The token is never a key itself, and what is good at one resource says nothing of another. No token contains a line feed. */
export function digestOf (resource: string, token: string): string {
  return hash('sha256', `${resource}\n${token}`, 'base64url')
}

export function createVerdicts ({ clock, max = 5000, maxAgeMs = 60_000 }: VerdictOptions): Verdicts {
  // In order of insertion, which is the order of expiry but for tokens that end sooner: least recently used would add nothing in a minute.
  const entries = new Map<string, { readonly principal: Principal, readonly since: number, readonly until: number }>()

  // A clock that was set back must not lengthen a life.
  const alive = (entry: { since: number, until: number }, now: number) => now >= entry.since && now < entry.until

  return {
    get (digest) {
      const entry = entries.get(digest)
      if (entry === undefined) return undefined
      if (alive(entry, clock.now())) return entry.principal
      entries.delete(digest)
      return undefined
    },

    set (digest, principal) {
      const now = clock.now()
      const until = Math.min(now + maxAgeMs, principal.expiresAt ?? Infinity)
      // Within the leeway a token is judged anew each time: no verdict outlives `exp`.
      if (until <= now) return
      entries.delete(digest)
      for (const [oldest, entry] of entries) {
        if (entries.size < max && alive(entry, now)) break
        entries.delete(oldest)
      }
      entries.set(digest, { principal, since: now, until })
    },

    get size () {
      return entries.size
    }
  }
}
