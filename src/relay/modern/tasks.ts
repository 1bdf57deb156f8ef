// The tasks extension (SEP-2663): tasks/get, tasks/update and tasks/cancel, routed by ids that hold the upstream.

import { GatewayError } from '../../protocol/errors.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import { has, tasksExtension } from '../../protocol/merge.ts'
import { isObject } from '../../protocol/messages.ts'
import type { JsonObject, Result } from '../../protocol/messages.ts'
import { rewriteToolResult, withParam } from '../../protocol/rewrite.ts'
import type { UriMap } from '../../protocol/rewrite.ts'
import { taskError } from '../../protocol/task-bridge.ts'
import { withTaskId } from '../../protocol/tasks.ts'
import type { ModernCall } from '../call.ts'
import { text } from '../floor.ts'
import type { ModernFloor } from './floor.ts'
import { anything, shapeInputRequests } from './input.ts'
import { fittingOutcome } from './refusals.ts'
import type { TaskIds } from './task-ids.ts'

/** @throws GatewayError missing_capability, invalid_params */
export async function ofTask (call: ModernCall, floor: ModernFloor): Promise<Result> {
  if (!has(call.client.capabilities, ['extensions', tasksExtension])) {
    throw new GatewayError('missing_capability', `${call.request.method} is for clients that declare the extension ${tasksExtension} in io.modelcontextprotocol/clientCapabilities.`, {
      data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } }
    })
  }
  const task = floor.taskIds.open(call, text(call, 'taskId'))
  const old = task?.old
  if (task !== undefined && old !== undefined) return await floor.oldTask(call, { ...task, old })
  // The same for a forged id, a foreign one, and one of a server that makes no tasks any more.
  if (task === undefined || !floor.offers(call, task, 'extensions', tasksExtension)) {
    throw new GatewayError('invalid_params', 'Unknown task: it is none that you were given at this endpoint, or its upstream is gone.')
  }
  const result = await floor.forward(call, task, withParam(call.request, 'taskId', task.id))
  // SEP-2663: `complete` on all three, although its own examples say `task`.
  return { ...floor.shapeTask(call, task.upstream, result), resultType: 'complete' }
}

/** A task, or what says something of one, as the client knows it. */
export function shapeTask (call: ModernCall, upstream: UpstreamName, task: JsonObject, { taskIds, map }: { readonly taskIds: TaskIds, readonly map: UriMap }): JsonObject {
  const { inputRequests, result, error } = task
  return {
    ...withTaskId(task, (id) => taskIds.toClient(call, upstream, id)),
    ...inputRequests !== undefined && { inputRequests: shapeInputRequests(inputRequests, upstream, call.endpoint, anything) },
    ...isObject(result) && { result: rewriteToolResult(result, map) },
    ...error !== undefined && { error: fittingOutcome(taskError(error), upstream, call.client.capabilities) }
  }
}
