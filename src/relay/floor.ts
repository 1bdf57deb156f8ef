// What the handlers of methods need of the rest of the relay, and how they read parameters.

import { GatewayError } from '../protocol/errors.ts'
import type { LogLevel } from '../protocol/levels.ts'
import type { Request, Result } from '../protocol/messages.ts'
import type { Call } from './call.ts'
import type { Catalog, Route } from './catalog.ts'
import type { Subscriptions } from './subscriptions.ts'
import type { Source, Tasks } from './tasks.ts'

export interface Floor {
  /** The caller's catalog, as it is now. */
  catalog (call: Call): Catalog
  /** Waits, for a short time, for upstreams that are not known yet. */
  settled (call: Call): Promise<void>
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

/** @throws GatewayError invalid_params */
export function text (call: Call, member: string): string {
  const value = call.request.params?.[member]
  if (typeof value !== 'string') throw new GatewayError('invalid_params', `"${member}" of ${call.request.method} must be a string.`)
  return value
}

/** Only a miss waits for upstreams that are still on their way. */
export async function find (call: Call, floor: Floor, look: (catalog: Catalog) => Route | undefined): Promise<Route | undefined> {
  const route = look(floor.catalog(call))
  if (route !== undefined) return route
  await floor.settled(call)
  return look(floor.catalog(call))
}

export const excerpt = (value: string): string => value.length <= 200 ? value : value.slice(0, 200) + '…'

export const methodNotFound = (method: string): GatewayError => new GatewayError('method_not_found', `Method not found: ${excerpt(method)}`)
