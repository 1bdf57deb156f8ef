// Tasks as clients of 2026-07-28 know them (SEP-2663, extension io.modelcontextprotocol/tasks). Their ids are sealed to
// whom they were told, so that any process can route them, and nobody else can use them. The same task has the same id
// each time.

import type { Principal } from '../../auth/principal.ts'
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

/**
 * A task of 2025-11-25 runs on one connection. It is found again by the id of that connection, or on one that is opened
 * with the same capabilities and conversation.
 */
export interface LegacyTaskRef {
  /** The process that has the connection. */
  readonly node: string
  /** As the connection declared them. */
  readonly capabilities: ClientCapabilities
  /** `_meta["io.gatehouse/conversation"]` of the call; null: none. */
  readonly conversation: string | null
  /** Hash of the definition. */
  readonly definition: string
  /** `Upstream.id`: tasks of two connections may have the same id. */
  readonly connection: string
  /** As the server told it: on another connection it tells the task from others of the same id. */
  readonly createdAt?: string
}

export interface TaskRef {
  readonly upstream: UpstreamName
  readonly id: string
  /** Undefined: a task of 2026-07-28. */
  readonly legacy?: LegacyTaskRef
}

export type SealedTaskIds = ReturnType<typeof createSealedTaskIds>

// Not the purpose of tasks of sessions: those are used with other methods.
const purpose = 'modern-task'

export function createSealedTaskIds(sealer: Pick<Sealer, 'seal' | 'open'>) {
  return {
    toClient(call: CallerContext, upstream: UpstreamName, id: string, legacy?: LegacyTaskRef): string {
      const text = JSON.stringify(legacy === undefined ? [upstream, id] : [upstream, id, legacy])
      return sealer.seal(purpose, callerBindingOf(call), text)
    },
    /**
     * @returns undefined for an id that is forged, of another caller or endpoint, or of an upstream that has left the
     * endpoint
     */
    open(call: CallerContext, publicId: string): TaskRef | undefined {
      const opened = sealer.open(purpose, callerBindingOf(call), publicId)
      if (opened === undefined) return undefined
      const [upstream, id, legacy] = JSON.parse(opened) as [UpstreamName, string, LegacyTaskRef?]
      return call.endpoint.members.some((member) => member.upstream === upstream)
        ? { upstream, id, ...(legacy !== undefined && { legacy }) }
        : undefined
    }
  }
}

/** The same for a forged id, a foreign one, and one of a server that makes no tasks any more. */
export const unknownTask = (): GatewayError =>
  new GatewayError(
    'invalid_params',
    'Unknown task: it is none that you were given at this endpoint, or its upstream is gone.'
  )

/**
 * A task as the client knows it.
 * @param task a task, or a message that says something of one (`tasks/get`, `notifications/tasks`)
 */
export function taskForCaller(
  call: ModernCall,
  upstream: UpstreamName,
  task: JsonObject,
  taskIds: SealedTaskIds,
  uris: UriMap
): JsonObject {
  const { inputRequests, result, error } = task
  const { endpoint, client } = call
  return {
    ...withTaskId(task, (id) => taskIds.toClient(call, upstream, id)),
    ...(inputRequests !== undefined && {
      inputRequests: shapeInputRequests(inputRequests, upstream, endpoint, allInputCapabilities)
    }),
    ...(isObject(result) && { result: rewriteToolResult(result, uris) }),
    ...(error !== undefined && { error: taskErrorForModern(taskError(error), upstream, client.capabilities) })
  }
}
