// What the handlers of modern methods, and the listen streams, need of the rest of the relay.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { JsonObject, Request, Result } from '../../protocol/messages.ts'
import type { ModernCall, Place, Seen } from '../call.ts'
import type { Catalog, Route } from '../catalog.ts'
import type { RequestStates, State } from './state.ts'
import type { OldTask, OpenedTask, TaskIds } from './task-ids.ts'

export interface ModernFloor {
  /** The caller's catalog, as it is now. */
  catalog (call: Seen): Catalog
  /** Waits, for a short time, for upstreams that are not known yet. The same call waits once. */
  settled (call: Seen): Promise<void>
  /** Waits, for as short a time, for lists that may have changed unseen. The same call waits once. */
  reread (call: Seen): Promise<void>
  /** Does the upstream of the route declare the capability at this path? Unknown counts as yes. */
  offers (call: Seen, route: Pick<Route, 'upstream'>, ...path: readonly string[]): boolean
  /** @throws GatewayError upstream_unavailable where it is no longer configured */
  definitionOf (place: Place, upstream: UpstreamName): UpstreamDefinition
  /**
   * Sends to the route's upstream, at most once, and lets the caller hear of it. The result has a `resultType`.
   * @throws GatewayError, and RpcError with codes that 2026-07-28 knows
   */
  forward (call: ModernCall, route: Pick<Route, 'upstream'>, request: Request): Promise<Result>
  /**
   * The next round of a call that waits for the client's answers.
   * @throws GatewayError invalid_state, invalid_params (an answer that is none), and what `forward` throws
   */
  resume (call: ModernCall, route: Pick<Route, 'upstream'>, parked: NonNullable<State['parked']>, answers: JsonObject): Promise<Result>
  /** Is the tool of an older upstream one that works only as a task of 2025-11-25? */
  onlyAsTask (call: Seen, route: Route): boolean
  /** Calls such a tool for a client that knows the extension. @returns the task as the client gets it; or a result, with the upstream's URIs */
  makeTask (call: ModernCall, route: Route, request: Request): Promise<Result>
  /** `tasks/get`, `tasks/update` and `tasks/cancel` of such a task, as the client gets it. */
  oldTask (call: ModernCall, task: OpenedTask & { readonly old: OldTask }): Promise<Result>
  /** For how long the lists of these kinds may be kept by a client; milliseconds. */
  ttlOf (place: Place, ...lists: ReadonlyArray<'tools' | 'prompts' | 'resources' | 'templates'>): number
  /** A task of 2026-07-28 (`tasks/get`, `notifications/tasks`) as the client knows it: its id, its questions, and the URIs of its result. */
  shapeTask (call: ModernCall, upstream: UpstreamName, task: JsonObject): JsonObject
  readonly taskIds: TaskIds
  readonly states: RequestStates
}

export type ModernHandler = (call: ModernCall, floor: ModernFloor) => Promise<Result>
