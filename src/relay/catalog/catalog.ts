// What one endpoint offers, and where each public name leads. Pure, and built only when a listing changes.

import type { Endpoint, EndpointMember } from '../../config/snapshot.ts'
import {
  isModernRevision,
  isObject,
  type JsonObject,
  latestLegacy,
  type PublicName,
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
import { publicNameFor, unwrapUri, wrapUri } from '../../protocol/naming.ts'
import { withUri, rewriteTool, type UriMap } from '../../protocol/translate/rewrite.ts'
import { shapeEntry, shapeTool } from '../../protocol/translate/revision-shape.ts'
import { withoutTaskSupport } from '../../protocol/translate/tasks.ts'
import { needsWrapping, wrapOutputSchema } from '../../protocol/translate/wrap-structured.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { ownersByTemplate } from './template-owners.ts'

/** Where a public name leads. */
export interface Route {
  readonly upstream: UpstreamName
  /** The upstream's own name, or URI. */
  readonly name: string
}

interface Offer {
  readonly entry: JsonObject
  readonly route: Route
}

export type ListName = 'tools' | 'prompts' | 'resources' | 'templates'

export type Catalog = ReturnType<typeof buildCatalog>

type ListingsByName = ReadonlyMap<UpstreamName, Listing>

/** @param away what members that are down listed before: names lead to them, and the lists leave them out */
export function buildCatalog(endpoint: Endpoint, listings: ListingsByName, away: ListingsByName = new Map()) {
  const { members, separator } = endpoint
  const single = members.length === 1 ? members[0] : undefined
  /** From an upstream's URI to the one that clients see. */
  const uriMap = (upstream: UpstreamName): UriMap =>
    single === undefined ? (uri) => wrapUri(upstream, uri) : (uri) => uri
  const startOf = (prefix: string): string => (prefix === '' ? '' : prefix + separator)
  // The configuration alone decides whose namespace a name is in: an upstream that takes the prefix of another would
  // otherwise get its calls while that one is down.
  /** Begins it with a longer prefix? `a__b` and its `x` mean `a__b__x`, not `a` and its `b__x`. */
  const isElsewhere = (name: string, prefix: string): boolean =>
    members.some((each) => each.prefix.length > prefix.length && name.startsWith(startOf(each.prefix)))
  // Listed under the prefix of another member.
  const misplaced = new Set<string>()
  const tools = createPublicNames()
  const prompts = createPublicNames()
  const resources = new Map<string, Offer>()
  const templates = new Map<string, Offer>()
  const modernTools = new Map<JsonObject, { readonly tasks: boolean }>()

  function offer(
    names: ReturnType<typeof createPublicNames>,
    { upstream, prefix }: EndpointMember,
    item: JsonObject,
    entryFor: (shown: PublicName) => JsonObject
  ): void {
    const name = String(item['name'])
    const shown = publicNameFor(prefix, separator, name)
    if (isElsewhere(shown, prefix)) misplaced.add(shown)
    else names.add(shown, { route: { upstream, name }, entry: entryFor(shown) })
  }

  // Those that are up first: they serve the http(s) URIs that others list too.
  const known = members.map(({ upstream }) => listings.get(upstream))
  for (const member of [...members.filter((_, at) => known[at]), ...members.filter((_, at) => !known[at])]) {
    const { upstream } = member
    const listing = listings.get(upstream) ?? away.get(upstream)
    if (listing === undefined) continue
    const map = uriMap(upstream)
    const tasks = single !== undefined || hasCapability(listing.capabilities, ['tasks', 'requests', 'tools', 'call'])
    for (const tool of listing.tools) {
      offer(tools, member, tool, (shown) => {
        const entry = rewriteTool(tasks ? tool : withoutTaskSupport(tool), shown, map)
        if (isModernRevision(listing.revision))
          modernTools.set(entry, { tasks: hasCapability(listing.capabilities, ['extensions', tasksExtension]) })
        return entry
      })
    }
    for (const prompt of listing.prompts)
      offer(prompts, member, prompt, (name) => (prompt['name'] === name ? prompt : { ...prompt, name }))
    // Only http(s) URIs are not wrapped, and mean the same wherever they are listed: the first upstream serves them.
    for (const [list, key, into] of [
      [listing.resources, 'uri', resources],
      [listing.templates, 'uriTemplate', templates]
    ] as const) {
      for (const item of list) {
        const name = String(item[key])
        const shown = map(name)
        if (!into.has(shown)) into.set(shown, { entry: withUri(item, key, map), route: { upstream, name } })
      }
    }
  }

  /** For legacy clients: the gateway makes a task of any call of a modern tool that asks for one. */
  function asLegacy(tool: JsonObject): JsonObject {
    const modern = modernTools.get(tool)
    if (modern === undefined) return tool
    const whole = wrapOutputSchema(tool)
    return modern.tasks ? { ...whole, execution: { taskSupport: 'optional' } } : whole
  }

  const entriesOf = (offers: ReadonlyMap<string, Offer>): readonly JsonObject[] =>
    [...offers.values()].flatMap(({ entry, route }) => (listings.has(route.upstream) ? [entry] : []))
  const lists: Readonly<Record<ListName, readonly JsonObject[]>> = {
    tools: entriesOf(tools.offers),
    prompts: entriesOf(prompts.offers),
    resources: entriesOf(resources),
    templates: entriesOf(templates)
  }
  const shaped = new Map<string, readonly JsonObject[]>()
  const templateOwners = ownersByTemplate(templates)
  return {
    ...lists,
    capabilities: mergeCapabilities(known.map((listing) => listing && legacyCapabilitiesOf(listing))),
    /** The same for 2026-07-28. */
    modernCapabilities: mergeModernCapabilities(
      known.map(
        (listing) => listing && { modern: isModernRevision(listing.revision), capabilities: capabilitiesOf(listing) }
      )
    ),
    instructions: mergeInstructions(
      endpoint.instructions,
      members.map(({ upstream, prefix }, at) => ({ upstream, prefix, instructions: known[at]?.instructions })),
      separator
    ),
    /** Claimed by two upstreams: they lead to the one whose prefix they begin with, up or not, else nowhere. */
    collisions: [...new Set([...misplaced, ...tools.collisions, ...prompts.collisions])],
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
        shaped.set(key, (list = lists[name].map(shape)))
      }
      return list
    },
    tool: (name: string): Route | undefined => tools.offers.get(name)?.route,
    /** Do legacy clients see another `outputSchema` of the tool, so that its results have to be wrapped? */
    wrapsStructuredContent(name: string): boolean {
      const entry = tools.offers.get(name)?.entry
      return entry !== undefined && modernTools.has(entry) && needsWrapping(entry)
    },
    /** `inputSchema` of a tool. */
    schemaOf(name: string): JsonObject | undefined {
      const schema = tools.offers.get(name)?.entry['inputSchema']
      return isObject(schema) ? schema : undefined
    },
    prompt: (name: string): Route | undefined => prompts.offers.get(name)?.route,
    /** A URI, listed or not, or a template as it stands in the list. */
    resource(uri: string): Route | undefined {
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
      const owners = listing.length > 0 ? listing : templateOwners(uri)
      return owners.length === 1 && owners[0] !== undefined ? { upstream: owners[0], name: uri } : undefined
    },
    uriMap,
    /** The member without a listing whose tool or prompt, or whose resource, this could be. */
    unlistedOwnerOfName: (name: string): UpstreamName | undefined =>
      members.find(
        ({ upstream, prefix }) =>
          !listings.has(upstream) &&
          (single !== undefined || (name.startsWith(startOf(prefix)) && !isElsewhere(name, prefix)))
      )?.upstream,
    unlistedOwnerOfUri: (uri: string): UpstreamName | undefined =>
      members.find(({ upstream }) => !listings.has(upstream) && uriMap(upstream)(uri) === uri)?.upstream
  }
}

function createPublicNames() {
  const offers = new Map<string, Offer>()
  const collisions = new Set<string>()
  return {
    offers,
    collisions,
    /** A name that is claimed twice leads nowhere: an upstream would be called in the name of the other. */
    add(name: PublicName, offer: Offer): void {
      const taken = offers.get(name)?.route
      if (collisions.has(name)) return
      if (taken === undefined) offers.set(name, offer)
      else if (taken.upstream !== offer.route.upstream || taken.name !== offer.route.name) {
        offers.delete(name)
        collisions.add(name)
      }
    }
  }
}

/** 2024-11-05 had completion, but no capability to declare it by. */
export const capabilitiesOf = ({ capabilities, revision, prompts, templates }: Listing): ServerCapabilities =>
  revision === '2024-11-05' && (prompts.length > 0 || templates.length > 0)
    ? { completions: {}, ...capabilities }
    : capabilities

/** The same for a legacy client: tasks of 2026-07-28 as the capability of 2025-11-25. */
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
