// Whose template a URI matches that no list shows.

import type { UpstreamName } from '../../protocol/messages.ts'
import { uriMatcher } from '../../protocol/uri-template.ts'
import type { Route } from './catalog.ts'

/** Of an upstream: a bare URI that is not listed is compared with all of them at once, whatever their servers wrote. */
const maxMatchedTemplates = 100

interface TemplateMatcher {
  readonly upstream: UpstreamName
  readonly matches: (uri: string) => boolean
}

type Offers = ReadonlyMap<string, { readonly route: Route }>

/** @returns who lists a template that a URI matches */
export function ownersByTemplate(templates: Offers): (uri: string) => UpstreamName[] {
  let matchers: TemplateMatcher[] | undefined
  return (uri) => {
    matchers ??= matchersOf(templates)
    return [...new Set(matchers.flatMap(({ upstream, matches }) => (matches(uri) ? upstream : [])))]
  }
}

function matchersOf(templates: Offers): TemplateMatcher[] {
  const perUpstream = new Map<UpstreamName, number>()
  return [...templates.values()].flatMap(({ route: { upstream, name } }) => {
    const count = perUpstream.get(upstream) ?? 0
    const matches = count < maxMatchedTemplates ? uriMatcher(name) : undefined
    if (matches === undefined) return []
    perUpstream.set(upstream, count + 1)
    return [{ upstream, matches }]
  })
}
