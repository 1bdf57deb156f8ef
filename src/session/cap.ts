// The cap of sessions per caller: every session sits on a seat, a key of its own that lives exactly as long. A number that is counted up
// and down would forget sessions that live on by use, or never forget those that nobody ended.

import { principalSeatKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Owner } from './sessions.ts'

export interface Seats {
  /** Atomic, also between processes. @returns the seat, below `max`; undefined where none was found */
  take (owner: Owner, sessionKey: string, max: number, ttlMs: number): Promise<number | undefined>
  /** With every prolongation of the session. */
  prolong (owner: Owner, seat: number, sessionKey: string, ttlMs: number): Promise<void>
  leave (owner: Owner, seat: number, sessionKey: string): Promise<void>
}

/** So many seats are looked at. A higher cap is refused a little early when nearly all of its seats are taken. */
const looks = 128

export function createSeats ({ store, randomBytes }: { readonly store: Store, readonly randomBytes: (size: number) => Buffer }): Seats {
  const keyOf = (owner: Owner, seat: number): string => principalSeatKey(owner.tenant, owner.issuer, owner.subject, owner.clientId, seat)
  const random = (): number => randomBytes(4).readUInt32BE()

  return {
    async take (owner, sessionKey, max, ttlMs) {
      const from = random()
      for (let look = 0; look < Math.min(max, looks); look++) {
        const seat = (max <= looks ? from + look : random()) % max
        if (await store.set(keyOf(owner, seat), sessionKey, { ttlMs, when: 'absent' })) return seat
      }
      return undefined
    },
    async prolong (owner, seat, sessionKey, ttlMs) {
      const key = keyOf(owner, seat)
      // Taken back where the store lost it; not from whoever has it now.
      if (!await store.touch(key, ttlMs)) await store.set(key, sessionKey, { ttlMs, when: 'absent' })
    },
    async leave (owner, seat, sessionKey) {
      const key = keyOf(owner, seat)
      if (await store.get(key) === sessionKey) await store.delete(key)
    }
  }
}
