// What one endpoint offers, and where each public name leads. Pure, and built only when a listing changes.

import type { Endpoint } from '../../config/snapshot.ts'
import {
  isModernRevision,
  isObject,
  type JsonObject,
  latestLegacy,
  type Revision,
  type ServerCapabilities,
  type UpstreamName
} from '../../protocol/messages.ts'
import { finished } from '../../protocol/json-steps.ts'
import {
  hasCapability,
  mergeCapabilities,
  mergeInstructions,
  mergeModernCapabilities,
  tasksExtension
} from '../../protocol/methods.ts'
import { wrapUri } from '../../protocol/naming.ts'
import { changesResults, type ToolChange } from '../../protocol/translate/change-tool.ts'
import type { UriMap } from '../../protocol/translate/rewrite.ts'
import { shapeEntry, shapeTool } from '../../protocol/translate/revision-shape.ts'
import { needsWrapping, wrapOutputSchema } from '../../protocol/translate/wrap-structured.ts'
import { allowed, type Decision } from '../../policy/access.ts'
import type { RouteKind } from '../../policy/rules.ts'
import type { Steps } from '../../time/turns.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { createMemberOffers, entriesOfStep, lazily, listNames, type Offer, offeredBy } from './offered.ts'
import { createPublicNames, mayUseLike, orderedTools, type MayUse } from './public-names.ts'
import { createResourceRoutes } from './resource-routes.ts'

/** The route of a public name: an upstream and its own name. */
export interface Route {
  readonly upstream: UpstreamName
  /** The upstream's own name, or URI. */
  readonly name: string
  /** The URI or the template of a resource as the upstream lists it; undefined where it lists neither. */
  readonly listedAs?: string
  /** The upstream could not be asked: the name is as the caller wrote it. */
  readonly isUnlisted?: true
  /** The changes that the endpoint makes to a tool. */
  readonly change?: ToolChange
  /** The annotations of a tool, as its server lists them. */
  readonly annotations?: JsonObject
}

export type ListName = 'tools' | 'prompts' | 'resources' | 'templates'

/** The kinds of things that a request may name; `reference`: a template or a resource, as in `completion/complete`. */
export type NamedKind = 'tool' | 'prompt' | 'resource' | 'reference'

export type Catalog = ReturnType<typeof buildCatalog>

type ListingsByName = ReadonlyMap<UpstreamName, Listing>

