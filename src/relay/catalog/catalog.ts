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
import {
  hasCapability,
  mergeCapabilities,
  mergeInstructions,
  mergeModernCapabilities,
  tasksExtension
} from '../../protocol/methods.ts'
import { wrapUri } from '../../protocol/naming.ts'
import { changedTool, changesResults, type ToolChange } from '../../protocol/translate/change-tool.ts'
import { rewriteTool, type UriMap } from '../../protocol/translate/rewrite.ts'
import { shapeEntry, shapeTool } from '../../protocol/translate/revision-shape.ts'
import { withoutTaskSupport } from '../../protocol/translate/tasks.ts'
import { needsWrapping, wrapOutputSchema } from '../../protocol/translate/wrap-structured.ts'
import { allowed, type Decision } from '../../policy/access.ts'
import type { RouteKind } from '../../policy/rules.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { offeredBy } from './offered.ts'
import { createPublicNames, mayUseLike, namedOnce, type NamedOffer, orderedTools, type MayUse } from './public-names.ts'
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

export interface Offer {
  readonly entry: JsonObject
  readonly route: Route
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
  const changes = new Map(Object.entries(endpoint.tools ?? {}))
  const names = createPublicNames(endpoint)
  const modernTools = new Map<JsonObject, { readonly tasks: boolean }>()

  // A name belongs to the member that stands first, up or not.
  for (const member of members) {
    const { upstream } = member
    const listing = listings.get(upstream) ?? away.get(upstream)
    if (listing === undefined) continue
    const map = uriMap(upstream)
    const tasks = single !== undefined || hasCapability(listing.capabilities, ['tasks', 'requests', 'tools', 'call'])
    const toolsOfMember = namedOnce(endpoint, member, listing, () =>
      listing.tools.flatMap((tool): NamedOffer[] => {
        const name = String(tool['name'])
        if (!offers('tools', upstream, name)) return []
        const change = changes.get(`${upstream}/${name}`)
        const { annotations } = tool
        const route = { upstream, name, ...(change && { change }), ...(isObject(annotations) && { annotations }) }
        const own = change === undefined ? tool : changedTool(tool, change)
        const shared = tasks && !changesResults(change) ? own : withoutTaskSupport(own)
        return [
          names.named(member, name, (shown) => ({ entry: rewriteTool(shared, shown, map), route }), change?.rename)
        ]
      })
    )
    const isModern = isModernRevision(listing.revision)
    const modern = { tasks: hasCapability(listing.capabilities, ['extensions', tasksExtension]) }
    for (const named of toolsOfMember) {
      const { entry, route } = named.offer
      if (isModern) modernTools.set(entry, changesResults(route.change) ? { tasks: false } : modern)
      names.tools.add(member, named)
    }
    for (const prompt of listing.prompts) {
      const name = String(prompt['name'])
      if (!offers('prompts', upstream, name)) continue
      names.prompts.add(member, names.named(member, name, offerOfPrompt(prompt, { upstream, name })))
    }
  }
  const tools = orderedTools(names.tools.offers, endpoint)
  const known = members.map(({ upstream }) => listings.get(upstream))
  const routes = createResourceRoutes(endpoint, uriMap, offered)
  // Only http(s) URIs are not wrapped, and mean the same wherever they are listed: the first upstream serves them, of
  // those that are up.
  for (const { upstream } of [...members.filter((_, at) => known[at]), ...members.filter((_, at) => !known[at])])
    routes.add(upstream, listings.get(upstream) ?? away.get(upstream))

  /** Shapes a modern tool for legacy clients: the gateway makes a task of any call of it that asks for one. */
  function asLegacy(tool: JsonObject): JsonObject {
    const modern = modernTools.get(tool)
    if (modern === undefined) return tool
    const whole = wrapOutputSchema(tool)
    return modern.tasks ? { ...whole, execution: { taskSupport: 'optional' } } : whole
  }

  const offersOf = {
    tools: [...tools.values()],
    prompts: [...names.prompts.offers.values()],
    resources: [...routes.resources.values()],
    templates: [...routes.templates.values()]
  }
  const lists = listed(offersOf, listings, ({ entry }) => entry)
  const routesOf = listed(offersOf, listings, ({ route }) => route)
  const instructionsOf = (isKnown: (upstream: UpstreamName) => boolean): string | undefined =>
    mergeInstructions(
      endpoint.instructions,
      members.flatMap(({ upstream, prefix }, at) =>
        isKnown(upstream) ? { upstream, prefix, instructions: known[at]?.instructions } : []
      ),
      separator
    )
  const shaped = new Map<string, readonly JsonObject[]>()
  return {
    ...lists,
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
    /** Shaped once for each revision. */
    list(name: ListName, revision: Revision): readonly JsonObject[] {
      if (revision === latestLegacy && (name !== 'tools' || modernTools.size === 0)) return lists[name]
      const key = `${name} ${revision}`
      let list = shaped.get(key)
      if (list === undefined) {
        const shape =
          name === 'tools'
            ? (tool: JsonObject): JsonObject => shapeTool(isModernRevision(revision) ? tool : asLegacy(tool), revision)
            : (entry: JsonObject): JsonObject => shapeEntry(entry, revision)
        list = lists[name].map(shape)
        shaped.set(key, list)
      }
      return list
    },
    tool: (name: string): Route | undefined => tools.get(name)?.route,
    /** Do legacy clients see another `outputSchema` of the tool, so that its results have to be wrapped? */
    wrapsStructuredContent(name: string): boolean {
      const entry = tools.get(name)?.entry
      return entry !== undefined && modernTools.has(entry) && needsWrapping(entry)
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

const offerOfPrompt =
  (prompt: JsonObject, route: Route) =>
  (shown: string): Offer => ({ entry: route.name === shown ? prompt : { ...prompt, name: shown }, route })

/** Returns the entries of a list; members that are down are left out. */
function listed<T>(
  offers: Readonly<Record<ListName, readonly Offer[]>>,
  up: ListingsByName,
  part: (offer: Offer) => T
): Readonly<Record<ListName, readonly T[]>> {
  const of = (name: ListName): readonly T[] => offers[name].filter(({ route }) => up.has(route.upstream)).map(part)
  return { tools: of('tools'), prompts: of('prompts'), resources: of('resources'), templates: of('templates') }
}

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
