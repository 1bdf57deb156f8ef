// A task of the tasks extension (SEP-2663) as a client of 2026-07-28 knows it.

import { isObject, type JsonObject, type UpstreamName } from '../../protocol/messages.ts'
import { rewriteToolResult, type UriMap } from '../../protocol/translate/rewrite.ts'
import { taskError } from '../../protocol/translate/task-translate.ts'
import { withTaskId } from '../../protocol/translate/tasks.ts'
import type { ModernCall } from '../call/call.ts'
import { taskErrorForModern } from '../client/client-errors.ts'
import { allInputCapabilities, shapeInputRequests } from '../client/input-requests.ts'
import type { SealedTaskIds } from './sealed-ids.ts'

/** @param task a task, or a message that says something of one (`tasks/get`, `notifications/tasks`) */
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
