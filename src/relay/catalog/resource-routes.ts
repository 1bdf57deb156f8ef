// The resources of an endpoint and their templates: which are listed, and where a URI leads, listed or not.

import type { Endpoint } from '../../config/snapshot.ts'
import type { UpstreamName } from '../../protocol/messages.ts'
import { unwrapUri, wrapUri } from '../../protocol/naming.ts'
import type { UriMap } from '../../protocol/translate/rewrite.ts'
import { uriMatcher } from '../../protocol/uri-template.ts'
import { longestOf } from './cache/bounded-listings.ts'
import type { Route } from './catalog.ts'
import type { MemberOffers, Offer, offeredBy } from './offered.ts'

export function createResourceRoutes(
  { members }: Endpoint,
  uriMap: (upstream: UpstreamName) => UriMap,
  { offersUnlisted, offersReference }: ReturnType<typeof offeredBy>
) {
  const single = members.length === 1 ? members[0] : undefined
  const resources = new Map<string, Offer>()
  const templates = new Map<string, Offer>()
  let matchers: TemplateMatcher[] | undefined
  const matching = (uri: string): TemplateMatcher[] =>
    (matchers ??= matchersOf(byUpstream(templates))).filter(({ matches }) => matches(uri))

  /** Finds the route of a URI, whether or not the caller may use it. @param matched the templates that a URI is of */
  function routeOf(uri: string, matched = matching): Route | undefined {
    if (single !== undefined) return { upstream: single.upstream, name: uri }
    const listed = resources.get(uri) ?? templates.get(uri)
    if (listed !== undefined) return listed.route
    // A link that no list shows has a route; so has a bare URI that a model copied out of a text, where it is listed
    // in wrapped form.
    const unwrapped = unwrapUri(uri)
    if (unwrapped !== undefined && members.some(({ upstream }) => upstream === unwrapped.upstream)) {
      return { upstream: unwrapped.upstream, name: unwrapped.uri }
    }
    const listing = members.map(({ upstream }) => upstream).filter((each) => resources.has(wrapUri(each, uri)))
    const found = new Set(listing.length > 0 ? listing : matched(uri).map(({ upstream }) => upstream))
    const [upstream] = found
    return found.size === 1 && upstream !== undefined ? { upstream, name: uri } : undefined
  }

  return {
    resources,
    templates,
    /** How many templates of each upstream a bare URI is tried on, where it is not tried on all; else Infinity. */
    matchedOfEach: (): number => matchedOfEach(byUpstream(templates)),
    /** The first to come has a URI. */
    add(offers: Pick<MemberOffers, 'resources' | 'templates'>): void {
      for (const offer of offers.resources) if (!resources.has(offer.shown)) resources.set(offer.shown, offer)
      for (const offer of offers.templates) if (!templates.has(offer.shown)) templates.set(offer.shown, offer)
    },
    resource(uri: string): Route | undefined {
      // Compared with all templates at most once: where a bare URI is, the route has it as its name.
      let found: TemplateMatcher[] | undefined
      const matched = (own: string): TemplateMatcher[] => (found ??= matching(own))
      const route = routeOf(uri, matched)
      if (route === undefined) return undefined
      const { upstream, name } = route
      const ofUpstream = (own: string): TemplateMatcher | undefined =>
        matched(own).find((each) => each.upstream === upstream)
      const listed = resources.get(uriMap(upstream)(name))
      if (listed?.route.upstream === upstream) return listed.route
      if (!offersUnlisted(route, (own) => ofUpstream(own) !== undefined)) return undefined
      const template = ofUpstream(name)?.template
      return template === undefined ? route : { ...route, listedAs: template }
    },
    reference(uri: string): Route | undefined {
      const route = routeOf(uri)
      if (route === undefined || !offersReference(route)) return undefined
      const shown = uriMap(route.upstream)(route.name)
      const listed = (templates.get(shown) ?? resources.get(shown))?.route
      return listed?.upstream === route.upstream ? listed : route
    }
  }
}

/** Of an upstream: a bare URI that is not listed is compared with all of them at once, whatever their servers wrote. */
const maxMatchedTemplates = 100
/** Of all of an endpoint: of more, the rest of those that list most is left out. */
export const maxMatchedInEndpoint = 1_000
/** Of an upstream: those that say too little are none of the above, but are looked at. */
const maxParsedTemplates = 1_000

interface TemplateMatcher {
  readonly upstream: UpstreamName
  readonly template: string
  readonly matches: (uri: string) => boolean
}

type Templates = ReadonlyMap<UpstreamName, ReadonlyArray<Pick<Offer, 'route'>>>

const byUpstream = (templates: ReadonlyMap<string, Offer>): Templates =>
  Map.groupBy(templates.values(), ({ route: { upstream } }) => upstream)

const matchedOfEach = (templates: Templates): number =>
  longestOf(
    [...templates.values()].map(({ length }) => Math.min(length, maxMatchedTemplates)),
    maxMatchedInEndpoint
  )

function matchersOf(templates: Templates): TemplateMatcher[] {
  const length = Math.min(maxMatchedTemplates, matchedOfEach(templates))
  return [...templates].flatMap(([upstream, offers]) => {
    const matchers = offers
      .values()
      .take(maxParsedTemplates)
      .flatMap(({ route: { name } }) => {
        const matches = uriMatcher(name)
        return matches === undefined ? [] : [{ upstream, template: name, matches }]
      })
    return [...matchers.take(length)]
  })
}
