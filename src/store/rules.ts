// What both adapters of the store have in common: the error, times to live, and listeners that cannot harm each other.

import { GatewayError } from '../protocol/messages.ts'
import type { Log } from '../observe/log.ts'

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

export interface ChannelListeners {
  /** @returns what removes it; idempotent */
  add(channel: string, listener: (message: string) => void): () => void
  deliver(channel: string, message: string): void
  has(channel: string): boolean
  names(): string[]
}

/** The listeners of this process, by channel. Where one throws it is logged, and the others still get the message. */
export function createChannelListeners(log: Log): ChannelListeners {
  const channels = new Map<string, Set<{ listener: (message: string) => void }>>()
  return {
    add(channel, listener) {
      const entry = { listener } // An object, because the same function may be added twice.
      const entries = channels.get(channel) ?? new Set()
      channels.set(channel, entries.add(entry))
      return () => {
        if (entries.delete(entry) && entries.size === 0) channels.delete(channel)
      }
    },
    deliver(channel, message) {
      const entries = channels.get(channel) ?? new Set()
      // A copy, because listeners may add and remove listeners; those removed meanwhile are skipped.
      for (const entry of Array.from(entries)) if (entries.has(entry)) guarded(log, () => entry.listener(message))
    },
    has: (channel) => channels.has(channel),
    names: () => [...channels.keys()]
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
