// What one endpoint offers: public name -> route. Built from listings and naming, never on the path of a call.

import type { Endpoint } from '../config/snapshot.ts'
import type { PublicName, UpstreamName } from '../protocol/ids.ts'
import { has, mergeCapabilities, mergeInstructions, mergeModern, tasksExtension } from '../protocol/merge.ts'
import { isObject } from '../protocol/messages.ts'
import type { JsonObject, ServerCapabilities } from '../protocol/messages.ts'
import { publicNameFor, unwrapUri, wrapUri } from '../protocol/naming.ts'
import { rewriteResource, rewriteTool } from '../protocol/rewrite.ts'
import type { UriMap } from '../protocol/rewrite.ts'
import { isModernRevision, latestLegacy } from '../protocol/revisions.ts'
import type { Revision } from '../protocol/revisions.ts'
import { shapeEntry, shapeTool } from '../protocol/shape.ts'
import { withoutTaskSupport } from '../protocol/tasks.ts'
import { needsWrapping, wrapOutputSchema } from '../protocol/wrap-structured.ts'
import type { Listing } from '../upstream/listing.ts'

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
  /** Public names that two upstreams claim: offered by the one whose prefix they begin with, whether it is up or not, else by neither. */
  readonly collisions: readonly string[]
  /** One of the lists as a revision knows it; shaped once, not for each request. */
  list (name: ListName, revision: Revision): readonly JsonObject[]
  tool (name: string): Route | undefined
  /** Is the `outputSchema` of a tool another one for clients of older revisions, for which its results have to be wrapped? */
  wraps (name: string): boolean
  /** `inputSchema` of a tool under its public name; undefined for an unknown one. */
  schemaOf (name: string): JsonObject | undefined
  prompt (name: string): Route | undefined
  /** A URI, listed or not, or a template as it stands in the list. */
  resource (uri: string): Route | undefined
  /** From an upstream's URI to the one that clients see. */
  uriMap (upstream: UpstreamName): UriMap
  /** The member without a listing whose tool or prompt this could be. */
  absentOwner (name: string): UpstreamName | undefined
  /** The member without a listing whose resource this could be. */
  absentSource (uri: string): UpstreamName | undefined
}

/** @param listings of the members that are known and up; the others are left out of the lists */
export function buildCatalog (endpoint: Endpoint, listings: ReadonlyMap<UpstreamName, Listing>): Catalog {
  const { members, separator } = endpoint
  const single = members.length === 1 ? members[0] : undefined
  const uriMap = (upstream: UpstreamName): UriMap => single === undefined ? (uri) => wrapUri(upstream, uri) : (uri) => uri
  const belongsElsewhere = namespaces(endpoint)
  const borrowed = new Set<string>()
  const tools = named()
  const prompts = named()
  const resources = new Map<string, { entry: JsonObject, route: Route }>()
  const templates = new Map<string, { entry: JsonObject, route: Route }>()
  const modernTools = new Map<JsonObject, { readonly tasks: boolean }>()

  for (const { upstream, prefix } of members) {
    const listing = listings.get(upstream)
    if (listing === undefined) continue
    const map = uriMap(upstream)
    const tasks = single !== undefined || has(listing.capabilities, ['tasks', 'requests', 'tools', 'call'])
    for (const tool of listing.tools) {
      const name = String(tool['name'])
      const shown = publicNameFor(prefix, separator, name)
      if (belongsElsewhere(shown, prefix)) borrowed.add(shown)
      else {
        const entry = rewriteTool(tasks ? tool : withoutTaskSupport(tool), shown, map)
        if (isModernRevision(listing.revision)) modernTools.set(entry, { tasks: has(listing.capabilities, ['extensions', tasksExtension]) })
        tools.add(shown, { upstream, name }, entry)
      }
    }
    for (const prompt of listing.prompts) {
      const name = String(prompt['name'])
      const shown = publicNameFor(prefix, separator, name)
      if (belongsElsewhere(shown, prefix)) borrowed.add(shown)
      else prompts.add(shown, { upstream, name }, prompt['name'] === shown ? prompt : { ...prompt, name: shown })
    }
    // Two upstreams can share only what is not wrapped, http(s) URIs, and there the URI means the same thing: the first one serves it.
    for (const [list, member, into] of [[listing.resources, 'uri', resources], [listing.templates, 'uriTemplate', templates]] as const) {
      for (const item of list) {
        const name = String(item[member])
        const shown = map(name)
        if (!into.has(shown)) into.set(shown, { entry: rewriteResource(item, member, map), route: { upstream, name } })
      }
    }
  }

  /** Whatever a client asks to be a task, we make one of where the server does not (relay/bridged-tasks). */
  function asLegacy (tool: JsonObject): JsonObject {
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
    capabilities: mergeCapabilities(known.map((listing) => listing === undefined ? undefined : legacyCapabilitiesOf(listing))),
    modernCapabilities: mergeModern(known.map((listing) => listing === undefined ? undefined : { modern: isModernRevision(listing.revision), capabilities: capabilitiesOf(listing) })),
    instructions: mergeInstructions(endpoint.instructions, members.map(({ upstream, prefix }, at) =>
      ({ upstream, prefix, instructions: known[at]?.instructions })), separator),
    collisions: [...new Set([...borrowed, ...tools.collisions, ...prompts.collisions])],
    list (name, revision) {
      if (revision === latestLegacy && (name !== 'tools' || modernTools.size === 0)) return lists[name]
      const key = `${name} ${revision}`
      let list = shaped.get(key)
      if (list === undefined) {
        const shape = name === 'tools' ? (tool: JsonObject): JsonObject => shapeTool(isModernRevision(revision) ? tool : asLegacy(tool), revision) : (entry: JsonObject): JsonObject => shapeEntry(entry, revision)
        shaped.set(key, list = lists[name].map(shape))
      }
      return list
    },
    tool: (name) => tools.routes.get(name),
    wraps (name) {
      const entry = tools.entry(name)
      return entry !== undefined && modernTools.has(entry) && needsWrapping(entry)
    },
    schemaOf (name) {
      const schema = tools.entry(name)?.['inputSchema']
      return isObject(schema) ? schema : undefined
    },
    prompt: (name) => prompts.routes.get(name),
    resource (uri) {
      if (single !== undefined) return { upstream: single.upstream, name: uri }
      const listed = resources.get(uri) ?? templates.get(uri)
      if (listed !== undefined) return listed.route
      // A link that no list shows still routes; so does a bare URI that a model copied out of a text, if it is listed under its wrapped form.
      const unwrapped = unwrapUri(uri)
      if (unwrapped !== undefined && members.some(({ upstream }) => upstream === unwrapped.upstream)) {
        return { upstream: unwrapped.upstream, name: unwrapped.uri }
      }
      const owners = members.filter(({ upstream }) => resources.has(wrapUri(upstream, uri)))
      return owners.length === 1 && owners[0] !== undefined ? { upstream: owners[0].upstream, name: uri } : undefined
    },
    uriMap,
    absentOwner: (name) => members.find(({ upstream, prefix }) => !listings.has(upstream) && (single !== undefined || (name.startsWith(beginOf(prefix, separator)) && !belongsElsewhere(name, prefix))))?.upstream,
    absentSource: (uri) => members.find(({ upstream }) => !listings.has(upstream) && uriMap(upstream)(uri) === uri)?.upstream
  }
}

