// What both adapters owe the port alike: how a failure looks, what a time to live may be, and that a broken listener harms nobody.

import { GatewayError } from '../protocol/errors.ts'
import type { Log } from '../observe/log.ts'

/**
 * @param message goes to callers of every tenant: no path, no address, no key
 * @param cause for the log; whoever passes it has taken out credentials and values
 */
export function unavailable (message: string, cause?: unknown): GatewayError {
  return new GatewayError('unavailable', message, { cause, headers: { 'Retry-After': '1' } })
}

/**
 * A time to live in whole milliseconds, at least one: Redis refuses zero, and what is written must be gone a moment later all the same.
 * @throws RangeError on NaN and infinities: a fault of ours, for "kept for good" is said by leaving the time out
 */
export function wholeMs (ttlMs: number): number {
  if (!Number.isFinite(ttlMs)) throw new RangeError(`A time to live must be a number of milliseconds, not ${ttlMs}.`)
  return Math.max(1, Math.ceil(ttlMs))
}

export interface Listeners {
  /** @returns how to take it away again; a second call does nothing */
  add (channel: string, listener: (message: string) => void): () => void
  deliver (channel: string, message: string): void
  has (channel: string): boolean
  names (): string[]
}

/** Who listens to which channel in this process. A listener that throws is logged; the others still hear the message. */
export function createListeners (log: Log): Listeners {
  const channels = new Map<string, Set<{ listener: (message: string) => void }>>()
  return {
    add (channel, listener) {
      const entry = { listener } // The same function may listen twice.
      const entries = channels.get(channel) ?? new Set()
      channels.set(channel, entries.add(entry))
      return () => {
        if (entries.delete(entry) && entries.size === 0) channels.delete(channel)
      }
    },
    deliver (channel, message) {
      const entries = channels.get(channel) ?? new Set()
      // Of those who listen now: not whoever is taken away or added by a listener on the way.
      for (const entry of Array.from(entries)) if (entries.has(entry)) guarded(log, () => entry.listener(message))
    },
    has: (channel) => channels.has(channel),
    names: () => [...channels.keys()]
  }
}

/** Runs a listener that is not ours to trust. */
export function guarded (log: Log, listener: () => void): void {
  try {
    listener()
  } catch (err) {
    // The listener's own loss: it missed this message. Everybody else goes on.
    log.error({ err }, 'a listener of the store threw')
  }
}
