// Tokens of a shared bucket on their way between the store and the hand of this process. While the store is away, a
// process goes on by itself.

import type { Log } from '../observe/log.ts'
import { pause, type Clock } from '../time/clock.ts'
import { shortageChannel } from './keys.ts'
import type { TokenLease } from './lease.ts'
import type { Store } from './port.ts'

/** A bucket, and what one token of it is worth. */
export interface Bucket {
  /** In the store. */
  readonly key: string
  /** The most tokens that there can be. */
  readonly capacity: number
  /** How many come back in a millisecond; 0: none. */
  readonly perMs: number
  /** For how long it is remembered. */
  readonly ttlMs: number
}

/** After so long without being asked the store takes what a process has in hand for spent: the process may be gone. */
export const holdMs = 30_000
/** Interval at which what is not used is given back. */
export const sweepMs = 1_000
/** The most tokens in hand. */
const maxLease = 1_000
/** How long another process is given to give back what it has in hand. */
const shortageMs = 30
/** At the longest, until an empty bucket is looked at again: its limit may have been raised. */
const maxEmptyMs = 1_000
/** Between two lines about a store that is away. */
const awayLogMs = 60_000

/** What this process has in hand of a bucket. */
export interface Hand {
  bucket: Bucket
  held: number
  /** Since the store was asked last. */
  used: number
  left: number
  askedAt: number
  usedAt: number
  /** How many are fetched next: as many more as they are used up faster. */
  size: number
  /** Those who wait for a token. */
  waiting: number
  emptyUntil: number
  /** Until there is one, as far as the store knew at `askedAt`. */
  waitMs: number
  asking: Promise<void> | undefined
}

export interface RefillOptions {
  readonly store: Store
  readonly clock: Clock
  /** The name of this process, unique on the store. */
  readonly node: string
  readonly log: Log
}

export function createRefill({ store, clock, node, log }: RefillOptions) {
  let awayLoggedAt = -Infinity

  /** Never rejects. By one at a time for each bucket. */
  function refill(hand: Hand): Promise<void> {
    return (hand.asking ??= fetchTokens(hand).finally(() => (hand.asking = undefined)))
  }

  async function fetchTokens(hand: Hand): Promise<void> {
    hand.size = Math.min(maxLease, clock.now() - hand.askedAt < sweepMs ? hand.size * 2 : Math.ceil(hand.size / 2))
    const want = (): number => Math.max(hand.held + 1, hand.size, hand.waiting)
    const lease = await ask(hand, want())
    if (lease === undefined || hand.held >= 1) return
    if (lease.elsewhere > 0 && lease.waitMs > shortageMs) {
      await store.publish(shortageChannel, hand.bucket.key).catch(() => 0)
      await pause(clock, shortageMs)
      await ask(hand, want())
    }
    if (hand.held < 1) hand.emptyUntil = clock.now() + Math.min(hand.waitMs, maxEmptyMs)
  }

  /** @returns undefined where the store is away */
  async function ask(hand: Hand, want: number): Promise<TokenLease | undefined> {
    const { used, bucket } = hand
    const now = clock.now()
    // What is spent from now on is told the next time.
    hand.used = 0
    const request = { capacity: bucket.capacity, perMs: bucket.perMs, ttlMs: bucket.ttlMs, used, want, holdMs }
    try {
      const lease = await store.lease(bucket.key, { ...request, holder: node })
      hand.held = lease.held - hand.used
      hand.left = lease.left
      hand.waitMs = lease.waitMs
      hand.askedAt = now
      return lease
    } catch (error) {
      hand.used += used
      goOnAlone(hand, now, error)
      return undefined
    }
  }

  /** Until the store is back this process holds the limit by itself; what it spends is told afterwards. */
  function goOnAlone(hand: Hand, now: number, reason: unknown): void {
    const { capacity, perMs } = hand.bucket
    const known = hand.askedAt === -Infinity ? capacity : hand.left + (now - hand.askedAt) * perMs
    const all = Math.min(capacity, known + hand.held)
    hand.held = Math.floor(all)
    hand.left = all - hand.held
    hand.askedAt = now
    hand.waitMs = perMs > 0 ? Math.ceil((1 - hand.left) / perMs) : Infinity
    if (hand.held < 1) hand.emptyUntil = now + Math.min(hand.waitMs, maxEmptyMs)
    if (now - awayLoggedAt < awayLogMs) return
    awayLoggedAt = now
    log.warn({ reason }, 'the store is away: each process holds the limits of calls by itself until it is back')
  }

  async function giveBack(hand: Hand): Promise<void> {
    if (hand.held <= 0 && hand.used <= 0) return
    // At once, so that nobody spends it meanwhile.
    hand.held = 0
    hand.size = 1
    await (hand.asking ??= ask(hand, 0)
      .then(() => {})
      .finally(() => (hand.asking = undefined)))
  }

  return { refill, giveBack }
}
