// What people have given the gateway for their own use of an upstream: a secret that they entered, or tokens of an
// account that they connected. Sealed in the store, each for its tenant, person and upstream; nobody sees one again.

import { randomBytes } from 'node:crypto'
import { personKeyOf } from '../auth/principal.ts'
import type { Person } from '../config/auth/upstream-auth.ts'
import { grantKey, grantRenewalKey, grantsChannel } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Tokens } from './oauth/tokens.ts'
import type { SealedValues } from './sealed-values.ts'

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

/** People who have used nothing for so long are read again. */
const keptMs = 10 * 60_000
/** While messages of other processes may be missed. */
const uncertainMs = 2_000
/** People of whom this process remembers what they have connected. */
const maxPeople = 10_000
/** So long one process renews, and the others wait for what it gets. */
export const renewalMs = 15_000

interface GrantsOptions {
  readonly store: Store
  readonly values: SealedValues
  readonly clock: { now(): number }
}

interface KnownPerson {
  readonly grants: GrantsOfPerson
  readonly upstreams: readonly string[]
  readonly readAt: number
}

export type Grants = Awaited<ReturnType<typeof createGrants>>

export async function createGrants({ store, values, clock }: GrantsOptions) {
  const people = new Map<string, KnownPerson>()
  const reading = new Map<string, Promise<GrantsOfPerson>>()
  const listeners: Array<(person: string) => void> = []

  const partsOf = ({ tenant, issuer, subject }: Person, upstream: string): [string, string, string, string] => [
    tenant,
    issuer,
    subject,
    upstream
  ]
  const open = async (person: Person, upstream: string): Promise<Grant | undefined> =>
    (await values.read(person.tenant, grantKey(...partsOf(person, upstream)))) as Grant | undefined

  /** What was read stays until it is read again: a session must not lose its view for a moment. */
  function forget(person: string): void {
    const known = people.get(person)
    if (known !== undefined) people.set(person, { ...known, readAt: -Infinity })
    reading.delete(person)
    for (const listener of listeners) listener(person)
  }

  async function written(person: Person): Promise<void> {
    const key = personKeyOf(person)
    forget(key)
    await store.publish(grantsChannel, key)
  }

  const write = (person: Person, upstream: string, grant: Grant): Promise<void> =>
    values.write(person.tenant, grantKey(...partsOf(person, upstream)), grant)

  const unsubscribe = await store.subscribe(grantsChannel, forget)
  store.onLost(() => {
    for (const person of people.keys()) forget(person)
  })

  function peek(person: string): GrantsOfPerson | undefined {
    const found = people.get(person)
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
        const found = await Promise.all(upstreams.map(async (name) => [name, await open(person, name)] as const))
        const grants = new Map(found.flatMap(([name, grant]) => (grant === undefined ? [] : [[name, grant] as const])))
        if (people.size >= maxPeople) people.delete(people.keys().next().value as string)
        // What changed while it was read is read again.
        if (reading.get(key) === work) people.set(key, { grants, upstreams, readAt: clock.now() })
        return grants
      } finally {
        if (reading.get(key) === work) reading.delete(key)
      }
    }
  }

  return {
    /** What this process remembers; undefined: it has to be read. */
    peek,
    /** What was read last, although it may have changed since. */
    last: (person: string): GrantsOfPerson | undefined => people.get(person)?.grants,
    /** @param upstreams those of the tenant for which people give something */
    read,
    /** Reads again what a person has given, where this process has read it before. */
    async refresh(person: Person): Promise<GrantsOfPerson> {
      const key = personKeyOf(person)
      const known = people.get(key)
      if (known === undefined) return new Map()
      people.set(key, { ...known, readAt: -Infinity })
      reading.delete(key)
      return await read(person, known.upstreams)
    },
    /** From the store. */
    get: open,
    /** Keeps what a person has given; whatever was there before is of no use any more. */
    async put(person: Person, upstream: string, grant: Omit<Grant, 'id' | 'connectedAt'>, now: number): Promise<void> {
      await write(person, upstream, { ...grant, id: randomBytes(12).toString('base64url'), connectedAt: now })
      await written(person)
    },
    /** Changes a grant in its place: its connections go on. */
    async replace(person: Person, upstream: string, grant: Grant): Promise<void> {
      await write(person, upstream, grant)
      await store.publish(grantsChannel, personKeyOf(person))
    },
    /** @returns whether there was something */
    async remove(person: Person, upstream: string): Promise<boolean> {
      const was = await store.delete(grantKey(...partsOf(person, upstream)))
      await written(person)
      return was
    },
    /** One of all processes may renew; the others wait for what it writes. @returns what lets the next one */
    async isFirstToRenew(person: Person, upstream: string): Promise<(() => Promise<unknown>) | undefined> {
      const key = grantRenewalKey(...partsOf(person, upstream))
      if (!(await store.set(key, '1', { when: 'absent', ttlMs: renewalMs }))) return undefined
      return () => store.delete(key)
    },
    /** Called with `personKeyOf` whenever something of a person may have changed. */
    onChange(listener: (person: string) => void): void {
      listeners.push(listener)
    },
    close: unsubscribe
  }
}