/** @param away what members that are down listed before: names lead to them, and the lists leave them out */
export function buildCatalog(endpoint: Endpoint, listings: ListingsByName, away: ListingsByName = new Map()) {
  const { members, separator } = endpoint
  const single = members.length === 1 ? members[0] : undefined
  /** Returns the map from an upstream's URI to the one that clients see. */
  const uriMap = (upstream: UpstreamName): UriMap =>
    single === undefined ? (uri) => wrapUri(upstream, uri) : (uri) => uri
  const offered = offeredBy(endpoint)
  const { offers } = offered
  const names = createPublicNames(endpoint)
  const routes = createResourceRoutes(endpoint, uriMap, offered)
  const offersOf = createMemberOffers(endpoint, offered, names, uriMap)
  const listingOf = (upstream: UpstreamName): Listing | undefined => listings.get(upstream) ?? away.get(upstream)
  /** The tools of members of 2026-07-28, and whether calls of them may become tasks. */
  const modernTools = new Map<UpstreamName, { readonly tasks: boolean }>()

  // A name belongs to the member that stands first, up or not.
  for (const member of members) {
    const listing = listingOf(member.upstream)
    if (listing === undefined) continue
    const { tools, prompts } = offersOf(member, listing)
    if (isModernRevision(listing.revision) && tools.length > 0)
      modernTools.set(member.upstream, { tasks: hasCapability(listing.capabilities, ['extensions', tasksExtension]) })
    for (const offer of tools) names.tools.add(member, offer)
    for (const offer of prompts) names.prompts.add(member, offer)
  }
  const tools = orderedTools(names.tools.offers, endpoint)
  const known = members.map(({ upstream }) => listings.get(upstream))
  // Only http(s) URIs are not wrapped, and mean the same wherever they are listed: the first upstream serves them, of
  // those that are up.
  for (const member of [...members.filter((_, at) => known[at]), ...members.filter((_, at) => !known[at])]) {
    const listing = listingOf(member.upstream)
    if (listing !== undefined) routes.add(offersOf(member, listing))
  }

  /** Shapes a modern tool for legacy clients: the gateway makes a task of any call of it that asks for one. */
  function asLegacy({ entry, route }: Offer): JsonObject {
    const modern = modernTools.get(route.upstream)
    if (modern === undefined) return entry
    const whole = wrapOutputSchema(entry)
    return modern.tasks && !changesResults(route.change) ? { ...whole, execution: { taskSupport: 'optional' } } : whole
  }

  /** Members that are down are left out of lists. */
  const listedOf = (offers: ReadonlyMap<string, Offer>): readonly Offer[] =>
    away.size === 0 ? [...offers.values()] : [...offers.values()].filter(({ route }) => listings.has(route.upstream))
  const listed = {
    tools: listedOf(tools),
    prompts: listedOf(names.prompts.offers),
    resources: listedOf(routes.resources),
    templates: listedOf(routes.templates)
  }
  const routesOf = lazily((name) => listed[name].map(({ route }) => route))
  const lists = lazily((name) => listed[name].map(({ entry }) => entry))
  const instructionsOf = (isKnown: (upstream: UpstreamName) => boolean): string | undefined =>
    mergeInstructions(
      endpoint.instructions,
      members.flatMap(({ upstream, prefix }, at) =>
        isKnown(upstream) ? { upstream, prefix, instructions: known[at]?.instructions } : []
      ),
      separator
    )
  const shaped = new Map<string, readonly JsonObject[]>()

  /** Shaped once for each revision. Who needs it now may make it while it is made in steps: the first to end counts. */
  function* listSteps(name: ListName, revision: Revision): Steps<readonly JsonObject[]> {
    const key = `${name} ${revision}`
    const before = shaped.get(key)
    if (before !== undefined) return before
    const isPlain = revision === latestLegacy && (name !== 'tools' || modernTools.size === 0)
    const shape =
      name === 'tools'
        ? (offer: Offer) => shapeTool(isModernRevision(revision) ? offer.entry : asLegacy(offer), revision)
        : ({ entry }: Offer) => shapeEntry(entry, revision)
    const list: JsonObject[] = []
    for (const offer of listed[name]) {
      list.push(shape(offer))
      if (list.length % entriesOfStep === 0) yield
    }
    const made = shaped.get(key) ?? (isPlain ? lists[name] : list)
    shaped.set(key, made)
    return made
  }

  return {
    /** The entries of each list, as a client of the latest revision before 2026-07-28 sees them. */
    lists,
    /** The number of their entries, and of the characters of their URIs. */
    size: {
      entries: listNames.reduce((sum, name) => sum + listed[name].length, 0),
      uriChars: charsOf(listed.resources) + charsOf(listed.templates)
    },
    capabilities: mergeCapabilities(known.map((listing) => listing && legacyCapabilitiesOf(listing))),
    /** The capabilities for 2026-07-28. */
    modernCapabilities: mergeModernCapabilities(
      known.map(
        (listing) => listing && { modern: isModernRevision(listing.revision), capabilities: capabilitiesOf(listing) }
      )
    ),
    instructions: instructionsOf(() => true),
    /** Returns the instructions for a client that may not see every member. */
    instructionsOf,
    /** Decides whether the viewer of this catalog may use a route; a view has its own answer (visible.ts). */
    decide: (_kind: RouteKind, _route: Route): Decision => allowed,
    /** Returns the routes of the entries of each list, in the same order. */
    routes: (name: ListName): readonly Route[] => routesOf[name],
    /** Finds a route that the caller does not see, and the rule that hides it; for those who run the gateway. */
    hidden: (_kind: NamedKind, _name: string): { readonly route: Route; readonly rule: string } | undefined =>
      undefined,
    isTemplate: ({ upstream, name }: Route): boolean =>
      name.includes('{') || routes.templates.get(uriMap(upstream)(name))?.route.upstream === upstream,
    /** Claimed by two upstreams: they lead to the one whose prefix they begin with, up or not, else to the first. */
    clashes: [...names.clashes.values()],
    shortened: [...names.shortened.values()],
    matchedOfEach: routes.matchedOfEach(),
    listSteps,
    list: (name: ListName, revision: Revision) => finished(listSteps(name, revision)),
    tool: (name: string): Route | undefined => tools.get(name)?.route,
    /** Do legacy clients see another `outputSchema` of the tool, so that its results have to be wrapped? */
    wrapsStructuredContent(name: string): boolean {
      const offer = tools.get(name)
      return offer !== undefined && modernTools.has(offer.route.upstream) && needsWrapping(offer.entry)
    },
    /** `inputSchema` of a tool. */
    schemaOf(name: string): JsonObject | undefined {
      const schema = tools.get(name)?.entry['inputSchema']
      return isObject(schema) ? schema : undefined
    },
    prompt: (name: string): Route | undefined => names.prompts.offers.get(name)?.route,
    /** A URI, listed or not, or a template as it stands in the list. */
    resource: routes.resource,
    /** Finds the route of what `completion/complete` names: a template or a URI. */
    reference: routes.reference,
    uriMap,
    /**
     * The member without a listing whose tool or prompt, or whose resource, this could be.
     * @param mayUse what of it the viewer may use
     */
    unlistedOwnerOfName(kind: 'tool' | 'prompt', name: string, mayUse: MayUse = () => true) {
      const mayHave: MayUse = (upstream, own) => offers(`${kind}s`, upstream, own) && mayUse(upstream, own)
      return names.unlistedOwnerOf(kind, name, listings, mayHave)
    },
    unlistedOwnerOfUri: (uri: string, mayUse: MayUse = () => true): UpstreamName | undefined =>
      members.find(
        ({ upstream }) => !listings.has(upstream) && uriMap(upstream)(uri) === uri && mayUseLike(mayUse, upstream, uri)
      )?.upstream
  }
}

const charsOf = (offers: readonly Offer[]): number => offers.reduce((sum, { shown }) => sum + shown.length, 0)

/** 2024-11-05 had completion, but no capability to declare it by. */
export const capabilitiesOf = ({ capabilities, revision, prompts, templates }: Listing): ServerCapabilities =>
  revision === '2024-11-05' && (prompts.length > 0 || templates.length > 0)
    ? { completions: {}, ...capabilities }
    : capabilities

/** Returns the capabilities for a legacy client: tasks of 2026-07-28 as the capability of 2025-11-25. */
export function legacyCapabilitiesOf(listing: Listing): ServerCapabilities {
  const capabilities = capabilitiesOf(listing)
  const { extensions, ...rest } = capabilities
  if (!isModernRevision(listing.revision) || !isObject(extensions) || !isObject(extensions[tasksExtension]))
    return capabilities
  const { [tasksExtension]: _tasks, ...others } = extensions
  return {
    ...rest,
    ...(Object.keys(others).length === 0 ? {} : { extensions: others }),
    tasks: { cancel: {}, requests: { tools: { call: {} } } }
  }
}
