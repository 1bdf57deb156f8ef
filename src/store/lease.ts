// Tokens of a bucket that several processes share: how many of them one process may have in hand, so that it can spend
// them without asking. Pure; redis-scripts.ts has the same as a script, and test/store/contract.test.ts holds both.
//
// What is in hand counts as spent from the moment it is given. What was spent comes back at the rate of the bucket, but
// never what is still in hand. So however long a process keeps its tokens, no more are spent within any time t than
// `capacity + t * perMs`.

import { isObject } from '../protocol/messages.ts'

/** A request of a process for tokens of a shared bucket. */
export interface LeaseRequest {
  /** The most tokens that there can be. */
  readonly capacity: number
  /** Tokens that come back in a millisecond; 0: none, as of a quota, whose key names the time it is for. */
  readonly perMs: number
  /** The process. */
  readonly holder: string
  /** Tokens that the process has spent since its last request. */
  readonly used: number
  /** Tokens that the process wants to hold; 0: it gives all of them back. */
  readonly want: number
  /** The time after which the tokens that it holds count as spent, unless it asks again: it may be gone. */
  readonly holdMs: number
  /** The time for which the bucket is remembered. */
  readonly ttlMs: number
}

export interface TokenLease {
  /** Tokens that the process holds now. */
  readonly held: number
  /** Tokens that other processes hold. */
  readonly elsewhere: number
  /** Tokens that no process holds. */
  readonly left: number
  /** The time until there is a token that no process holds; Infinity where none comes back. */
  readonly waitMs: number
}

export interface BucketState {
  readonly spent: number
  /** Epoch ms: when that was. */
  readonly at: number
  readonly holders: Readonly<Record<string, { readonly held: number; readonly until: number }>>
}

/** @param before undefined: nothing was spent */
export function leaseTokens(
  before: BucketState | undefined,
  { capacity, perMs, holder, used, want, holdMs }: LeaseRequest,
  now: number
): { readonly state: BucketState; readonly lease: TokenLease } {
  const live = Object.entries(before?.holders ?? {}).filter(([, { until }]) => until > now)
  const others = live.filter(([name]) => name !== holder)
  const elsewhere = others.reduce((sum, [, { held }]) => sum + held, 0)
  const had = live.find(([name]) => name === holder)?.[1].held ?? 0
  const back = Math.max(0, now - (before?.at ?? now)) * perMs
  // What was spent without having been in hand, while the store could not be asked, counts now.
  const spentNow = Math.max(had + elsewhere, (before?.spent ?? 0) - back) + Math.max(0, used - had)
  const mine = Math.max(0, had - used)
  const more = want > mine ? Math.min(want - mine, share(capacity - spentNow)) : want - mine
  const held = mine + more
  const spent = spentNow + more
  const free = capacity - spent
  return {
    state: {
      spent,
      at: now,
      holders: Object.fromEntries(held > 0 ? [...others, [holder, { held, until: now + holdMs }]] : others)
    },
    lease: {
      held,
      elsewhere,
      left: Math.max(0, Math.floor(free)),
      waitMs: free >= 1 ? 0 : perMs > 0 ? Math.ceil((1 - free) / perMs) : Infinity
    }
  }
}

/** Half of what is left, so that the others find some. */
const share = (free: number): number => (free >= 1 ? Math.ceil(Math.floor(free) / 2) : 0)

/** @returns undefined for a text that no version of the gateway has written */
export function readBucketState(text: string): BucketState | undefined {
  const value = JSON.parse(text) as unknown
  return isObject(value) && typeof value['spent'] === 'number' && isObject(value['holders'])
    ? (value as unknown as BucketState)
    : undefined
}
