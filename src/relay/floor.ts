// What the handlers of methods need of the rest of the relay, and how they read parameters.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import { GatewayError, RpcError } from '../protocol/errors.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import type { LogLevel } from '../protocol/levels.ts'
import { isObject, metaOf } from '../protocol/messages.ts'
import type { Request, Result } from '../protocol/messages.ts'
import type { UriMap } from '../protocol/rewrite.ts'
import type { Call, Place } from './call.ts'
import type { Catalog, Route } from './catalog.ts'
import type { Subscriptions } from './subscriptions.ts'
import type { Source, Tasks } from './tasks.ts'

export interface Floor {
  /** The caller's catalog, as it is now. */
  catalog (call: Call): Catalog
  /** Waits, for a short time, for upstreams that are not known yet. */
  settled (call: Call): Promise<void>
  /** Waits, for as short a time, for lists that may have changed unseen. */
  reread (call: Call): Promise<void>
  /** Sends to the route's upstream, at most once. */
  forward (call: Call, route: Route, request: Request): Promise<Result>
  /** Does the upstream of the route declare the capability at this path? Unknown counts as yes. */
  offers (call: Call, route: Route, ...path: readonly string[]): boolean
  /** The connection that serves the call at the route's upstream. */
  sourceOf (call: Call, route: Route): Source
  setLogLevel (call: Call, level: LogLevel): Promise<void>
  readonly subscriptions: Subscriptions
  readonly tasks: Tasks
}

export type Handler = (call: Call, floor: Floor) => Promise<Result>

/** A request of whichever era. */
export type Asked = Place & { readonly request: Request }

/** Where names lead. Both eras have it. */
export interface Signposts<C> {
  catalog (call: C): Catalog
  settled (call: C): Promise<void>
  reread (call: C): Promise<void>
}

/** @throws GatewayError invalid_params */
export function text (call: Asked, member: string): string {
  const value = call.request.params?.[member]
  if (typeof value !== 'string') throw new GatewayError('invalid_params', `"${member}" of ${call.request.method} must be a string.`)
  return value
}

/** Only a miss waits: for upstreams that are still on their way, then for lists that may have changed unseen. */
export async function find<C> (call: C, floor: Signposts<C>, look: (catalog: Catalog) => Route | undefined): Promise<Route | undefined> {
  const route = look(floor.catalog(call))
  if (route !== undefined) return route
  await floor.settled(call)
  const settled = look(floor.catalog(call))
  if (settled !== undefined) return settled
  await floor.reread(call)
  return look(floor.catalog(call))
}

/** The object `arguments` of tools/call, where there is one. @throws GatewayError invalid_params */
export function checkArguments (call: Asked): void {
  const args = call.request.params?.['arguments']
  if (args !== undefined && !isObject(args)) throw new GatewayError('invalid_params', '"arguments" of tools/call must be an object.')
}

const maxTokenLength = 1_024

/** It comes back with every progress message: a long one would be sent many times over. @throws GatewayError invalid_params */
export function checkProgressToken ({ request }: Asked): void {
  const token = metaOf(request.params)['progressToken']
  if (token !== undefined && typeof token !== 'number' && JSON.stringify(token).length > maxTokenLength) {
    throw new GatewayError('invalid_params', `"_meta.progressToken" is longer than ${maxTokenLength} characters.`)
  }
}

/** An upstream names the URI in its error as it knows it; the client knows another. For `catch`. */
export const withUri = (map: UriMap) => (error: unknown): never => {
  if (error instanceof RpcError && isObject(error.error.data) && typeof error.error.data['uri'] === 'string') {
    throw new RpcError({ ...error.error, data: { ...error.error.data, uri: map(error.error.data['uri']) } })
  }
  throw error
}

/** @throws GatewayError upstream_unavailable */
export function definitionOf (place: Place, name: UpstreamName): UpstreamDefinition {
  const definition = place.tenant.upstreams.get(name)
  if (definition === undefined) throw new GatewayError('upstream_unavailable', `Upstream ${name} is no longer configured.`)
  return definition
}

export const excerpt = (value: string): string => value.length <= 200 ? value : value.slice(0, 200) + '…'

export const methodNotFound = (method: string): GatewayError => new GatewayError('method_not_found', `Method not found: ${excerpt(method)}`)
