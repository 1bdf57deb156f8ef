// The limit of sessions per caller: every session has a slot, a store key that lives exactly as long. A counter would
// forget sessions that live on by use, or never forget those that nobody ended.

import { LRUCache } from 'lru-cache'
import { GatewayError } from '../protocol/messages.ts'
import { digest, principalSeatKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { SessionRecord } from './session-record.ts'

/** Slots tried without a look at them: enough for all callers but those near their limit. */
const guesses = 4
/** Slots looked at, all at once. A limit far above this is reported a little early, when nearly all slots are taken. */
const maxLooks = 128
/** So long a caller without a free slot is refused unseen: a refusal must not cost the store more than the caller. */
const fullMs = 1_000
const maxFullOwners = 10_000

/** Slots are of one epoch, as sessions are: those of sessions that ended with the one before are free. */
type Holder = Pick<SessionRecord, 'owner' | 'epoch'>

export type SessionSlots = ReturnType<typeof createSessionSlots>

export function createSessionSlots(store: Store, clock: { now(): number }, randomBytes: (size: number) => Buffer) {
  /** When an owner had no free slot: forgotten after `fullMs`, and when one of its sessions ends at this process. */
  const fullSince = new LRUCache<string, number>({ max: maxFullOwners })
  // Of the person, whatever the client: one may have as many client ids as it likes.
  const nameOf = ({ owner: { tenant, issuer, subject }, epoch }: Holder): string =>
    digest(JSON.stringify([tenant, issuer, subject, epoch]))
  const keyOf = ({ owner: { tenant, issuer, subject }, epoch }: Holder, slot: number): string =>
    principalSeatKey(tenant, issuer, subject, `${epoch}.${slot}`)
  const random = (): number => randomBytes(4).readUInt32BE()

  return {
    /** Atomic, also between processes. @returns the slot, a number below `max`; undefined where none is free */
    async take(holder: Holder, sessionKey: string, max: number, ttlMs: number): Promise<number | undefined> {
      const name = nameOf(holder)
      const since = fullSince.get(name)
      // Math.abs: a clock that is set back must not prolong it.
      if (since !== undefined && Math.abs(clock.now() - since) < fullMs) return undefined
      const from = random()
      const slots = (begin: number, end: number): number[] =>
        Array.from(
          { length: Math.max(0, Math.min(end, max) - begin) },
          (_, at) => (max <= maxLooks ? from + begin + at : random()) % max
        )
      const claim = (slot: number): Promise<boolean> =>
        store.set(keyOf(holder, slot), sessionKey, { ttlMs, when: 'absent' })
      for (const slot of slots(0, guesses)) if (await claim(slot)) return slot
      const others = slots(guesses, maxLooks)
      const taken = await Promise.all(others.map((slot) => store.get(keyOf(holder, slot))))
      for (const [at, slot] of others.entries()) if (taken[at] === undefined && (await claim(slot))) return slot
      fullSince.set(name, clock.now())
      return undefined
    },
    async prolong(session: Holder & { readonly seat: number }, sessionKey: string, ttlMs: number): Promise<void> {
      const key = keyOf(session, session.seat)
      // Claimed again where the store lost it; never taken from the session that has it now.
      if (!(await store.touch(key, ttlMs))) await store.set(key, sessionKey, { ttlMs, when: 'absent' })
    },
    async release(session: Holder & { readonly seat: number }, sessionKey: string): Promise<void> {
      const key = keyOf(session, session.seat)
      if ((await store.get(key)) === sessionKey) await store.delete(key)
      fullSince.delete(nameOf(session))
    }
  }
}

export function tooManySessions(limit: number, idleMs: number): GatewayError {
  const message =
    `This caller has ${limit} sessions, which is the limit ` +
    '(limits.sessionsPerPrincipal). End sessions with DELETE, or retry later.'
  const seconds = Math.ceil(Math.min(idleMs, 60_000) / 1000)
  return new GatewayError('too_many', message, { headers: { 'Retry-After': String(seconds) } })
}
