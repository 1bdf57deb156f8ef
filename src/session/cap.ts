// The cap of sessions per caller: every session sits on a seat, a key of its own that lives exactly as long. A number that is counted up
// and down would forget sessions that live on by use, or never forget those that nobody ended.

import { LRUCache } from 'lru-cache'
import { digest, principalSeatKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Owner } from './sessions.ts'

export interface Seats {
  /** Atomic, also between processes. @returns the seat, below `max`; undefined where none was found */
  take (owner: Owner, sessionKey: string, max: number, ttlMs: number): Promise<number | undefined>
  /** With every prolongation of the session. */
  prolong (owner: Owner, seat: number, sessionKey: string, ttlMs: number): Promise<void>
  leave (owner: Owner, seat: number, sessionKey: string): Promise<void>
}

export interface SeatsOptions {
  readonly store: Store
  readonly clock: { now (): number }
  readonly randomBytes: (size: number) => Buffer
}

/** Tried blindly, one after the other: enough for all but those who are near their cap. */
const guesses = 4
/** So many seats are looked at, all at once. A higher cap is refused a little early when nearly all of its seats are taken. */
const looks = 128
/** So long a caller without a free seat is not looked at again: to be refused must not cost the store more than it costs the caller. */
const fullMs = 1_000
const fullCallers = 10_000

export function createSeats ({ store, clock, randomBytes }: SeatsOptions): Seats {
  /** Callers that had no seat left, and when that was. Ends with the first session that ends here; elsewhere, with its time. */
  const full = new LRUCache<string, number>({ max: fullCallers })
  const nameOf = ({ tenant, issuer, subject, clientId }: Owner): string => digest(JSON.stringify([tenant, issuer, subject, clientId]))
  const keyOf = (owner: Owner, seat: number): string => principalSeatKey(owner.tenant, owner.issuer, owner.subject, owner.clientId, seat)
  const random = (): number => randomBytes(4).readUInt32BE()

  return {
    async take (owner, sessionKey, max, ttlMs) {
      const name = nameOf(owner)
      const since = full.get(name)
      // Either way: a clock that is set back must not prolong it.
      if (since !== undefined && Math.abs(clock.now() - since) < fullMs) return undefined
      const from = random()
      const seats = Array.from({ length: Math.min(max, looks) }, (_, at) => (max <= looks ? from + at : random()) % max)
      const sit = async (seat: number): Promise<boolean> => await store.set(keyOf(owner, seat), sessionKey, { ttlMs, when: 'absent' })
      for (const seat of seats.slice(0, guesses)) if (await sit(seat)) return seat
      const taken = await Promise.all(seats.slice(guesses).map((seat) => store.get(keyOf(owner, seat))))
      for (const [at, sitter] of taken.entries()) {
        const seat = seats[guesses + at]
        if (sitter === undefined && seat !== undefined && await sit(seat)) return seat
      }
      full.set(name, clock.now())
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
      full.delete(nameOf(owner))
    }
  }
}
