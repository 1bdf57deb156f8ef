// A bounded cache of the grants of people, by person, in this process.

import type { Person } from '../config/auth/upstream-auth.ts'
import type { TenantId } from '../protocol/messages.ts'
import { type Clock, every } from '../time/clock.ts'
import type { GrantsOfPerson } from './grant.ts'
import type { Epochs } from './wrapping/vault-keys.ts'

/** The most people in the cache; the one with the oldest request is dropped first. */
const maxPeople = 10_000
/** The most people of one tenant, so that a tenant cannot push out those of others. */
const maxPeopleOfTenant = 5_000
/** How many people are dropped at once when the cache is full. */
const forgottenAtOnce = 64
/** A person without a request or an open stream for so long is dropped, with their connections and lists. */
const idleMs = 60 * 60_000
/** How exactly the order of last requests is kept, in milliseconds. */
const orderMs = 60_000

interface KnownPerson {
  readonly person: Person
  readonly epoch: number
  readonly grants: GrantsOfPerson
  readonly upstreams: readonly string[]
  /** Whether all grants could be decrypted; if not, they are read again soon. */
  readonly isWhole: boolean
  readonly readAt: number
  usedAt: number
}

/**
 * Called whenever the grants of a person were read.
 * @param own their grants; undefined: the person was dropped here, and their connections may be closed
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
    /** Drops the people of tenants that are no longer configured. */
    retain(tenants: Pick<ReadonlySet<TenantId>, 'has'>): void {
      for (const [key, { person }] of people) if (!tenants.has(person.tenant)) drop(key)
    },
    close(): void {
      sweeper.close()
    }
  }
}
