// The limits of sessions per caller and per tenant: every session has a slot in each, a store key that lives exactly as
// long. A counter would forget sessions that live on by use, or never forget those that nobody ended.

import { LRUCache } from 'lru-cache'
import { GatewayError } from '../protocol/messages.ts'
import { digest, principalSeatKey, tenantSeatKey } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { SessionRecord } from './session-record.ts'
import type { Unfinished } from './unfinished.ts'

/** Slots tried without a look at them: enough for all but those near their limit. */
const guesses = 4
/** Slots looked at, all at once. A limit far above this is reported a little early, when nearly all slots are taken. */
const maxLooks = 128
/**
 * The time for which a caller without a free slot is refused without asking the store: a refusal must not cost the
 * store more than the caller.
 */
const fullMs = 1_000
const maxFullOwners = 10_000

/** Slots are of one epoch, as sessions are: those of sessions that ended with the one before are free. */
type Holder = Pick<SessionRecord, 'owner' | 'epoch'>
type Seats = Pick<SessionRecord, 'seat' | 'tenantSeat'>

/** The owner of a row of slots. */
interface Row {
  readonly name: string
  readonly keyOf: (slot: number) => string
}

interface SessionCounts {
  readonly perPrincipal: number
  /** undefined: no limit. */
  readonly perTenant: number | undefined
  readonly idleMs: number
}

export function createSessionSlots(
  store: Store,
  clock: { now(): number },
  randomBytes: (size: number) => Buffer,
  unfinished: Pick<Unfinished, 'orLater'>
) {
  /** When a row had no free slot: forgotten after `fullMs`, and when one of its sessions ends at this process. */
  const fullSince = new LRUCache<string, number>({ max: maxFullOwners })
  const random = (): number => randomBytes(4).readUInt32BE()

  /** Atomic, also between processes. @returns the slot, a number below `max`; undefined where none is free */
  async function takeIn(row: Row, sessionKey: string, max: number, ttlMs: number) {
    const { name, keyOf } = row
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
      orGivenBack(store.set(keyOf(slot), sessionKey, { ttlMs, when: 'absent' }), row, slot, sessionKey)
    for (const slot of slots(0, guesses)) if (await claim(slot)) return slot
    const others = slots(guesses, maxLooks)
    const taken = await Promise.all(others.map((slot) => store.get(keyOf(slot))))
    for (const [at, slot] of others.entries()) if (taken[at] === undefined && (await claim(slot))) return slot
    fullSince.set(name, clock.now())
    return undefined
  }

  async function releaseIn({ name, keyOf }: Row, slot: number, sessionKey: string): Promise<void> {
    await store.delete(keyOf(slot), { is: sessionKey })
    fullSince.delete(name)
  }

  /** Where it fails, the slot may be taken by a session that there will not be. */
  const orGivenBack = <T>(done: Promise<T>, row: Row, slot: number, sessionKey: string): Promise<T> =>
    unfinished.orLater(done, `${row.keyOf(slot)} ${sessionKey}`, () => releaseIn(row, slot, sessionKey))

  const rowsOf = ({ seat, tenantSeat, ...holder }: Holder & Seats): Array<readonly [Row, number]> => [
    [rowOfPerson(holder), seat],
    ...(tenantSeat === undefined ? [] : [[rowOfTenant(holder), tenantSeat] as const])
  ]

  return {
    /** @throws GatewayError too_many, which names the limit; unavailable, and then nothing stays taken */
    async take(holder: Holder, sessionKey: string, counts: SessionCounts, ttlMs: number): Promise<Seats> {
      const { perPrincipal, perTenant, idleMs } = counts
      const person = rowOfPerson(holder)
      const seat = await takeIn(person, sessionKey, perPrincipal, ttlMs)
      if (seat === undefined) throw tooManySessions('This caller', 'limits.sessionsPerPrincipal', perPrincipal, idleMs)
      if (perTenant === undefined) return { seat }
      const orSeatBack = <T>(done: Promise<T>): Promise<T> => orGivenBack(done, person, seat, sessionKey)
      const tenantSeat = await orSeatBack(takeIn(rowOfTenant(holder), sessionKey, perTenant, ttlMs))
      if (tenantSeat !== undefined) return { seat, tenantSeat }
      await orSeatBack(releaseIn(person, seat, sessionKey))
      throw tooManySessions('The tenant of this caller', 'resources.sessions', perTenant, idleMs)
    },
    async prolong(session: Holder & Seats, sessionKey: string, ttlMs: number): Promise<void> {
      for (const [row, slot] of rowsOf(session)) {
        const key = row.keyOf(slot)
        if (await store.touch(key, ttlMs)) continue
        // Claimed again where the store lost it; never taken from the session that has it now.
        if (!(await store.set(key, sessionKey, { ttlMs, when: 'absent' }))) continue
        // Not lost, but given back: the session ended meanwhile, maybe at another process.
        if ((await store.get(sessionKey)) === undefined)
          await orGivenBack(releaseIn(row, slot, sessionKey), row, slot, sessionKey)
      }
    },
    async release(session: Holder & Seats, sessionKey: string): Promise<void> {
      for (const [row, slot] of rowsOf(session)) await releaseIn(row, slot, sessionKey)
    }
  }
}

/** Returns the row of a person, whatever the client: a person may have as many client ids as they like. */
const rowOfPerson = ({ owner: { tenant, issuer, subject }, epoch }: Holder): Row => ({
  name: digest(JSON.stringify([tenant, issuer, subject, epoch])),
  keyOf: (slot) => principalSeatKey(tenant, issuer, subject, `${epoch}.${slot}`)
})

const rowOfTenant = ({ owner: { tenant }, epoch }: Holder): Row => ({
  name: digest(JSON.stringify([tenant, epoch])),
  keyOf: (slot) => tenantSeatKey(tenant, `${epoch}.${slot}`)
})

function tooManySessions(who: string, limit: string, count: number, idleMs: number): GatewayError {
  const end = 'End sessions with DELETE, or retry later.'
  const message = `${who} has ${count} sessions, which is the limit (${limit}). ${end}`
  const seconds = Math.ceil(Math.min(idleMs, 60_000) / 1000)
  return new GatewayError('too_many', message, { data: { limit }, headers: { 'Retry-After': String(seconds) } })
}
