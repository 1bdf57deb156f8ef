// Turns of the processes: one does what only one may do, such as renewing or replacing the grant of a person, and the
// others wait.

import { randomBytes } from 'node:crypto'
import type { Person } from '../config/auth/upstream-auth.ts'
import { grantRenewalKey } from '../store/keys.ts'
import { type Store, unavailable } from '../store/port.ts'
import { type Clock, every, pause } from '../time/clock.ts'

/** So long one process renews, and the others wait for what it gets. */
export const renewalMs = 15_000
/** Its turn ends so soon where it is killed: less than a call waits for its upstream. */
const leaseMs = 5_000
const beatMs = 1_000
const pollMs = 100

/**
 * One process is at it until it ends its turn, or ends itself.
 * @param key where the others see that
 * @param longestMs so long at most
 * @returns what ends the turn; undefined: it is another one's
 */
export async function begunTurn(
  store: Pick<Store, 'set' | 'delete'>,
  clock: Clock,
  key: string,
  longestMs: number
): Promise<(() => Promise<unknown>) | undefined> {
  const own = randomBytes(12).toString('base64url')
  if (!(await store.set(key, own, { when: 'absent', ttlMs: leaseMs }))) return undefined
  const until = clock.now() + longestMs
  const beat = every(clock, beatMs, () => {
    // A store that is away for a moment has it all the same until it ends.
    // Only its own: it may have been held up, and be another one's turn.
    if (clock.now() < until) store.set(key, own, { ttlMs: leaseMs, when: { is: own } }).catch(() => {})
  })
  return async () => {
    beat.close()
    // It may have taken too long, and be another one's turn.
    return await store.delete(key, { is: own })
  }
}

export function createRenewalTurns(store: Store, clock: Clock) {
  /** One of all processes may renew or replace. @returns what lets the next one; undefined: another one does it */
  async function isFirst(person: Person, upstream: string): Promise<(() => Promise<unknown>) | undefined> {
    const key = grantRenewalKey(person.tenant, person.issuer, person.subject, upstream)
    return await begunTurn(store, clock, key, renewalMs)
  }

  async function turn(person: Person, upstream: string): Promise<() => Promise<unknown>> {
    for (let waited = 0; waited < renewalMs; waited += pollMs) {
      const end = await isFirst(person, upstream)
      if (end !== undefined) return end
      await pause(clock, pollMs)
    }
    throw unavailable('What was connected before is still being renewed. Try again in a moment.')
  }

  return { isFirst, turn }
}
