// The grants of people: for each person and upstream a secret that they entered, or the tokens of an account that they
// connected. Grants are sealed in the store, bound to tenant, person and upstream, and are never shown again.

import { randomBytes } from 'node:crypto'
import { personKeyOf } from '../auth/principal.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import type { Log } from '../observe/log.ts'
import type { TenantId } from '../protocol/messages.ts'
import { grantRenewalKey, grantsChannel } from '../store/keys.ts'
import { type Store, unavailable } from '../store/port.ts'
import type { Clock } from '../time/clock.ts'
import type { Account, Grant, GrantsOfPerson } from './grant.ts'
import type { EndedPart } from './stored/grant-ends.ts'
import { createKnownPeople } from './known-people.ts'
import { lock, type Release, tryLock } from './lock.ts'
import { forgetClient } from './oauth/account-client.ts'
import type { SealedValues } from './sealed-values.ts'
import { createStoredGrants, type NewGrant } from './stored/stored-grants.ts'
import type { Epochs } from './wrapping/vault-keys.ts'

/** How long the grants of a person are valid after they were read, in milliseconds. */
const keptMs = 10 * 60_000
/** The same, while messages of other processes may be missed or a grant cannot be decrypted. */
const uncertainMs = 2_000
/** The longest time for which one process renews a grant, while the others wait for the new tokens. */
export const renewalMs = 15_000

interface GrantsOptions {
  readonly store: Store
  readonly values: SealedValues
  readonly epochs: Epochs
  /** The upstreams of a tenant that need a grant of each person: the same array until the configuration changes. */
  readonly upstreamsOf: (tenant: TenantId) => readonly string[]
  readonly clock: Clock
  readonly log: Log
}

/** Makes a random id for a new grant. */
export const newGrantId = (): string => randomBytes(12).toString('base64url')

export type Grants = Awaited<ReturnType<typeof createGrants>>

