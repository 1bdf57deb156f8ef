// The people of whom this process remembers what they have given: so many, and as long as they use it.

import type { Person } from '../config/auth/upstream-auth.ts'
import type { TenantId } from '../protocol/messages.ts'
import { type Clock, every } from '../time/clock.ts'
import type { GrantsOfPerson } from './grant.ts'
import type { Epochs } from './wrapping/vault-keys.ts'

/** People of whom a process remembers what they have connected; whoever asked least recently is forgotten. */
const maxPeople = 10_000
/** The most people of one tenant: it must not push out those of the others. */
const maxPeopleOfTenant = 5_000
/** How many people are forgotten at once where there is no room. */
const forgottenAtOnce = 64
/** A person who has sent no request and held no stream for so long is forgotten, with their connections and lists. */
const idleMs = 60 * 60_000
/** The order of people is that of their last requests, so exactly. */
const orderMs = 60_000

interface KnownPerson {
  readonly person: Person
  readonly epoch: number
  readonly grants: GrantsOfPerson
  readonly upstreams: readonly string[]
  /** Some of it could not be opened: it is read again soon. */
  readonly isWhole: boolean
  readonly readAt: number
  usedAt: number
}

/**
 * Whenever what a person has was read.
 * @param own what they have now; undefined: they are forgotten here, and what is held for them may go
 */
export type GrantsListener = (person: string, own: GrantsOfPerson | undefined) => void

export function createKnownPeople(epochs: Epochs, clock: Clock) {
  /** The least recently used first. */
  const people = new Map<string, KnownPerson>()
  const countOf = new Map<TenantId, number>()
  const listeners: GrantsListener[] = []

  const tell: GrantsListener = (person, own) => {
    for (const listener of listeners) listener(person, own)
  }

  function drop(key: string): void {
    const known = people.get(key)
    if (known === undefined) return
    const { tenant } = known.person
    people.delete(key)
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

  return {
    people,
    used,
    keep,
    keysOf: (tenant: string): string[] =>
      [...people].flatMap(([key, { person }]) => (person.tenant === tenant ? [key] : [])),
    onChange(listener: GrantsListener): void {
      listeners.push(listener)
    },
    /** Forgets the people of tenants that are configured no more. */
    retain(tenants: Pick<ReadonlySet<TenantId>, 'has'>): void {
      for (const [key, { person }] of people) if (!tenants.has(person.tenant)) drop(key)
    },
    close(): void {
      sweeper.close()
    }
  }
}
