// What people have given the gateway for their own use of an upstream: a secret that they entered, or tokens of an
// account that they connected. Sealed in the store, each for its tenant, person and upstream; nobody sees one again.

import { randomBytes } from 'node:crypto'
import { personKeyOf } from '../auth/principal.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import type { Log } from '../observe/log.ts'
import type { TenantId } from '../protocol/messages.ts'
import { grantKey, grantRenewalKey, grantsChannel } from '../store/keys.ts'
import { type Store, unavailable } from '../store/port.ts'
import { type Clock, every, pause } from '../time/clock.ts'
import type { Tokens } from './oauth/tokens.ts'
import type { SealedValues } from './sealed-values.ts'
import type { Epochs } from './vault-keys.ts'

/** Tokens, and all that is needed to renew them without asking anybody. */
export interface Account {
  readonly tokens: Tokens
  /** When the tokens were given: epoch ms. */
  readonly since: number
  /** When they were renewed last. */
  readonly renewedAt?: number
  readonly issuer: string
  readonly tokenEndpoint: string
  readonly revocationEndpoint?: string | undefined
  /** What the server takes to prove who the client is. */
  readonly authMethods?: readonly string[] | undefined
  readonly clientId: string
  /** Of a client that registered itself; that of the configuration is not kept. */
  readonly clientSecret?: string | undefined
  readonly clientMethod?: string | undefined
  readonly resource: string | undefined
  /** That it has, as far as is known. */
  readonly scopes: readonly string[]
  /** That were asked for. */
  readonly asked?: readonly string[]
}

export interface Grant {
  /** Another one each time something is connected: connections of the one before are not used for it. */
  readonly id: string
  /** Origin of the upstream's URL, or its command: to nobody else it is shown. */
  readonly target: string
  readonly connectedAt: number
  readonly secret?: string | undefined
  readonly account?: Account | undefined
  /** Scopes that the upstream wants besides: asked for when it is connected again. */
  readonly missing?: readonly string[] | undefined
  /** Why it is of no use any more, as the end of a sentence; the person has to connect again. */
  readonly dead?: string | undefined
}

/** What one person has given, by upstream. */
export type GrantsOfPerson = ReadonlyMap<string, Grant>

/** What was read of a person counts so long. */
const keptMs = 10 * 60_000
/** While messages of other processes may be missed. */
const uncertainMs = 2_000
/** People of whom a process remembers what they have connected; whoever asked least recently is forgotten. */
const maxPeople = 10_000
/** Of one tenant: it must not push out those of the others. */
const maxPeopleOfTenant = 5_000
/** Where there is no room: what is held for them is looked for once. */
const forgottenAtOnce = 64
/** Who has asked for nothing and listened to nothing for so long is forgotten, with their connections and lists. */
const idleMs = 60 * 60_000
/** The order of people is that of their last requests, so exactly. */
const orderMs = 60_000
/** So long one process renews, and the others wait for what it gets. */
export const renewalMs = 15_000
const pollMs = 100

interface GrantsOptions {
  readonly store: Store
  readonly values: SealedValues
  readonly epochs: Epochs
  readonly clock: Clock
  readonly log: Log
}

interface KnownPerson {
  readonly person: Person
  readonly epoch: number
  readonly grants: GrantsOfPerson
  readonly upstreams: readonly string[]
  readonly readAt: number
  usedAt: number
}

/**
 * Whenever what a person has was read.
 * @param own what they have now; undefined: they are forgotten here, and what is held for them may go
 */
export type GrantsListener = (person: string, own: GrantsOfPerson | undefined) => void

export type Grants = Awaited<ReturnType<typeof createGrants>>