export async function createGrants({ store, values, epochs, upstreamsOf, clock, log }: GrantsOptions) {
  const stored = createStoredGrants(store, values, log)
  const reading = new Map<string, Promise<GrantsOfPerson>>()
  const known = createKnownPeople(epochs, clock)
  const { people, used, keep } = known
  const renewalLock = createRenewalLock(store, clock)

  /** Marks the grants of a person as stale. They stay until they are read again, so that no session loses its view. */
  function outdate(key: string): void {
    const before = people.get(key)
    if (before !== undefined) people.set(key, { ...before, readAt: -Infinity })
    reading.delete(key)
  }

  /** Reads again what a person has given, where this process has read it before. */
  async function refresh(key: string): Promise<void> {
    const before = people.get(key)
    if (before === undefined) return void reading.delete(key)
    outdate(key)
    await read(before.person)
  }

  /** Reads the grants of these people again, one after the other to spare the store. `read` meanwhile does not wait. */
  async function refreshAll(keys: readonly string[]): Promise<void> {
    for (const key of keys) outdate(key)
    for (const key of keys) await refresh(key)
  }

  const changed = (message: string): void => {
    const work = message.startsWith('=') ? refreshAll(known.keysOf(message.slice(1))) : refresh(message)
    work.catch((err: unknown) => log.warn({ err }, 'what a person has connected cannot be read again'))
  }

  async function written(person: Person): Promise<void> {
    outdate(personKeyOf(person))
    // This process receives the message, too.
    await store.publish(grantsChannel, personKeyOf(person))
  }

  const unsubscribe = await store.subscribe(grantsChannel, changed)
  let rereading: Promise<void> | undefined
  store.onLost(() => {
    for (const key of people.keys()) outdate(key)
    rereading ??= refreshAll([...people].flatMap(([key, { grants }]) => (grants.size > 0 ? [key] : [])))
      .catch((err: unknown) => log.debug({ err }, 'the store is away; what people gave is read when they ask'))
      .finally(() => {
        rereading = undefined
      })
  })

  function peek(person: string): GrantsOfPerson | undefined {
    const found = used(person)
    if (found === undefined || !areOfNow(found.upstreams, upstreamsOf(found.person.tenant))) return undefined
    const keptFor = store.live && found.isWhole ? keptMs : uncertainMs
    return clock.now() - found.readAt < keptFor ? found.grants : undefined
  }

  function read(person: Person): Promise<GrantsOfPerson> {
    const key = personKeyOf(person)
    const kept = peek(key)
    if (kept !== undefined) return Promise.resolve(kept)
    const work = reading.get(key) ?? readAll()
    reading.set(key, work)
    return work

    async function readAll(): Promise<GrantsOfPerson> {
      try {
        const upstreams = upstreamsOf(person.tenant)
        const epoch = await epochs.epochOf(person.tenant)
        const grants = await stored.openAll(person, upstreams)
        const isWhole = [...grants.values()].every(({ unopened }) => unopened === undefined)
        // The grants changed while they were read: callers that wait get the new ones.
        if (reading.get(key) !== work) return await read(person)
        keep(key, { person, epoch, grants, upstreams, isWhole })
        if (areOfNow(upstreams, upstreamsOf(person.tenant))) return grants
        reading.delete(key)
        return await read(person)
      } finally {
        if (reading.get(key) === work) reading.delete(key)
      }
    }
  }

  return {
    /** Returns the grants of a person that this process remembers; undefined: they have to be read. */
    peek,
    /** Returns the grants that were read last, although they may have changed since. */
    last: (person: string): GrantsOfPerson | undefined => used(person)?.grants,
    /** Reads the grants of a person for all upstreams of the tenant that need one. @throws GatewayError unavailable */
    read,
    /** Reads again what a person has given, where this process has read it before. */
    refresh: (person: Person): Promise<void> => refresh(personKeyOf(person)),
    /** Reads one grant from the store. @throws GatewayError unavailable */
    get: stored.open,
    /**
     * Stores a grant in place of an earlier one. It waits for the end of a running renewal, which would overwrite it.
     */
    async put(person: Person, upstream: string, grant: NewGrant, now: number): Promise<void> {
      const release = await renewalLock.lock(person, upstream)
      try {
        await stored.write(person, upstream, grant, now)
      } finally {
        await release()
      }
      await written(person)
    },
    /**
     * Changes a grant atomically; its open connections go on. A process that lost the renewal lock because it was
     * stalled sees in `next` what another process has written, and must keep that.
     * @param next returns the new grant for the stored one; undefined: no change
     * @returns whether it was changed
     */
    async change(person: Person, upstream: string, next: (grant: Grant) => Grant | undefined): Promise<boolean> {
      if (!(await stored.change(person, upstream, next))) return false
      await store.publish(grantsChannel, personKeyOf(person))
      return true
    },
    /** @returns whether there was a grant */
    async remove(person: Person, upstream: string): Promise<boolean> {
      const was = await stored.delete(person, upstream)
      await written(person)
      return was
    },
    /** Forgets a client that its provider no longer knows. @returns false if the operator has registered it */
    forgetClient: (tenant: TenantId, { issuer, clientId }: Account): Promise<boolean> =>
      forgetClient(values, tenant, issuer, clientId),
    /** Revokes all grants of this part of a tenant, at every process, whether or not the index lists them. */
    async endAll(tenant: TenantId, part: EndedPart): Promise<boolean> {
      if (!(await stored.endAll(tenant, part))) return false
      await store.publish(grantsChannel, `=${tenant}`)
      return true
    },
    /** Reads a grant as it stands in the store, also one that was ended, to give its tokens back. */
    raw: stored.raw,
    /** Reads the grants of a person to be shown: those that cannot be opened are listed too. */
    shown: stored.openAll,
    /** Lists the people of a tenant who may have a grant. @throws GatewayError unavailable */
    listed: stored.listed,
    tryLockRenewal: renewalLock.tryLock,
    onChange: known.onChange,
    retain: known.retain,
    async close(): Promise<void> {
      known.close()
      await unsubscribe()
    }
  }
}

/** The lock of each grant, which a process holds while it renews or replaces it. */
function createRenewalLock(store: Store, clock: Clock) {
  const optionsOf = ({ tenant, issuer, subject }: Person, upstream: string) => {
    const key = grantRenewalKey(tenant, issuer, subject, upstream)
    return { store, clock, key, longestMs: renewalMs }
  }
  return {
    /** @returns the function that releases the lock, or undefined if another process holds it */
    tryLock: (person: Person, upstream: string): Promise<Release | undefined> => tryLock(optionsOf(person, upstream)),
    /** Waits for the lock. @throws GatewayError unavailable where another process still holds it */
    async lock(person: Person, upstream: string): Promise<Release> {
      const release = await lock(optionsOf(person, upstream))
      if (release !== undefined) return release
      throw unavailable('What was connected before is still being renewed. Try again in a moment.')
    }
  }
}

/** Whether the grants were read for all upstreams that the tenant has now: the configuration may have changed. */
const areOfNow = (names: readonly string[], now: readonly string[]): boolean =>
  now === names || now.every((name) => names.includes(name))
