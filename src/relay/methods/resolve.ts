// Where the public name of a request leads: to one upstream, under its own name for what is meant.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { GatewayError, isObject, RpcError } from '../../protocol/messages.ts'
import type { UriMap } from '../../protocol/translate/rewrite.ts'
import { definitionOf, type RecordedContext, type RequestInContext } from '../call/call.ts'
import { excerpt, stringParam } from '../call/params.ts'
import type { Catalog, Route } from '../catalog/catalog.ts'
import type { ClientCatalogs } from '../catalog/client-catalogs.ts'

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
  call: V & RecordedContext,
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
export function targetOf(call: RecordedContext, catalog: Catalog, route: Route): Target {
  if (call.record !== undefined) call.record.route = route
  return { route, definition: definitionOf(call, route.upstream), catalog, uris: catalog.uriMap(route.upstream) }
}

/**
 * The resource that `uri` of a session's request names.
 * @throws GatewayError invalid_params, resource_not_found, upstream_unavailable
 */
export async function resolveResource<V>(
  call: V & RequestInContext,
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
