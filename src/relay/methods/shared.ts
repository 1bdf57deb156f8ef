// What methods of both eras share: the upstream that a public name leads to, the lists, completion.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import {
  GatewayError,
  isObject,
  type Request,
  type Result,
  type Revision,
  rpcCodes,
  RpcError
} from '../../protocol/messages.ts'
import { type UriMap, withRef } from '../../protocol/translate/rewrite.ts'
import { type Call, definitionOf, type EndpointContext, excerpt, stringParam } from '../call/call.ts'
import type { Catalog, ListName, Route } from '../catalog/catalog.ts'
import type { ClientCatalogs } from '../catalog/client-catalogs.ts'
import { pageOf } from '../../protocol/naming.ts'

/** A resolved name: everything that the rest of the call needs to know about its upstream. */
export interface Target {
  readonly route: Route
  readonly definition: UpstreamDefinition
  /** The catalog in which the name was found. */
  readonly catalog: Catalog
  /** From the upstream's own URIs to those that the client knows. */
  readonly uris: UriMap
}

/**
 * Looks a name up in the caller's catalog. Only a miss waits: for upstreams whose listing is unknown, then for lists
 * that may have changed.
 * @throws GatewayError upstream_unavailable
 */
export async function resolve<V>(
  call: V & EndpointContext & Pick<Call, 'record'>,
  catalogs: ClientCatalogs<V>,
  kind: 'tool' | 'prompt' | 'resource',
  name: string
): Promise<Target | undefined> {
  const catalog = catalogs.of(call)
  const route = catalog[kind](name)
  if (route !== undefined) return targetOf(call, catalog, route)
  for (const wait of [catalogs.awaitListings, catalogs.revalidate]) {
    await wait(call)
    const later = catalogs.of(call)
    const found = later[kind](name)
    if (found !== undefined) return targetOf(call, later, found)
  }
  return undefined
}

/** @throws GatewayError upstream_unavailable */
export function targetOf(call: EndpointContext & Pick<Call, 'record'>, catalog: Catalog, route: Route): Target {
  if (call.record !== undefined) call.record.route = route
  return { route, definition: definitionOf(call, route.upstream), catalog, uris: catalog.uriMap(route.upstream) }
}

/**
 * The resource that `uri` of a session's request names.
 * @throws GatewayError invalid_params, resource_not_found, upstream_unavailable
 */
export async function resolveResource<V>(
  call: V & Call,
  catalogs: ClientCatalogs<V>
): Promise<{ readonly target: Target; readonly uri: string }> {
  const uri = stringParam(call, 'uri')
  const target = await resolve(call, catalogs, 'resource', uri)
  if (target !== undefined) return { target, uri }
  const message = `Resource not found: ${excerpt(uri)}`
  throw new GatewayError('resource_not_found', message, { data: { uri: excerpt(uri) } })
}

/**
 * An error of an upstream names a resource as the upstream knows it: the same error with the URI that the client knows.
 */
export function withClientUri(error: unknown, uris: UriMap): unknown {
  if (!(error instanceof RpcError) || !isObject(error.error.data)) return error
  const { uri } = error.error.data
  return typeof uri === 'string'
    ? new RpcError({ ...error.error, data: { ...error.error.data, uri: uris(uri) } })
    : error
}

export interface List {
  readonly method: string
  readonly list: ListName
  /** The member of the result that holds the entries. */
  readonly member: string
  /** The member of an entry that names it. */
  readonly name: string
}

export const lists: readonly List[] = [
  { method: 'tools/list', list: 'tools', member: 'tools', name: 'name' },
  { method: 'prompts/list', list: 'prompts', member: 'prompts', name: 'name' },
  { method: 'resources/list', list: 'resources', member: 'resources', name: 'uri' },
  { method: 'resources/templates/list', list: 'templates', member: 'resourceTemplates', name: 'uriTemplate' }
]

/** @throws GatewayError invalid_params on a cursor that is none */
export function listPage(call: Call, { list, member, name }: List, catalog: Catalog, revision: Revision): Result {
  const { entries, nextCursor } = pageOf(
    catalog.list(list, revision),
    call.request.params?.['cursor'],
    call.snapshot.limits.pageSize,
    (entry) => String(entry[name])
  )
  return nextCursor === undefined ? { [member]: entries } : { [member]: entries, nextCursor }
}

/**
 * The upstream that completes an argument, and the request as it is to get it.
 * @returns undefined where the upstream completes nothing: no suggestions, rather than a method that seems to be
 * missing
 * @throws GatewayError invalid_params
 */
export async function completionRequest<V>(
  call: V & Call,
  catalogs: ClientCatalogs<V>
): Promise<{ readonly target: Target; readonly request: Request } | undefined> {
  const ref = call.request.params?.['ref']
  if (!isObject(ref)) throw new GatewayError('invalid_params', '"ref" of completion/complete must be an object.')
  const [kind, member] = ref['type'] === 'ref/prompt' ? (['prompt', 'name'] as const) : (['resource', 'uri'] as const)
  const name = ref[member]
  if (typeof name !== 'string') {
    throw new GatewayError('invalid_params', `"ref.${member}" of completion/complete must be a string.`)
  }
  const target = await resolve(call, catalogs, kind, name)
  if (target === undefined) throw new GatewayError('invalid_params', `Unknown reference: ${excerpt(name)}`)
  if (!catalogs.offers(call, target.route.upstream, 'completions')) return undefined
  return { target, request: withRef(call.request, { ...ref, [member]: target.route.name }) }
}

export const noSuggestions = (): Result => ({ completion: { values: [] } })

/** An upstream of 2024-11-05 could not declare completion: its "method not found" means that it has none. */
export function suggestionsAfter(error: unknown): Result {
  if (error instanceof RpcError && error.error.code === rpcCodes.methodNotFound) return noSuggestions()
  throw error
}
