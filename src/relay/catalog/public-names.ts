// The public names of an endpoint. Its configuration alone decides whose namespace a name is in: an upstream that took
// the name of another would otherwise get its calls while that one is down.

import type { Endpoint, EndpointMember } from '../../config/snapshot.ts'
import type { UpstreamName } from '../../protocol/messages.ts'
import { anyMatcher } from '../../protocol/glob.ts'
import { mayBeShortened, publicNameFor } from '../../protocol/naming.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import type { Offer } from './catalog.ts'

/** A name that two claim, as UPSTREAM/NAME, and who has it; undefined: whose name it would be, if it were there. */
export interface NameClash {
  readonly name: string
  readonly has: string | undefined
  readonly hasNot: string
}

/** A name that was shortened, because hosts would refuse the whole name. */
export interface ShortenedName {
  readonly whole: string
  readonly shown: string
}

/** An offer of a member under a name, whatever other members have. */
export interface NamedOffer {
  readonly shown: string
  /** Does the endpoint give it its whole public name? */
  readonly isRenamed: boolean
  /** Does it begin with the prefix of another member? */
  readonly isElsewhere: boolean
  readonly offer: Offer
}

export interface PublicNames {
  readonly offers: ReadonlyMap<string, Offer>
  /** The first to come has a name. */
  add(member: EndpointMember, named: NamedOffer): void
}

/** May a name of an upstream be used, if the upstream has it? */
export type MayUse = (upstream: UpstreamName, name: string) => boolean

/** No upstream has them, and no rule names them; a pattern may cover them. */
const nobodysName = ''
const nobodysUri = 'https://nobody.invalid/'

/** May the name be used, or, if it may not, one that nobody has? What is denied answers like that. */
export const mayUseLike = (mayUse: MayUse, upstream: UpstreamName, name: string, nobodys = nobodysUri): boolean =>
  mayUse(upstream, name) || mayUse(upstream, nobodys)

export function createPublicNames({ members, separator, tools = {} }: Endpoint) {
  const single = members.length === 1
  const startOf = (prefix: string): string => (prefix === '' ? '' : prefix + separator)
  const starts = members.map(({ prefix }) => ({ prefix, start: startOf(prefix) }))
  /** Begins it with a longer prefix? `a__b` and its `x` mean `a__b__x`, not `a` and its `b__x`. */
  const isElsewhere = (name: string, prefix: string): boolean =>
    starts.some(
      (each) =>
        each.prefix.length > prefix.length &&
        (name.startsWith(each.start) || (prefix === '' && mayBeShortened(each.prefix, separator, name)))
    )
  const renamed = new Map(Object.entries(tools).flatMap(([tool, { rename }]) => (rename ? [[rename, tool]] : [])))
  const clashes = new Map<string, NameClash>()
  const shortened = new Map<string, ShortenedName>()

  function namesOf(reserved: ReadonlyMap<string, string>): PublicNames {
    const offers = new Map<string, Offer>()
    return {
      offers,
      add({ upstream, prefix }, { shown, isRenamed, isElsewhere: isOfAnother, offer }) {
        const { name } = offer.route
        const taken = offers.get(shown)?.route
        const owner = reserved.get(shown)
        if (taken?.upstream === upstream && taken.name === name) return
        if (taken !== undefined || (!isRenamed && (owner !== undefined || isOfAnother))) {
          const own = `${upstream}/${name}`
          const has = taken === undefined ? owner : `${taken.upstream}/${taken.name}`
          clashes.set(`${shown} ${own}`, { name: shown, has, hasNot: own })
          return
        }
        offers.set(shown, offer)
        const whole = startOf(prefix) + name
        if (!isRenamed && shown !== whole) shortened.set(shown, { whole, shown })
      }
    }
  }

  return {
    /** @param rename the whole public name, if the endpoint gives it one */
    named({ prefix }: EndpointMember, name: string, offerFor: (shown: string) => Offer, rename?: string): NamedOffer {
      const shown = rename ?? publicNameFor(prefix, separator, name)
      const isRenamed = rename !== undefined
      return { shown, isRenamed, isElsewhere: !isRenamed && isElsewhere(shown, prefix), offer: offerFor(shown) }
    },
    tools: namesOf(renamed),
    prompts: namesOf(new Map()),
    clashes,
    shortened,
    /**
     * The member without a listing whose tool or prompt this could be.
     * @param mayUse whether the viewer could
     */
    unlistedOwnerOf(
      kind: 'tool' | 'prompt',
      name: string,
      listings: ReadonlyMap<UpstreamName, unknown>,
      mayUse: MayUse
    ): UpstreamName | undefined {
      const tool = kind === 'tool' ? renamed.get(name) : undefined
      return members.find(({ upstream, prefix }) => {
        if (listings.has(upstream)) return false
        const own = `${upstream}/`
        if (tool?.startsWith(own) === true && mayUse(upstream, tool.slice(own.length))) return true
        const start = startOf(prefix)
        const isOwn = name.startsWith(start) && !isElsewhere(name, prefix)
        return (
          (single || isOwn || mayBeShortened(prefix, separator, name)) &&
          mayUseLike(mayUse, upstream, name.startsWith(start) ? name.slice(start.length) : name, nobodysName)
        )
      })?.upstream
    }
  }
}

interface NamedTools {
  readonly member: EndpointMember
  readonly tools: readonly NamedOffer[]
}
const namedTools = new WeakMap<Endpoint, WeakMap<Listing, NamedTools>>()

/** The tools of a member: where the listing of another has changed, they are not made again. */
export function namedOnce(
  endpoint: Endpoint,
  member: EndpointMember,
  listing: Listing,
  make: () => readonly NamedOffer[]
): readonly NamedOffer[] {
  const ofEndpoint = namedTools.get(endpoint) ?? new WeakMap<Listing, NamedTools>()
  namedTools.set(endpoint, ofEndpoint)
  const known = ofEndpoint.get(listing)
  if (known?.member === member) return known.tools
  const tools = make()
  ofEndpoint.set(listing, { member, tools })
  return tools
}

/** The tools in the order of the endpoint, and no more than it wants. */
export function orderedTools(
  offers: ReadonlyMap<string, Offer>,
  { order = [], maxTools: max = Infinity, maxCatalogBytes: maxBytes = Infinity }: Endpoint
): ReadonlyMap<string, Offer> {
  if (order.length === 0 && offers.size <= max && maxBytes === Infinity) return offers
  const ranks = order.map((each) => anyMatcher([each]))
  let bytes = 0
  const fits = ({ offer }: { offer: Offer }): boolean => {
    if (maxBytes === Infinity) return true
    // One that does not fit ends the list: a shorter one after it would jump the queue.
    bytes += Buffer.byteLength(JSON.stringify(offer.entry)) + 1
    return bytes <= maxBytes
  }
  const rankOf = ({ route: { upstream, name } }: Offer): number => {
    const rank = ranks.findIndex((matches) => matches(`${upstream}/${name}`))
    return rank === -1 ? ranks.length : rank
  }
  const ranked = [...offers].map(([name, offer]) => ({ name, offer, rank: rankOf(offer) }))
  return new Map(
    ranked
      .sort((a, b) => a.rank - b.rank)
      .slice(0, max)
      .filter(fits)
      .map(({ name, offer }) => [name, offer] as const)
  )
}
