// The facts of a route that rules compare: its names in each spelling, and its tags.

import { hintTags, type UpstreamTags } from '../config/policy/policy-config.ts'
import { anyMatcher } from '../protocol/glob.ts'
import type { JsonObject } from '../protocol/messages.ts'
import type { ToolChange } from '../protocol/translate/change-tool.ts'
import { isPlainUri } from '../protocol/plain-uri.ts'
import type { RouteFacts, RouteKind } from './rules.ts'

/** A route of a catalog, as far as rules compare it. */
export interface JudgedRoute {
  readonly upstream: string
  readonly name: string
  /** The annotations of a tool that its server lists. */
  readonly annotations?: JsonObject | undefined
  /** What the endpoint changes of a tool: each annotation in it replaces the server's of the same name. */
  readonly change?: Pick<ToolChange, 'annotations' | 'tenantHints'> | undefined
}

export type RouteFactsOf = ReturnType<typeof createRouteFacts>

/**
 * Returns a function that collects the facts of a route.
 * @param tags the configured tags of each upstream, by upstream name
 */
export function createRouteFacts(tags: ReadonlyMap<string, UpstreamTags>) {
  const tagsOf = createTags(tags)
  return (kind: RouteKind, { upstream, name, annotations, change }: JudgedRoute): RouteFacts => {
    const names = kind === 'resource' ? spellingsOf(name) : [name]
    const isClear = kind !== 'resource' || isPlainUri(name)
    const factsWith = (given: JsonObject | undefined): RouteFacts => ({
      kind,
      upstream,
      names,
      isClear,
      ...tagsOf(upstream, names, isClear, { own: annotations, given })
    })
    const { annotations: given, tenantHints } = change ?? {}
    if (given === undefined || tenantHints === undefined) return factsWith(given)
    const platformHints = Object.entries(given).filter(([hint]) => !tenantHints.includes(hint))
    const [withTenantHints, trusted] = [factsWith(given), factsWith(Object.fromEntries(platformHints))]
    const reservedFacts = {
      ...trusted,
      tags: withTenantHints.tags.union(trusted.tags),
      certainTags: withTenantHints.certainTags.intersection(trusted.certainTags)
    }
    return { ...withTenantHints, reservedFacts }
  }
}

interface Annotations {
  /** The annotations that the server lists. */
  readonly own: JsonObject | undefined
  /** The annotations that the configuration of the endpoint sets. */
  readonly given: JsonObject | undefined
}

/**
 * Returns a function that finds the tags of a route. They come from the configuration (tags of the upstream,
 * annotations of the endpoint), and from the server's own annotations if the upstream has `trustAnnotations`.
 */
function createTags(tags: ReadonlyMap<string, UpstreamTags>) {
  const compiled = new Map(
    [...tags].map(([upstream, { tags: patterns, trustAnnotations }]) => [
      upstream,
      { trustAnnotations, matchers: Object.entries(patterns).map(([tag, own]) => [tag, anyMatcher(own)] as const) }
    ])
  )
  return (upstream: string, names: readonly string[], isClear: boolean, annotations: Annotations) => {
    const { trustAnnotations = false, matchers = [] } = compiled.get(upstream) ?? {}
    const tagsWhere = (is: (matches: (name: string) => boolean) => boolean): string[] =>
      matchers.filter(([, matches]) => is(matches)).map(([tag]) => tag)
    const effective = { ...(trustAnnotations && annotations.own), ...annotations.given }
    const hints = hintTags.flatMap(([hint, tag]) => (effective[hint] === true ? tag : []))
    const tags = new Set([...tagsWhere((matches) => names.some(matches)), ...hints])
    const certain = isClear ? tagsWhere((matches) => names.every(matches)) : []
    return { tags, certainTags: new Set([...certain, ...hints]) }
  }
}

/**
 * Returns the spellings of a URI that a server may read: as the caller wrote it, and with escapes and dot segments
 * resolved. Without these a rule about `file:///secret*` would not cover `file:///public/%2e%2e/secret`.
 */
function spellingsOf(uri: string): string[] {
  const decoded = unescaped(uri)
  const resolved = URL.canParse(decoded) ? unescaped(new URL(decoded).href) : decoded
  return [...new Set([uri, decoded, resolved])]
}

function unescaped(uri: string): string {
  try {
    return decodeURIComponent(uri)
  } catch {
    return uri // The escapes are not valid, so the URI has no other spelling.
  }
}
