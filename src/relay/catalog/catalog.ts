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
import { tasksExtension } from '../../protocol/methods.ts'
import {
  hasCapability,
  mergeCapabilities,
  mergeInstructions,
  mergeModernCapabilities
} from '../../protocol/translate/merge.ts'
import { publicNameFor, unwrapUri, wrapUri } from '../../protocol/naming.ts'
import { rewriteResource, rewriteTool, type UriMap } from '../../protocol/translate/rewrite.ts'
import { shapeEntry, shapeTool } from '../../protocol/translate/revision-shape.ts'
import { withoutTaskSupport } from '../../protocol/translate/tasks.ts'
import { needsWrapping, wrapOutputSchema } from '../../protocol/translate/wrap-structured.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { createPublicNames, namespacesOf } from './public-names.ts'

/** Where a public name leads. */
export interface Route {
  readonly upstream: UpstreamName
  /** The upstream's own name, or URI. */
  readonly name: string
}

export type ListName = 'tools' | 'prompts' | 'resources' | 'templates'

export interface Catalog {
  readonly tools: readonly JsonObject[]
  readonly prompts: readonly JsonObject[]
  readonly resources: readonly JsonObject[]
  readonly templates: readonly JsonObject[]
  readonly capabilities: ServerCapabilities
  /** The same for 2026-07-28. */
  readonly modernCapabilities: ServerCapabilities
  readonly instructions: string | undefined
  /**
   * Public names that two upstreams claim: they lead to the one whose prefix they begin with, up or not, else nowhere.
   */
  readonly collisions: readonly string[]
  /** A list as the revision has it; shaped once, not for each request. */
  list(name: ListName, revision: Revision): readonly JsonObject[]
  tool(name: string): Route | undefined
  /** Do legacy clients see another `outputSchema` of the tool, so that its results have to be wrapped? */
  wrapsStructuredContent(name: string): boolean
  /** `inputSchema` of a tool under its public name; undefined for an unknown one. */
  schemaOf(name: string): JsonObject | undefined
  prompt(name: string): Route | undefined
  /** A URI, listed or not, or a template as it stands in the list. */
  resource(uri: string): Route | undefined
  /** From an upstream's URI to the one that clients see. */
  uriMap(upstream: UpstreamName): UriMap
  /** The member without a listing whose tool or prompt this could be. */
  unlistedOwnerOfName(name: string): UpstreamName | undefined
  /** The member without a listing whose resource this could be. */
  unlistedOwnerOfUri(uri: string): UpstreamName | undefined
}

