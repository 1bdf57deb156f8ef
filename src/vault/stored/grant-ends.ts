// Mass revocations by administrators. Each has a number; a grant that was given before the revocation of its part of
// the tenant counts as absent, also if the index does not list it.

import type { Person } from '../../config/auth/upstream-auth.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { foreverMs, grantEndsKey } from '../../store/keys.ts'
import { type Store, unavailable } from '../../store/port.ts'
import type { Grant } from '../grant.ts'

/** The most revocations of one tenant, each of an issuer, an upstream, or both. */
const maxEnds = 1_000
/** The longest text of all revocations, in characters: it is read with the grants of each person. */
const maxLength = 65_536
/** How often a write is tried while other processes write. */
const maxTries = 8

/** A part of a tenant: without an issuer all people, without an upstream all upstreams. */
export interface EndedPart {
  readonly issuer?: string | undefined
  readonly upstream?: string | undefined
}

export interface End extends EndedPart {
  readonly number: number
}

export function createGrantEnds(store: Pick<Store, 'get' | 'set'>) {
  const textOf = (tenant: TenantId): Promise<string | undefined> => store.get(grantEndsKey(tenant))

  return {
    /** Returns the revocations, the latest first. @throws GatewayError unavailable */
    of: async (tenant: TenantId): Promise<readonly End[]> => endsIn(await textOf(tenant)),
    /** @returns false if there are too many already: then only a revocation of everything can be added */
    async add(tenant: TenantId, part: EndedPart): Promise<boolean> {
      for (let tries = 0; tries < maxTries; tries++) {
        const text = await textOf(tenant)
        const before = endsIn(text)
        const others = before.filter((each) => !covers(part, each))
        if (others.length >= maxEnds) return false
        const ends: readonly End[] = [{ ...part, number: lastOf(before) + 1 }, ...others]
        const next = JSON.stringify(ends)
        // A revocation that includes earlier ones replaces them, which makes the text shorter.
        if (next.length > maxLength && others.length === before.length) return false
        const when = text === undefined ? 'absent' : { is: text }
        if (await store.set(grantEndsKey(tenant), next, { ttlMs: foreverMs, when })) return true
      }
      throw unavailable('Connections are being ended by others, too. Try again in a moment.')
    }
  }
}

const endsIn = (text: string | undefined): readonly End[] => (text === undefined ? [] : (JSON.parse(text) as End[]))

/** The number of the latest revocation, which a new grant stores as `givenAfter`. */
export const lastOf = ([latest]: readonly End[]): number => latest?.number ?? 0

const covers = (part: EndedPart, of: EndedPart): boolean =>
  (part.issuer === undefined || part.issuer === of.issuer) &&
  (part.upstream === undefined || part.upstream === of.upstream)

export const isEnded = (
  ends: readonly End[],
  { issuer }: Person,
  upstream: string,
  { givenAfter = 0 }: Grant
): boolean => ends.some((end) => end.number > givenAfter && covers(end, { issuer, upstream }))
