// Token buckets that all processes on a store share, spent from leases: a call takes a token that this process has in
// hand, and asks nobody. More are fetched in the background before the hand is empty; only who finds it empty waits.
// What is in hand is given back when it is not used, or when another process finds no more.

import { every } from '../time/clock.ts'
import { shortageChannel } from './keys.ts'
import { createRefill, holdMs, sweepMs, type Bucket, type Hand, type RefillOptions } from './refill.ts'

export interface Shortage {
  readonly bucket: Bucket
  /** Until there may be a token again; Infinity where none comes back. */
  readonly waitMs: number
}

export type LeasedBuckets = ReturnType<typeof createLeasedBuckets>

/** Buckets that a process knows at once: the least recently used are given back, and read again when they are used. */
const maxBuckets = 20_000
/** Buckets that are given back at a time. */
const maxGivenBack = 500
/** Where what is left is so many times what is in hand, nobody misses that. */
const plenty = 4

export function createLeasedBuckets(options: RefillOptions) {
  const { store, clock } = options
  /** By the keys of their buckets, the least recently used first. */
  const hands = new Map<string, Hand>()
  const { refill, giveBack } = createRefill(options)
  const sweeper = every(clock, sweepMs, sweep)
  const listening = store.shared ? store.subscribe(shortageChannel, (key) => giveBackNow(key)) : undefined

  function handOf(bucket: Bucket): Hand {
    const known = hands.get(bucket.key)
    if (known !== undefined) {
      // While there is room for many more, nobody is forgotten, and the order is of no use.
      if (hands.size > maxBuckets / 2 && hands.delete(bucket.key)) hands.set(bucket.key, known)
      // A reload may have changed its size.
      if (known.bucket.capacity !== bucket.capacity) known.emptyUntil = 0
      known.bucket = bucket
      return known
    }
    const counts = { held: 0, used: 0, left: 0, size: 1, waiting: 0, waitMs: 0 }
    const times = { askedAt: -Infinity, usedAt: clock.now(), emptyUntil: -Infinity }
    const hand: Hand = { bucket, ...counts, ...times, asking: undefined }
    hands.set(bucket.key, hand)
    const [oldest] = hands.size > maxBuckets ? hands.values() : []
    if (oldest !== undefined && hands.delete(oldest.bucket.key)) void giveBack(oldest)
    return hand
  }

  const isReady = (hand: Hand): boolean => hand.held >= 1 && clock.now() < hand.askedAt + holdMs

  function spend(all: readonly Hand[]): undefined {
    const now = clock.now()
    for (const hand of all) {
      hand.held--
      hand.used++
      hand.usedAt = now
      if (hand.held < hand.size / 2 && hand.left > plenty * hand.size && hand.asking === undefined) void refill(hand)
    }
  }

  async function spendLater(all: readonly Hand[]): Promise<Shortage | undefined> {
    for (const hand of all) hand.waiting++
    try {
      for (;;) {
        const lacking = all.filter((hand) => !isReady(hand))
        if (lacking.length === 0) return spend(all)
        const now = clock.now()
        const empty = lacking.find(({ emptyUntil }) => emptyUntil > now)
        if (empty !== undefined) return { bucket: empty.bucket, waitMs: empty.askedAt + empty.waitMs - now }
        await Promise.all(lacking.map(refill))
      }
    } finally {
      for (const hand of all) hand.waiting--
    }
  }

  function giveBackNow(key: string): void {
    const hand = hands.get(key)
    if (hand !== undefined && hand.asking === undefined && hand.held >= 1) void giveBack(hand)
  }

  function sweep(): void {
    const now = clock.now()
    let givenBack = 0
    for (const [key, hand] of hands) {
      if (hand.asking !== undefined || hand.waiting > 0 || now - hand.usedAt < sweepMs) continue
      if (hand.held <= 0 && hand.used <= 0) {
        if (hand.emptyUntil <= now) hands.delete(key)
      } else if (hand.held * plenty > hand.left || now - hand.askedAt > holdMs / 2) {
        if (givenBack++ >= maxGivenBack) return
        void giveBack(hand)
      }
    }
  }

  return {
    /**
     * Takes one token of each bucket, or of none.
     * @returns undefined where they were taken; a promise only where not all were in hand. Never rejects
     */
    take(buckets: readonly Bucket[]): Shortage | undefined | Promise<Shortage | undefined> {
      const all = buckets.map(handOf)
      return all.every(isReady) ? spend(all) : spendLater(all)
    },
    /** How many tokens there are, as far as this process knows. */
    remaining({ key, capacity, perMs }: Bucket): number {
      const hand = hands.get(key)
      if (hand === undefined || hand.askedAt === -Infinity) return capacity
      const back = Math.max(0, clock.now() - hand.askedAt) * perMs
      return Math.max(0, Math.floor(Math.min(capacity, hand.held + hand.left + back)))
    },
    /** Gives back what is in hand. */
    async close(): Promise<void> {
      sweeper.close()
      await listening?.then((stop) => stop())
      await Promise.all(
        [...hands.values()].map(async (hand) => hand.asking?.then(() => giveBack(hand)) ?? giveBack(hand))
      )
    }
  }
}
