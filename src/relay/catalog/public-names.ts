// The public names of an endpoint. Its configuration alone decides whose namespace a name is in: an upstream that took
// the name of another would otherwise get its calls while that one is down.

import type { Endpoint, EndpointMember } from '../../config/snapshot.ts'
import type { JsonObject, UpstreamName } from '../../protocol/messages.ts'
import { anyMatcher } from '../../protocol/glob.ts'
import { isSafeName, mayBeShortened, publicNameFor } from '../../protocol/naming.ts'
import type { Route } from './catalog.ts'
import { type MakeEntry, Offer } from './offered.ts'

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
export interface PublicNames {
  readonly offers: ReadonlyMap<string, Offer>
  /** The first to come has a name. */
  add(member: EndpointMember, offer: Offer): void
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
      add({ upstream, prefix }, offer) {
        const { shown, naming } = offer
        const { name } = offer.route
        const taken = offers.get(shown)?.route
        const owner = reserved.get(shown)
        if (taken?.upstream === upstream && taken.name === name) return
        if (taken !== undefined || naming === 'elsewhere' || (naming !== 'given' && owner !== undefined)) {
          const own = `${upstream}/${name}`
          const has = taken === undefined ? owner : `${taken.upstream}/${taken.name}`
          clashes.set(`${shown} ${own}`, { name: shown, has, hasNot: own })
          return
        }
        offers.set(shown, offer)
        if (naming === 'changed') shortened.set(shown, { whole: startOf(prefix) + name, shown })
      }
    }
  }

  return {
    /** @returns what names the tools and prompts of a member */
    namesOf({ prefix }: EndpointMember) {
      const start = startOf(prefix)
      const longer = starts.filter((each) => each.prefix.length > prefix.length && each.start.startsWith(start))
      /** What its own name begins with where the whole name begins with a longer prefix. */
      const rests = longer.map((each) => each.start.slice(start.length))
      return (item: JsonObject, route: Route, make: MakeEntry): Offer => {
        const { name, change } = route
        if (change?.rename !== undefined) return new Offer(change.rename, route, item, make, 'given')
        const isWhole = prefix === '' || isSafeName(start, name)
        const shown = isWhole ? start + name : publicNameFor(prefix, separator, name)
        // Whole names are not looked at themselves: V8 copies what was put together as soon as it is looked at.
        const isOfAnother =
          isWhole && prefix !== '' ? rests.some((rest) => name.startsWith(rest)) : isElsewhere(shown, prefix)
        return new Offer(shown, route, item, make, isOfAnother ? 'elsewhere' : isWhole ? 'whole' : 'changed')
      }
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

/** The tools in the order of the endpoint, and no more than it wants. */
export function orderedTools(
  offers: ReadonlyMap<string, Offer>,
  { order = [], maxTools: max = Infinity, maxCatalogBytes: maxBytes = Infinity }: Endpoint
): ReadonlyMap<string, Offer> {
  if (order.length === 0 && offers.size <= max && maxBytes === Infinity) return offers
  const ranks = order.map((each) => anyMatcher([each]))
  const byRank: Offer[][] = [...ranks.map(() => []), []]
  for (const offer of offers.values()) {
    const text = `${offer.route.upstream}/${offer.route.name}`
    const rank = ranks.findIndex((matches) => matches(text))
    byRank.at(rank)?.push(offer)
  }
  const kept = new Map<string, Offer>()
  let bytes = 0
  for (const offer of byRank.flat()) {
    if (kept.size >= max) break
    // One that does not fit ends the list: a shorter one after it would jump the queue.
    if (maxBytes !== Infinity) bytes += Buffer.byteLength(JSON.stringify(offer.entry)) + 1
    if (bytes > maxBytes) break
    kept.set(offer.shown, offer)
  }
  return kept
}
