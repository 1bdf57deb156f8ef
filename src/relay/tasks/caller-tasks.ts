// Tasks as clients of 2026-07-28 know them (SEP-2663, extension io.modelcontextprotocol/tasks). Their ids are sealed to
// whom they were told, so that any process can route them, and nobody else can use them. The same task has the same id
// each time.

import type { Principal } from '../../auth/principal.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import {
  type ClientCapabilities,
  GatewayError,
  isObject,
  type JsonObject,
  type UpstreamName
} from '../../protocol/messages.ts'
import { rewriteToolResult, type UriMap } from '../../protocol/translate/rewrite.ts'
import { taskError, withTaskId } from '../../protocol/translate/tasks.ts'
import type { Sealer } from '../../store/seal.ts'
import { callerBindingOf, type EndpointContext, type ModernCall } from '../call/call.ts'
import { taskErrorForModern } from '../client/client-errors.ts'
import { allInputCapabilities, shapeInputRequests } from '../client/input-requests.ts'

/** A caller at an endpoint. */
type CallerContext = EndpointContext & { readonly principal: Principal }

/** The process of a task that is known to one connection alone. */
export interface TaskProcess {
  /** The process of the gateway that has the connection. */
  readonly node: string
  /** Hash of the definition. */
  readonly definition: string
  /** `Upstream.id`: tasks of two connections may have the same id. */
  readonly connection: string
}

/**
 * A task of 2025-11-25 runs on one connection. It is found again by the id of that connection, or on one that is opened
 * with the same capabilities and conversation.
 */
export interface LegacyTaskRef extends TaskProcess {
  /** The capabilities as the connection declared them. */
  readonly capabilities: ClientCapabilities
  /** `_meta["io.gatehouse/conversation"]` of the call; null: none. */
  readonly conversation: string | null
  /**
   * The time of its creation, as the server gave it: on another connection it distinguishes the task from others of the
   * same id.
   */
  readonly createdAt?: string
}

export interface TaskRef {
  readonly upstream: UpstreamName
  readonly id: string
  /** Undefined: a task of 2026-07-28. */
  readonly legacy?: LegacyTaskRef
  /** The only process that knows a task of 2026-07-28 over stdio. */
  readonly process?: TaskProcess
}

export type SealedTaskIds = ReturnType<typeof createSealedTaskIds>

// Not the purpose of tasks of sessions: those are used with other methods.
const purpose = 'modern-task'

export function createSealedTaskIds(sealer: Pick<Sealer, 'seal' | 'open'>) {
  return {
    toClient(call: CallerContext, { upstream, id, legacy, process }: TaskRef): string {
      const place = process === undefined ? (legacy === undefined ? [] : [legacy]) : [null, process]
      return sealer.seal(purpose, callerBindingOf(call), JSON.stringify([upstream, id, ...place]))
    },
    /**
     * @returns undefined for an id that is forged, of another caller or endpoint, or of an upstream that has left the
     * endpoint
     */
    open(call: CallerContext, publicId: string): TaskRef | undefined {
      const opened = sealer.open(purpose, callerBindingOf(call), publicId)
      if (opened === undefined) return undefined
      const [upstream, id, legacy, process] = JSON.parse(opened) as [
        UpstreamName,
        string,
        (LegacyTaskRef | null)?,
        TaskProcess?
      ]
      return call.endpoint.members.some((member) => member.upstream === upstream)
        ? { upstream, id, ...(legacy && { legacy }), ...(process && { process }) }
        : undefined
    }
  }
}

export const taskGone = ({ name }: UpstreamDefinition): GatewayError =>
  new GatewayError(
    'invalid_params',
    `The connection to upstream ${name} that the task ran on is gone, and the task with it. Whether it took effect ` +
      'is unknown: find out before you start it again.',
    { data: { outcome: 'unknown', upstream: name } }
  )

/**
 * Makes the error for an unknown task: the same for a forged id, a foreign one, and one of a server that makes no tasks
 * any more.
 */
export const unknownTask = (): GatewayError =>
  new GatewayError(
    'invalid_params',
    'Unknown task: it is none that you were given at this endpoint, or its upstream is gone.'
  )

/**
 * A task as the client knows it.
 * @param task a task, or a message that says something of one (`tasks/get`, `notifications/tasks`)
 * @param shownId its id for the client
 */
export function taskForCaller(
  call: ModernCall,
  upstream: UpstreamName,
  task: JsonObject,
  shownId: string,
  uris: UriMap
): JsonObject {
  const { inputRequests, result, error } = task
  const { endpoint } = call
  return {
    ...withTaskId(task, () => shownId),
    ...(inputRequests !== undefined && {
      inputRequests: shapeInputRequests(inputRequests, upstream, endpoint, allInputCapabilities)
    }),
    ...(isObject(result) && { result: rewriteToolResult(result, uris) }),
    ...(error !== undefined && { error: taskErrorForModern(taskError(error), upstream, call) })
  }
}
