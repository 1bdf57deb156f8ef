// Grants as they stand in the store: sealed, each at the place of its person and upstream.

import type { Person } from '../../config/auth/upstream-auth.ts'
import { grantKey } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Grant } from '../grant.ts'
import { createGrantEnds, isEnded, lastOf } from './grant-ends.ts'
import { createGrantIndex } from './grant-index.ts'
import type { SealedValues } from '../sealed-values.ts'
import { UnopenedKeyError } from '../wrapping/tenant-wrapping.ts'

const placeOf = ({ tenant, issuer, subject }: Person, upstream: string): string =>
  grantKey(tenant, issuer, subject, upstream)

const unopenedGrant: Grant = { id: 'unopened', target: '', connectedAt: 0, unopened: true }

/** Of a grant that is to be kept: what it is, and not when it was given. */
export type NewGrant = Omit<Grant, 'connectedAt' | 'givenAfter'>

export function createStoredGrants(store: Store, values: SealedValues) {
  const index = createGrantIndex(store)
  const ends = createGrantEnds(store)

  const raw = async (person: Person, upstream: string): Promise<Grant | undefined> =>
    (await values.read(person.tenant, placeOf(person, upstream))) as Grant | undefined

  async function open(person: Person, upstream: string): Promise<Grant | undefined> {
    const [grant, ended] = await Promise.all([raw(person, upstream), ends.of(person.tenant)])
    return grant === undefined || isEnded(ended, person, upstream, grant) ? undefined : grant
  }

  return {
    /** Also one whose end was ordered. */
    raw,
    open,
    /** Where the key of the tenant cannot be opened, its other upstreams go on. */
    openOrNot: (person: Person, upstream: string): Promise<Grant | undefined> =>
      open(person, upstream).catch((error: unknown) => {
        if (error instanceof UnopenedKeyError) return unopenedGrant
        throw error
      }),
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
