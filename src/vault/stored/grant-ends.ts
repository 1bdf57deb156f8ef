// Ends of connections that administrators have ordered for many at once: each has a number, and what was given before
// it counts as absent, also where no list names it any more.

import type { Person } from '../../config/auth/upstream-auth.ts'
import type { TenantId } from '../../protocol/messages.ts'
import { foreverMs, grantEndsKey } from '../../store/keys.ts'
import { type Store, unavailable } from '../../store/port.ts'
import type { Grant } from '../grant.ts'

/** The most issuers and upstreams of one tenant of which it is known when their grants ended. */
const maxEnds = 1_000
/** The longest text of them, in characters: it is read together with the grants of each person. */
const maxLength = 65_536
/** How often an end is written while other processes write one. */
const maxTries = 8

/** A part of a tenant: all people where there is no issuer, all upstreams where there is none. */
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
    /** The latest first, so that its number is that of what is given now. @throws GatewayError unavailable */
    of: async (tenant: TenantId): Promise<readonly End[]> => endsIn(await textOf(tenant)),
    /** @returns false where there are too many already: only one of everything is possible then */
    async add(tenant: TenantId, part: EndedPart): Promise<boolean> {
      for (let tries = 0; tries < maxTries; tries++) {
        const text = await textOf(tenant)
        const before = endsIn(text)
        const others = before.filter((each) => !covers(part, each))
        if (others.length >= maxEnds) return false
        const ends: readonly End[] = [{ ...part, number: lastOf(before) + 1 }, ...others]
        const next = JSON.stringify(ends)
        // One that takes in others makes it shorter.
        if (next.length > maxLength && others.length === before.length) return false
        const when = text === undefined ? 'absent' : { is: text }
        if (await store.set(grantEndsKey(tenant), next, { ttlMs: foreverMs, when })) return true
      }
      throw unavailable('Connections are being ended by others, too. Try again in a moment.')
    }
  }
}

const endsIn = (text: string | undefined): readonly End[] => (text === undefined ? [] : (JSON.parse(text) as End[]))

/** The number of what is given now. */
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