/** @param listings of the members that are known and up; the others are left out of the lists */
export function buildCatalog(endpoint: Endpoint, listings: ReadonlyMap<UpstreamName, Listing>): Catalog {
  const { members, separator } = endpoint
  const single = members.length === 1 ? members[0] : undefined
  const uriMap = (upstream: UpstreamName): UriMap =>
    single === undefined ? (uri) => wrapUri(upstream, uri) : (uri) => uri
  const namespaces = namespacesOf(endpoint)
  // Listed under the prefix of another member.
  const misplaced = new Set<string>()
  const tools = createPublicNames()
  const prompts = createPublicNames()
  const resources = new Map<string, { entry: JsonObject; route: Route }>()
  const templates = new Map<string, { entry: JsonObject; route: Route }>()
  const modernTools = new Map<JsonObject, { readonly tasks: boolean }>()

  for (const { upstream, prefix } of members) {
    const listing = listings.get(upstream)
    if (listing === undefined) continue
    const map = uriMap(upstream)
    const tasks = single !== undefined || hasCapability(listing.capabilities, ['tasks', 'requests', 'tools', 'call'])
    for (const tool of listing.tools) {
      const name = String(tool['name'])
      const shown = publicNameFor(prefix, separator, name)
      if (namespaces.isElsewhere(shown, prefix)) misplaced.add(shown)
      else {
        const entry = rewriteTool(tasks ? tool : withoutTaskSupport(tool), shown, map)
        if (isModernRevision(listing.revision))
          modernTools.set(entry, { tasks: hasCapability(listing.capabilities, ['extensions', tasksExtension]) })
        tools.add(shown, { upstream, name }, entry)
      }
    }
    for (const prompt of listing.prompts) {
      const name = String(prompt['name'])
      const shown = publicNameFor(prefix, separator, name)
      if (namespaces.isElsewhere(shown, prefix)) misplaced.add(shown)
      else prompts.add(shown, { upstream, name }, prompt['name'] === shown ? prompt : { ...prompt, name: shown })
    }
    // Only http(s) URIs are not wrapped, and mean the same wherever they are listed: the first upstream serves them.
    for (const [list, member, into] of [
      [listing.resources, 'uri', resources],
      [listing.templates, 'uriTemplate', templates]
    ] as const) {
      for (const item of list) {
        const name = String(item[member])
        const shown = map(name)
        if (!into.has(shown)) into.set(shown, { entry: rewriteResource(item, member, map), route: { upstream, name } })
      }
    }
  }

  /** For legacy clients: the gateway makes a task of any call of a modern tool (relay/tasks/modern-for-session). */
  function asLegacy(tool: JsonObject): JsonObject {
    const modern = modernTools.get(tool)
    if (modern === undefined) return tool
    const whole = wrapOutputSchema(tool)
    return modern.tasks ? { ...whole, execution: { taskSupport: 'optional' } } : whole
  }

  const known = members.map(({ upstream }) => listings.get(upstream))
  const lists: Readonly<Record<ListName, readonly JsonObject[]>> = {
    tools: tools.entries(),
    prompts: prompts.entries(),
    resources: [...resources.values()].map(({ entry }) => entry),
    templates: [...templates.values()].map(({ entry }) => entry)
  }
  const shaped = new Map<string, readonly JsonObject[]>()
  return {
    ...lists,
    capabilities: mergeCapabilities(
      known.map((listing) => (listing === undefined ? undefined : legacyCapabilitiesOf(listing)))
    ),
    modernCapabilities: mergeModernCapabilities(
      known.map((listing) =>
        listing === undefined
          ? undefined
          : { modern: isModernRevision(listing.revision), capabilities: capabilitiesOf(listing) }
      )
    ),
    instructions: mergeInstructions(
      endpoint.instructions,
      members.map(({ upstream, prefix }, at) => ({ upstream, prefix, instructions: known[at]?.instructions })),
      separator
    ),
    collisions: [...new Set([...misplaced, ...tools.collisions, ...prompts.collisions])],
    list(name, revision) {
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
    tool: (name) => tools.route(name),
    wrapsStructuredContent(name) {
      const entry = tools.entry(name)
      return entry !== undefined && modernTools.has(entry) && needsWrapping(entry)
    },
    schemaOf(name) {
      const schema = tools.entry(name)?.['inputSchema']
      return isObject(schema) ? schema : undefined
    },
    prompt: (name) => prompts.route(name),
    resource(uri) {
      if (single !== undefined) return { upstream: single.upstream, name: uri }
      const listed = resources.get(uri) ?? templates.get(uri)
      if (listed !== undefined) return listed.route
      // A link that no list shows has a route; so has a bare URI that a model copied out of a text, where it is listed
      // in wrapped form.
      const unwrapped = unwrapUri(uri)
      if (unwrapped !== undefined && members.some(({ upstream }) => upstream === unwrapped.upstream)) {
        return { upstream: unwrapped.upstream, name: unwrapped.uri }
      }
      const owners = members.filter(({ upstream }) => resources.has(wrapUri(upstream, uri)))
      return owners.length === 1 && owners[0] !== undefined ? { upstream: owners[0].upstream, name: uri } : undefined
    },
    uriMap,
    unlistedOwnerOfName: (name) =>
      members.find(
        ({ upstream, prefix }) => !listings.has(upstream) && (single !== undefined || namespaces.isWithin(name, prefix))
      )?.upstream,
    unlistedOwnerOfUri: (uri) =>
      members.find(({ upstream }) => !listings.has(upstream) && uriMap(upstream)(uri) === uri)?.upstream
  }
}

/** 2024-11-05 had completion, but no capability to declare it by. */
export function capabilitiesOf({
  capabilities,
  revision,
  prompts,
  templates
}: Pick<Listing, 'capabilities' | 'revision' | 'prompts' | 'templates'>): ServerCapabilities {
  return revision === '2024-11-05' && (prompts.length > 0 || templates.length > 0)
    ? { completions: {}, ...capabilities }
    : capabilities
}

/** The same for a legacy client: tasks of 2026-07-28 as the capability of 2025-11-25. */
export function legacyCapabilitiesOf(
  listing: Pick<Listing, 'capabilities' | 'revision' | 'prompts' | 'templates'>
): ServerCapabilities {
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
