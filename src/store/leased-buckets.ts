// Token buckets that all processes on a store share, spent from leases: a call takes a token that this process has
// leased, and asks nobody. More are leased in the background before the last one is spent; only a call that finds none
// waits. A lease is given back when it is not used, or when another process finds no more tokens.

import { every } from '../time/clock.ts'
import { shortageChannel } from './keys.ts'
import { createRefill, holdMs, sweepMs, type Bucket, type LocalLease, type RefillOptions } from './refill.ts'

export interface Shortage {
  readonly bucket: Bucket
  /** The time until there may be a token again; Infinity where none comes back. */
  readonly waitMs: number
}

export type LeasedBuckets = ReturnType<typeof createLeasedBuckets>

/** Buckets that a process knows at once: the least recently used are given back, and read again when they are used. */
const maxBuckets = 20_000
/** Buckets that are given back at a time. */
const maxGivenBack = 500
/** Where so many times as many tokens are left as a process holds, no other process misses those. */
const plenty = 4

export function createLeasedBuckets(options: RefillOptions) {
  const { store, clock } = options
  /** The leases of this process by the keys of their buckets, the least recently used first. */
  const leases = new Map<string, LocalLease>()
  const { refill, giveBack } = createRefill(options)
  const sweeper = every(clock, sweepMs, sweep)
  const listening = store.shared ? store.subscribe(shortageChannel, (key) => giveBackNow(key)) : undefined

  function leaseOf(bucket: Bucket): LocalLease {
    const known = leases.get(bucket.key)
    if (known !== undefined) {
      // While there is room for many more, nobody is forgotten, and the order is of no use.
      if (leases.size > maxBuckets / 2 && leases.delete(bucket.key)) leases.set(bucket.key, known)
      // A reload may have changed its size.
      if (known.bucket.capacity !== bucket.capacity) known.emptyUntil = 0
      known.bucket = bucket
      return known
    }
    const counts = { held: 0, used: 0, left: 0, size: 1, waiting: 0, waitMs: 0 }
    const times = { askedAt: -Infinity, usedAt: clock.now(), emptyUntil: -Infinity }
    const lease: LocalLease = { bucket, ...counts, ...times, asking: undefined }
    leases.set(bucket.key, lease)
    const [oldest] = leases.size > maxBuckets ? leases.values() : []
    if (oldest !== undefined && leases.delete(oldest.bucket.key)) void giveBack(oldest)
    return lease
  }

  const isReady = (lease: LocalLease): boolean => lease.held >= 1 && clock.now() < lease.askedAt + holdMs

  function spend(all: readonly LocalLease[]): undefined {
    const now = clock.now()
    for (const lease of all) {
      lease.held--
      lease.used++
      lease.usedAt = now
      if (lease.held < lease.size / 2 && lease.left > plenty * lease.size && lease.asking === undefined)
        void refill(lease)
    }
  }

  async function spendLater(all: readonly LocalLease[]): Promise<Shortage | undefined> {
    for (const lease of all) lease.waiting++
    try {
      for (;;) {
        const lacking = all.filter((lease) => !isReady(lease))
        if (lacking.length === 0) return spend(all)
        const now = clock.now()
        const empty = lacking.find(({ emptyUntil }) => emptyUntil > now)
        if (empty !== undefined) return { bucket: empty.bucket, waitMs: empty.askedAt + empty.waitMs - now }
        await Promise.all(lacking.map(refill))
      }
    } finally {
      for (const lease of all) lease.waiting--
    }
  }

  function giveBackNow(key: string): void {
    const lease = leases.get(key)
    if (lease !== undefined && lease.asking === undefined && lease.held >= 1) void giveBack(lease)
  }

  function sweep(): void {
    const now = clock.now()
    let givenBack = 0
    for (const [key, lease] of leases) {
      if (lease.asking !== undefined || lease.waiting > 0 || now - lease.usedAt < sweepMs) continue
      if (lease.held <= 0 && lease.used <= 0) {
        if (lease.emptyUntil <= now) leases.delete(key)
      } else if (lease.held * plenty > lease.left || now - lease.askedAt > holdMs / 2) {
        if (givenBack++ >= maxGivenBack) return
        void giveBack(lease)
      }
    }
  }

  return {
    /**
     * Takes one token of each bucket, or of none.
     * @returns undefined where they were taken; a promise only where not all were in hand. Never rejects
     */
    take(buckets: readonly Bucket[]): Shortage | undefined | Promise<Shortage | undefined> {
      const all = buckets.map(leaseOf)
      return all.every(isReady) ? spend(all) : spendLater(all)
    },
    /** Returns how many tokens there are, as far as this process knows. */
    remaining({ key, capacity, perMs }: Bucket): number {
      const lease = leases.get(key)
      if (lease === undefined || lease.askedAt === -Infinity) return capacity
      const back = Math.max(0, clock.now() - lease.askedAt) * perMs
      return Math.max(0, Math.floor(Math.min(capacity, lease.held + lease.left + back)))
    },
    /** Gives all leased tokens back. */
    async close(): Promise<void> {
      sweeper.close()
      await listening?.then((stop) => stop())
      await Promise.all(
        [...leases.values()].map(async (lease) => lease.asking?.then(() => giveBack(lease)) ?? giveBack(lease))
      )
    }
  }
}
