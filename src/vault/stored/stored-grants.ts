// Reads and writes grants in the store: sealed, each under the key of its person and upstream.

import type { Person } from '../../config/auth/upstream-auth.ts'
import type { Log } from '../../observe/log.ts'
import { grantKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Grant } from '../grant.ts'
import { createGrantEnds, type End, isEnded, lastOf } from './grant-ends.ts'
import { createGrantIndex } from './grant-index.ts'
import type { SealedValues } from '../sealed-values.ts'
import { UnopenedKeyError } from '../wrapping/tenant-wrapping.ts'

const placeOf = ({ tenant, issuer, subject }: Person, upstream: string): string =>
  grantKey(tenant, issuer, subject, upstream)

const unopenedGrant: Grant = { id: 'unopened', target: '', connectedAt: 0, unopened: true }

const orUnopened = (work: Promise<Grant | undefined>): Promise<Grant | undefined> =>
  work.catch((error: unknown) => {
    if (error instanceof UnopenedKeyError) return unopenedGrant
    throw error
  })

/** A grant that is to be kept, without the times that are added when it is written. */
export type NewGrant = Omit<Grant, 'connectedAt' | 'givenAfter'>

export function createStoredGrants(store: Store, values: SealedValues, log: Log) {
  const index = createGrantIndex(store)
  const ends = createGrantEnds(store)

  const raw = async (person: Person, upstream: string): Promise<Grant | undefined> =>
    (await values.read(person.tenant, placeOf(person, upstream))) as Grant | undefined

  async function standing(person: Person, upstream: string, ended: readonly End[]): Promise<Grant | undefined> {
    const grant = await raw(person, upstream)
    return grant === undefined || isEnded(ended, person, upstream, grant) ? undefined : grant
  }

  return {
    /** Reads a grant as it stands in the store, also one that was ended. */
    async raw(person: Person, upstream: string): Promise<Grant | undefined> {
      const grant = await orUnopened(raw(person, upstream))
      if (grant?.unopened === true)
        log.warn({ tenant: person.tenant, upstream }, 'what a person gave cannot be opened, nor given back')
      return grant
    },
    open: async (person: Person, upstream: string): Promise<Grant | undefined> =>
      await standing(person, upstream, await ends.of(person.tenant)),
    /**
     * Reads the grants of a person for these upstreams. A grant that cannot be opened is marked; the others are
     * returned as they are.
     */
    openAll: async (person: Person, upstreams: readonly string[]): Promise<Map<string, Grant>> => {
      const ended = await ends.of(person.tenant)
      const found = await Promise.all(
        upstreams.map(async (name) => {
          return [name, await orUnopened(standing(person, name, ended))] as const
        })
      )
      return new Map(found.flatMap(([name, grant]) => (grant === undefined ? [] : [[name, grant] as const])))
    },
    async write(person: Person, upstream: string, grant: NewGrant, connectedAt: number): Promise<void> {
      const givenAfter = lastOf(await ends.of(person.tenant))
      await index.add(person, upstream)
      await values.write(person.tenant, placeOf(person, upstream), { ...grant, connectedAt, givenAfter })
    },
    change: (person: Person, upstream: string, next: (grant: Grant) => Grant | undefined): Promise<boolean> =>
      values.change(person.tenant, placeOf(person, upstream), (value) => next(value as Grant)),
    delete: (person: Person, upstream: string): Promise<boolean> => store.delete(placeOf(person, upstream)),
    listed: index.list,
    endAll: ends.add
  }
}
