// What rules look at of a route: its names in each spelling, and its tags.

import { hintTags, type UpstreamTags } from '../config/policy/policy-config.ts'
import { anyMatcher } from '../protocol/glob.ts'
import type { JsonObject } from '../protocol/messages.ts'
import type { ToolChange } from '../protocol/translate/change-tool.ts'
import { isPlainUri } from '../protocol/plain-uri.ts'
import type { RouteFacts, RouteKind } from './rules.ts'

/** A route as a catalog has it. */
export interface JudgedRoute {
  readonly upstream: string
  readonly name: string
  /** The annotations of a tool, as its server lists them. */
  readonly annotations?: JsonObject | undefined
  /** What the endpoint changes of a tool: its annotations are the operator's, and stand in place of the server's. */
  readonly change?: Pick<ToolChange, 'annotations' | 'tenantHints'> | undefined
}

export type RouteFactsOf = ReturnType<typeof createRouteFacts>

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
    const ofPlatform = Object.entries(given).filter(([hint]) => !tenantHints.includes(hint))
    const [whole, trusted] = [factsWith(given), factsWith(Object.fromEntries(ofPlatform))]
    const ofReserved = {
      ...trusted,
      tags: whole.tags.union(trusted.tags),
      certainTags: whole.certainTags.intersection(trusted.certainTags)
    }
    return { ...whole, ofReserved }
  }
}

interface Annotations {
  /** The annotations of the server. */
  readonly own: JsonObject | undefined
  /** The annotations that the endpoint gives. */
  readonly given: JsonObject | undefined
}

/**
 * Tags of a route: what the operator says, of the upstream and in the annotations of an endpoint, and, where that is to
 * be trusted, what the server says of its tool.
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
    const given = (is: (matches: (name: string) => boolean) => boolean): string[] =>
      matchers.filter(([, matches]) => is(matches)).map(([tag]) => tag)
    const said = { ...(trustAnnotations && annotations.own), ...annotations.given }
    const hints = hintTags.flatMap(([hint, tag]) => (said[hint] === true ? tag : []))
    const tags = new Set([...given((matches) => names.some(matches)), ...hints])
    const certain = isClear ? given((matches) => names.every(matches)) : []
    return { tags, certainTags: new Set([...certain, ...hints]) }
  }
}

/**
 * A URI in each spelling that a server may read it in: as it came, and with escapes and dot segments resolved.
 * Otherwise `file:///public/%2e%2e/secret` would be no URI under `file:///secret`.
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
    return uri // No valid escapes: it has no other spelling.
  }
}
