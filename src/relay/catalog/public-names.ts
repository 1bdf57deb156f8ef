// The public names of an endpoint. Its configuration alone decides whose namespace a name is in: an upstream that took
// the name of another would otherwise get its calls while that one is down.

import type { Endpoint, EndpointMember } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { UpstreamName } from '../../protocol/messages.ts'
import { mayBeShortened, publicNameFor } from '../../protocol/naming.ts'
import type { Catalog, Offer } from './catalog.ts'

/** A name that two claim, as UPSTREAM/NAME, and who has it; undefined: whose name it would be, if it were there. */
export interface NameClash {
  readonly name: string
  readonly has: string | undefined
  readonly hasNot: string
}

/** What was written otherwise, because hosts would refuse the whole name. */
export interface ShortenedName {
  readonly whole: string
  readonly shown: string
}

export interface PublicNames {
  readonly offers: ReadonlyMap<string, Offer>
  /** The first to come has a name. @param rename the whole public name, if the endpoint gives it one */
  add(member: EndpointMember, name: string, offerFor: (shown: string) => Offer, rename?: string): void
}

/** May a name of an upstream be used, if the upstream has it? */
export type MayUse = (upstream: UpstreamName, name: string) => boolean

/** No upstream has them, and no rule names them; a pattern may cover them. */
const [nobodysName, nobodysUri] = ['', 'https://nobody.invalid/']

/** May the name be used, or, if it may not, one that nobody has? What is denied answers like that. */
export const mayUseLike = (mayUse: MayUse, upstream: UpstreamName, name: string, nobodys = nobodysUri): boolean =>
  mayUse(upstream, name) || mayUse(upstream, nobodys)

export function createPublicNames({ members, separator, tools = {} }: Endpoint) {
  const single = members.length === 1
  const startOf = (prefix: string): string => (prefix === '' ? '' : prefix + separator)
  /** Begins it with a longer prefix? `a__b` and its `x` mean `a__b__x`, not `a` and its `b__x`. */
  const isElsewhere = (name: string, prefix: string): boolean =>
    members.some(
      (each) =>
        each.prefix.length > prefix.length &&
        (name.startsWith(startOf(each.prefix)) || (prefix === '' && mayBeShortened(each.prefix, separator, name)))
    )
  const renamed = new Map(Object.entries(tools).flatMap(([tool, { rename }]) => (rename ? [[rename, tool]] : [])))
  const clashes = new Map<string, NameClash>()
  const shortened = new Map<string, ShortenedName>()

  function namesOf(reserved: ReadonlyMap<string, string>): PublicNames {
    const offers = new Map<string, Offer>()
    return {
      offers,
      add({ upstream, prefix }, name, offerFor, rename) {
        const own = `${upstream}/${name}`
        const shown = rename ?? publicNameFor(prefix, separator, name)
        const taken = offers.get(shown)?.route
        const owner = reserved.get(shown)
        if (taken?.upstream === upstream && taken.name === name) return
        if (taken !== undefined || (rename === undefined && (owner !== undefined || isElsewhere(shown, prefix)))) {
          const has = taken === undefined ? owner : `${taken.upstream}/${taken.name}`
          clashes.set(`${shown} ${own}`, { name: shown, has, hasNot: own })
          return
        }
        offers.set(shown, offerFor(shown))
        const whole = startOf(prefix) + name
        if (rename === undefined && shown !== whole) shortened.set(shown, { whole, shown })
      }
    }
  }

  return {
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
  ranks: ReadonlyArray<(tool: string) => boolean>,
  max = Infinity
): ReadonlyMap<string, Offer> {
  if (ranks.length === 0 && offers.size <= max) return offers
  const rankOf = ({ route: { upstream, name } }: Offer): number => {
    const rank = ranks.findIndex((matches) => matches(`${upstream}/${name}`))
    return rank === -1 ? ranks.length : rank
  }
  const ranked = [...offers].map(([name, offer]) => ({ name, offer, rank: rankOf(offer) }))
  return new Map(
    ranked
      .sort((a, b) => a.rank - b.rank)
      .slice(0, max)
      .map(({ name, offer }) => [name, offer] as const)
  )
}

/** Of one catalog, in one line of the log. */
const maxReported = 20

export function reportNames(
  { tenant, name: endpoint }: Endpoint,
  { clashes, shortened }: Pick<Catalog, 'clashes' | 'shortened'>,
  log: Log
): void {
  if (clashes.length > 0)
    log.warn(
      { tenant, endpoint, names: clashes.slice(0, maxReported) },
      'two upstreams claim the same name: it is the one whose prefix it begins with, or that the endpoint names ' +
        'first; give one of them another prefix, or rename the tool'
    )
  if (shortened.length > 0)
    log.info({ tenant, endpoint, names: shortened.slice(0, maxReported) }, 'names that hosts would refuse are changed')
}
