// The port behind which state is kept: keys and strings, nothing of MCP; and what its adapters have in common.
// test/store/contract.test.ts holds every adapter to it.

import { GatewayError } from '../protocol/messages.ts'
import type { Log } from '../observe/log.ts'
import type { TokenLease, LeaseRequest } from './lease.ts'

export interface SetOptions {
  /** The time to live, in milliseconds; absent: the value is kept forever. */
  readonly ttlMs?: number
  /** Write only if the key is absent, or present, or has this very value: the answer says whether it was written. */
  readonly when?: 'absent' | 'present' | { readonly is: string }
}

export interface MemberOptions {
  /** The set is forgotten so long after the latest addition. */
  readonly ttlMs: number
  /** Members that sort before it are removed. */
  readonly from: string
}

export interface AppendOptions {
  readonly ttlMs: number
  readonly keep: number
  readonly isLazy?: boolean
}

export interface PublishOptions {
  /** Set for many or long messages, which must not delay others. They keep their order among themselves. */
  readonly isBulk?: true
}

/**
 * Every call settles within a second in which this process can run, or later where many long values are under way:
 * with its answer, or with GatewayError `unavailable` where the store cannot be reached. An implementation never hangs,
 * never queues calls for a store that is away, and heals by itself.
 */
export interface Store {
  get(key: string): Promise<string | undefined>
  /** @returns false only where `when` was not met */
  set(key: string, value: string, options?: SetOptions): Promise<boolean>
  /**
   * A value, a counter, a log or a sorted set.
   * @param when deletes a value only if it is this very one, in one step: it may be another one's by now
   * @returns whether there was something to delete
   */
  delete(key: string, when?: { readonly is: string }): Promise<boolean>
  /** Gives a live key a new time to live. @returns whether the key was there */
  touch(key: string, ttlMs: number): Promise<boolean>
  /** Adds to a counter that starts at zero and ends with its window. @returns the new value */
  count(key: string, by: number, ttlMs: number): Promise<number>
  /** Tokens of a shared bucket, for one process to spend (lease.ts). It asks once at a time for each bucket. */
  lease(key: string, request: LeaseRequest): Promise<TokenLease>
  /**
   * Adds an entry to the end of a log, of which the last `keep` entries are kept until `ttlMs` after the latest
   * addition. `isLazy`: nobody waits for it, and a store that this process has to itself may write it a little later;
   * whoever reads here sees it at once.
   */
  append(key: string, entry: string, options: AppendOptions): Promise<void>
  /** The entries of a log as it is at one moment, oldest first; none where there is no log. */
  entries(key: string): Promise<string[]>
  /** Adds a text to a sorted set, which has each text once. */
  addMember(key: string, member: string, options: MemberOptions): Promise<void>
  removeMember(key: string, member: string): Promise<void>
  /** Returns the last `max` members of a sorted set that sort before `before`, the last one first; by UTF-8 bytes. */
  members(key: string, options: { readonly max: number; readonly before?: string }): Promise<string[]>
  /**
   * Sends a message to every subscriber of the channel, in all processes on the same store. A message may be lost.
   * @returns the number of processes that get it; 0 only if nobody listens
   */
  publish(channel: string, message: string, options?: PublishOptions): Promise<number>
  /**
   * Does not fail while the store is away: `live` stays false until then. @returns a function that unsubscribes; until
   * it resolves, the listener hears what publishers were told that it gets
   */
  subscribe(channel: string, listener: (message: string) => void): Promise<() => Promise<void>>
  /** Called whenever messages may have been missed: local copies that rely on publish are then worth nothing. */
  onLost(listener: () => void): void
  /** Whether messages arrive right now. While they do not, local copies may not be trusted. */
  readonly live: boolean
  /** Whether other processes write to it, too, and one of them may end before it has told of what it wrote. */
  readonly shared: boolean
  /** Whether what it keeps outlives this process. */
  readonly lasting: boolean
  /** Resolves when the store answers; rejects with GatewayError `unavailable`. */
  ping(): Promise<void>
  close(): Promise<void>
}

/**
 * @param message goes to callers of every tenant: no path, no address, no key
 * @param cause for the log, without credentials and values
 */
export function unavailable(message: string, cause?: unknown): GatewayError {
  return new GatewayError('unavailable', message, { cause, headers: { 'Retry-After': '1' } })
}

/**
 * A time to live in whole milliseconds, at least one, because Redis refuses zero.
 * @throws RangeError on NaN and infinities, a fault of the caller: what is kept for good has no time to live
 */
export function wholeMs(ttlMs: number): number {
  if (!Number.isFinite(ttlMs)) throw new RangeError(`A time to live must be a number of milliseconds, not ${ttlMs}.`)
  return Math.max(1, Math.ceil(ttlMs))
}

/** The listeners of this process, by channel. Where one throws it is logged, and the others still get the message. */
export function createChannelListeners(log: Log) {
  const channels = new Map<string, Set<{ listener: (message: string) => void }>>()
  return {
    /**
     * @returns a function that removes the listener, after `leave` where it is the last of its channel: until then,
     * others are told that it hears them. Idempotent
     */
    add(channel: string, listener: (message: string) => void): (leave?: () => Promise<unknown>) => Promise<void> {
      const entry = { listener } // An object, because the same function may be added twice.
      const entries = channels.get(channel) ?? new Set()
      channels.set(channel, entries.add(entry))
      return async (leave) => {
        if (entries.size === 1 && entries.has(entry)) await leave?.()
        if (entries.delete(entry) && entries.size === 0) channels.delete(channel)
      }
    },
    deliver(channel: string, message: string): void {
      const entries = channels.get(channel) ?? new Set()
      // A copy, because listeners may add and remove listeners; those removed meanwhile are skipped.
      for (const entry of Array.from(entries)) if (entries.has(entry)) guarded(log, () => entry.listener(message))
    },
    has: (channel: string) => channels.has(channel),
    names: (): string[] => [...channels.keys()]
  }
}

/** Runs a listener; what it throws is logged. */
export function guarded(log: Log, listener: () => void): void {
  try {
    listener()
  } catch (err) {
    // Only this listener has missed the message.
    log.error({ err }, 'a listener of the store threw')
  }
}