/** 2024-11-05 had completion, but no capability to declare it by. */
export function capabilitiesOf ({ capabilities, revision, prompts, templates }: Pick<Listing, 'capabilities' | 'revision' | 'prompts' | 'templates'>): ServerCapabilities {
  return revision === '2024-11-05' && (prompts.length > 0 || templates.length > 0) ? { completions: {}, ...capabilities } : capabilities
}

/** The same as a client of an older revision may be told: the tasks of 2026-07-28 by the name that it knows (protocol/task-bridge). */
export function legacyCapabilitiesOf (listing: Pick<Listing, 'capabilities' | 'revision' | 'prompts' | 'templates'>): ServerCapabilities {
  const capabilities = capabilitiesOf(listing)
  const { extensions, ...rest } = capabilities
  if (!isModernRevision(listing.revision) || !isObject(extensions) || !isObject(extensions[tasksExtension])) return capabilities
  const { [tasksExtension]: _tasks, ...others } = extensions
  return { ...rest, ...Object.keys(others).length === 0 ? {} : { extensions: others }, tasks: { cancel: {}, requests: { tools: { call: {} } } } }
}

/**
 * Does a name begin with the prefix of another member than the one that lists it? The configuration alone decides: whoever borrows
 * the prefix of an upstream would otherwise get its calls while it is down.
 */
function namespaces ({ members, separator }: Endpoint): (name: string, prefix: string) => boolean {
  const begins = members.map(({ prefix }) => beginOf(prefix, separator))
  // Of two that fit the longer one is meant: `a__b` and its `x`, not `a` and its `b__x`.
  return (name, prefix) => begins.some((begin) => begin.length > beginOf(prefix, separator).length && name.startsWith(begin))
}

const beginOf = (prefix: string, separator: string): string => prefix === '' ? '' : prefix + separator

function named () {
  const routes = new Map<string, Route>()
  const shown = new Map<string, JsonObject>()
  const collisions = new Set<string>()
  return {
    routes,
    collisions,
    entry: (name: string): JsonObject | undefined => shown.get(name),
    entries: (): JsonObject[] => [...shown.values()],
    add (name: PublicName, route: Route, entry: JsonObject): void {
      const taken = routes.get(name)
      if (collisions.has(name)) return
      if (taken === undefined) {
        routes.set(name, route)
        shown.set(name, entry)
      } else if (taken.upstream !== route.upstream || taken.name !== route.name) {
        // Whichever won would be called in the other's name.
        routes.delete(name)
        shown.delete(name)
        collisions.add(name)
      }
    }
  }
}