export async function createGrants({ store, values, epochs, clock, log }: GrantsOptions) {
  /** The least recently used first. */
  const people = new Map<string, KnownPerson>()
  const countOf = new Map<TenantId, number>()
  const reading = new Map<string, Promise<GrantsOfPerson>>()
  const listeners: GrantsListener[] = []

  const partsOf = ({ tenant, issuer, subject }: Person, upstream: string): [string, string, string, string] => [
    tenant,
    issuer,
    subject,
    upstream
  ]
  const open = async (person: Person, upstream: string): Promise<Grant | undefined> =>
    (await values.read(person.tenant, grantKey(...partsOf(person, upstream)))) as Grant | undefined

  const tell: GrantsListener = (person, own) => {
    for (const listener of listeners) listener(person, own)
  }

  function drop(key: string): void {
    const known = people.get(key)
    if (known === undefined) return
    const { tenant } = known.person
    people.delete(key)
    reading.delete(key)
    const left = (countOf.get(tenant) ?? 1) - 1
    if (left > 0) countOf.set(tenant, left)
    else countOf.delete(tenant)
    tell(key, undefined)
  }

  function makeRoom(tenant: TenantId): void {
    const isTenantFull = (countOf.get(tenant) ?? 0) >= maxPeopleOfTenant
    if (!isTenantFull && people.size < maxPeople) return
    const keys = [...people].flatMap(([key, { person }]) => (!isTenantFull || person.tenant === tenant ? [key] : []))
    for (const key of keys.slice(0, forgottenAtOnce)) drop(key)
  }

  const sweeper = every(clock, idleMs / 60, () => {
    const before = clock.now() - idleMs
    for (const [key, { usedAt }] of people) if (usedAt < before) drop(key)
  })

  function used(key: string): KnownPerson | undefined {
    const known = people.get(key)
    if (known === undefined || !epochs.isCurrentEpoch(known.person.tenant, known.epoch)) return undefined
    const now = clock.now()
    if (now - known.usedAt < orderMs) return known
    known.usedAt = now
    people.delete(key)
    people.set(key, known)
    return known
  }

  /** What was read stays until it is read again: a session must not lose its view for a moment. */
  function outdate(key: string): void {
    const known = people.get(key)
    if (known !== undefined) people.set(key, { ...known, readAt: -Infinity })
    reading.delete(key)
  }

  /** Reads again what a person has given, where this process has read it before. */
  async function refresh(key: string): Promise<void> {
    const known = people.get(key)
    if (known === undefined) return void reading.delete(key)
    outdate(key)
    await read(known.person, known.upstreams)
  }

  const changed = (key: string): void => {
    refresh(key).catch((err: unknown) => log.warn({ err }, 'what a person has connected cannot be read again'))
  }

  async function written(person: Person): Promise<void> {
    const key = personKeyOf(person)
    outdate(key)
    // It comes back to this process, too.
    await store.publish(grantsChannel, key)
  }

  const write = (person: Person, upstream: string, grant: Grant, when?: 'present'): Promise<boolean> =>
    values.write(person.tenant, grantKey(...partsOf(person, upstream)), grant, when && { when })

  const unsubscribe = await store.subscribe(grantsChannel, changed)
  let rereading: Promise<void> | undefined
  /** One after the other: all of them at once would be a flood. Whoever asks meanwhile is read at once. */
  async function readAllAgain(): Promise<void> {
    for (const [key, { grants }] of [...people]) if (grants.size > 0) await refresh(key)
  }
  store.onLost(() => {
    for (const key of people.keys()) outdate(key)
    rereading ??= readAllAgain()
      .catch((err: unknown) =>
        log.debug({ err }, 'the store is away; what people have connected is read when they ask')
      )
      .finally(() => {
        rereading = undefined
      })
  })

  function peek(person: string): GrantsOfPerson | undefined {
    const found = used(person)
    if (found === undefined) return undefined
    const keptFor = store.live ? keptMs : uncertainMs
    return clock.now() - found.readAt < keptFor ? found.grants : undefined
  }

  function read(person: Person, upstreams: readonly string[]): Promise<GrantsOfPerson> {
    const key = personKeyOf(person)
    const known = peek(key)
    if (known !== undefined) return Promise.resolve(known)
    const work = reading.get(key) ?? readAll()
    reading.set(key, work)
    return work

    async function readAll(): Promise<GrantsOfPerson> {
      try {
        const epoch = await epochs.epochOf(person.tenant)
        const found = await Promise.all(upstreams.map(async (name) => [name, await open(person, name)] as const))
        const grants = new Map(found.flatMap(([name, grant]) => (grant === undefined ? [] : [[name, grant] as const])))
        // What changed while it was read is read again.
        if (reading.get(key) === work) keep(key, { person, epoch, grants, upstreams })
        return grants
      } finally {
        if (reading.get(key) === work) reading.delete(key)
      }
    }
  }

  function keep(key: string, read: Omit<KnownPerson, 'readAt' | 'usedAt'>): void {
    const now = clock.now()
    const { tenant } = read.person
    const before = people.get(key)
    if (before === undefined) {
      makeRoom(tenant)
      countOf.set(tenant, (countOf.get(tenant) ?? 0) + 1)
    }
    people.set(key, { ...read, readAt: now, usedAt: before?.usedAt ?? now })
    tell(key, read.grants)
  }

  /** One of all processes may renew or replace at a time. @returns what lets the next one; undefined: another one does */
  async function isFirst(person: Person, upstream: string): Promise<(() => Promise<unknown>) | undefined> {
    const key = grantRenewalKey(...partsOf(person, upstream))
    const own = randomBytes(12).toString('base64url')
    if (!(await store.set(key, own, { when: 'absent', ttlMs: renewalMs }))) return undefined
    // It may have taken too long, and be another one's turn.
    return async () => (await store.get(key)) === own && (await store.delete(key))
  }

  async function turn(person: Person, upstream: string): Promise<() => Promise<unknown>> {
    for (let waited = 0; waited < renewalMs; waited += pollMs) {
      const end = await isFirst(person, upstream)
      if (end !== undefined) return end
      await pause(clock, pollMs)
    }
    throw unavailable('What was connected before is still being renewed. Try again in a moment.')
  }

  return {
    /** What this process remembers; undefined: it has to be read. */
    peek,
    /** What was read last, although it may have changed since. */
    last: (person: string): GrantsOfPerson | undefined => used(person)?.grants,
    /** @param upstreams those of the tenant for which people give something */
    read,
    /** Reads again what a person has given, where this process has read it before. */
    refresh: (person: Person): Promise<void> => refresh(personKeyOf(person)),
    /** From the store. */
    get: open,
    /**
     * Keeps what a person has given; whatever was there before is of no use any more. It waits for the end of a renewal,
     * which would overwrite it.
     */
    async put(person: Person, upstream: string, grant: Omit<Grant, 'id' | 'connectedAt'>, now: number): Promise<void> {
      const end = await turn(person, upstream)
      try {
        await write(person, upstream, { ...grant, id: randomBytes(12).toString('base64url'), connectedAt: now })
      } finally {
        await end()
      }
      await written(person)
    },
    /**
     * Changes a grant in its place: its connections go on.
     * @returns false where it is there no more: nothing was written
     */
    async replace(person: Person, upstream: string, grant: Grant): Promise<boolean> {
      if ((await open(person, upstream))?.id !== grant.id) return false
      if (!(await write(person, upstream, grant, 'present'))) return false
      await store.publish(grantsChannel, personKeyOf(person))
      return true
    },
    /** @returns whether there was something */
    async remove(person: Person, upstream: string): Promise<boolean> {
      const was = await store.delete(grantKey(...partsOf(person, upstream)))
      await written(person)
      return was
    },
    isFirstToRenew: isFirst,
    onChange(listener: GrantsListener): void {
      listeners.push(listener)
    },
    /** Forgets the people of tenants that are configured no more. */
    retain(tenants: Pick<ReadonlySet<TenantId>, 'has'>): void {
      for (const [key, { person }] of people) if (!tenants.has(person.tenant)) drop(key)
    },
    async close(): Promise<void> {
      sweeper.close()
      await unsubscribe()
    }
  }
}
