// A lock that all processes share, kept in the store with a lease: for work that only one process may do at a time,
// such as renewing or replacing the grant of a person.

import { randomBytes } from 'node:crypto'
import type { Store } from '../store/port.ts'
import { type Clock, every, pause } from '../time/clock.ts'

/** The lock of a killed process ends after this time, in milliseconds: less than the timeout of a call. */
const leaseMs = 5_000
const extendMs = 1_000
const pollMs = 100

interface LockOptions {
  readonly store: Pick<Store, 'set' | 'delete'>
  readonly clock: Clock
  /** The key of the store that says that the lock is held. */
  readonly key: string
  /** The longest time for which the holder extends its lease, in milliseconds. */
  readonly longestMs: number
}

export type Release = () => Promise<unknown>

/**
 * Takes the lock.
 * @returns the function that releases it, or undefined if another process holds it
 */
export async function tryLock({ store, clock, key, longestMs }: LockOptions): Promise<Release | undefined> {
  const own = randomBytes(12).toString('base64url')
  if (!(await store.set(key, own, { when: 'absent', ttlMs: leaseMs }))) return undefined
  const until = clock.now() + longestMs
  const extending = every(clock, extendMs, () => {
    // While the store is away for a moment, the lease goes on until it ends.
    // Only its own: this process may have been held up, and another one may hold the lock now.
    if (clock.now() < until) store.set(key, own, { ttlMs: leaseMs, when: { is: own } }).catch(() => {})
  })
  return async () => {
    extending.close()
    // It may have taken too long, and another process may hold the lock now.
    return await store.delete(key, { is: own })
  }
}

/**
 * Takes the lock, and waits for it while another process holds it, for `longestMs` at most.
 * @returns the function that releases it, or undefined if another process still holds it then
 */
export async function lock(options: LockOptions): Promise<Release | undefined> {
  for (let waited = 0; waited < options.longestMs; waited += pollMs) {
    const release = await tryLock(options)
    if (release !== undefined) return release
    await pause(options.clock, pollMs)
  }
  return undefined
}
