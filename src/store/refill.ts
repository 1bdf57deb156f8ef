// Leases tokens of a shared bucket from the store, and gives them back. While the store is away, a process goes on by
// itself.

import type { Log } from '../observe/log.ts'
import { pause, type Clock } from '../time/clock.ts'
import { shortageChannel } from './keys.ts'
import type { TokenLease } from './lease.ts'
import type { Store } from './port.ts'

/** A bucket, and what one token of it is worth. */
export interface Bucket {
  /** The key of the bucket in the store. */
  readonly key: string
  /** The most tokens that there can be. */
  readonly capacity: number
  /** Tokens that come back in a millisecond; 0: none. */
  readonly perMs: number
  /** The time for which the bucket is remembered. */
  readonly ttlMs: number
}

/** After so long without a request the store counts the tokens of a process as spent: the process may be gone. */
export const holdMs = 30_000
/** The interval at which unused tokens are given back. */
export const sweepMs = 1_000
/** The most tokens that a process leases. */
const maxLease = 1_000
/** The time that other processes have to give their tokens back. */
const shortageMs = 30
/** The longest time until an empty bucket is looked at again: its limit may have been raised. */
const maxEmptyMs = 1_000
/** Between two lines about a store that is away. */
const awayLogMs = 60_000

/** What this process has leased of a bucket. */
export interface LocalLease {
  bucket: Bucket
  /** Tokens that this process may still spend. */
  held: number
  /** Tokens spent since the store was asked last. */
  used: number
  /** Tokens that were left in the store then. */
  left: number
  askedAt: number
  usedAt: number
  /** How many tokens are leased next: the more, the faster they are spent. */
  size: number
  /** Calls that wait for a token. */
  waiting: number
  emptyUntil: number
  /** The time until there is a token, as far as the store knew at `askedAt`. */
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
  function refill(local: LocalLease): Promise<void> {
    return (local.asking ??= fetchTokens(local).finally(() => (local.asking = undefined)))
  }

  async function fetchTokens(local: LocalLease): Promise<void> {
    local.size = Math.min(maxLease, clock.now() - local.askedAt < sweepMs ? local.size * 2 : Math.ceil(local.size / 2))
    const want = (): number => Math.max(local.held + 1, local.size, local.waiting)
    const lease = await ask(local, want())
    if (lease === undefined || local.held >= 1) return
    if (lease.elsewhere > 0 && lease.waitMs > shortageMs) {
      await store.publish(shortageChannel, local.bucket.key).catch(() => 0)
      await pause(clock, shortageMs)
      await ask(local, want())
    }
    if (local.held < 1) local.emptyUntil = clock.now() + Math.min(local.waitMs, maxEmptyMs)
  }

  /** @returns undefined where the store is away */
  async function ask(local: LocalLease, want: number): Promise<TokenLease | undefined> {
    const { used, bucket } = local
    const now = clock.now()
    // What is spent from now on is told the next time.
    local.used = 0
    const request = { capacity: bucket.capacity, perMs: bucket.perMs, ttlMs: bucket.ttlMs, used, want, holdMs }
    try {
      const lease = await store.lease(bucket.key, { ...request, holder: node })
      local.held = lease.held - local.used
      local.left = lease.left
      local.waitMs = lease.waitMs
      local.askedAt = now
      return lease
    } catch (error) {
      local.used += used
      goOnAlone(local, now, error)
      return undefined
    }
  }

  /** Until the store is back this process holds the limit by itself; what it spends is told afterwards. */
  function goOnAlone(local: LocalLease, now: number, reason: unknown): void {
    const { capacity, perMs } = local.bucket
    const known = local.askedAt === -Infinity ? capacity : local.left + (now - local.askedAt) * perMs
    const all = Math.min(capacity, known + local.held)
    local.held = Math.floor(all)
    local.left = all - local.held
    local.askedAt = now
    local.waitMs = perMs > 0 ? Math.ceil((1 - local.left) / perMs) : Infinity
    if (local.held < 1) local.emptyUntil = now + Math.min(local.waitMs, maxEmptyMs)
    if (now - awayLoggedAt < awayLogMs) return
    awayLoggedAt = now
    log.warn({ reason }, 'the store is away: each process holds the limits of calls by itself until it is back')
  }

  async function giveBack(local: LocalLease): Promise<void> {
    if (local.held <= 0 && local.used <= 0) return
    // At once, so that nobody spends it meanwhile.
    local.held = 0
    local.size = 1
    await (local.asking ??= ask(local, 0)
      .then(() => {})
      .finally(() => (local.asking = undefined)))
  }

  return { refill, giveBack }
}
