// The tasks extension (SEP-2663): tasks/get, tasks/update and tasks/cancel, routed by ids that hold the upstream.

import { GatewayError, type Result } from '../../protocol/messages.ts'
import { tasksExtension } from '../../protocol/methods.ts'
import { hasCapability } from '../../protocol/translate/merge.ts'
import { withParam } from '../../protocol/translate/rewrite.ts'
import { definitionOf, type ModernCall } from '../call/call.ts'
import { stringParam } from '../call/params.ts'
import { taskForCaller } from '../tasks/caller-task.ts'
import { errorOf, forwardModern, type ModernServices } from './modern-forward.ts'

/** @throws GatewayError missing_capability, invalid_params */
export async function taskMethod(call: ModernCall, services: ModernServices): Promise<Result> {
  const { catalogs, taskIds, legacyTasks } = services
  const { method } = call.request
  if (!hasCapability(call.client.capabilities, ['extensions', tasksExtension])) {
    const message =
      `${method} is for clients that declare the extension ${tasksExtension} ` +
      'in io.modelcontextprotocol/clientCapabilities.'
    throw new GatewayError('missing_capability', message, {
      data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } }
    })
  }
  const task = taskIds.open(call, stringParam(call, 'taskId'))
  const legacy = task?.legacy
  const uris = task === undefined ? undefined : catalogs.of(call).uriMap(task.upstream)
  // The same error for a forged id, a foreign one, and one of a server that makes no tasks any more.
  const isGone =
    legacy === undefined && task !== undefined && !catalogs.offers(call, task.upstream, 'extensions', tasksExtension)
  if (task === undefined || uris === undefined || isGone) {
    const message = 'Unknown task: it is none that you were given at this endpoint, or its upstream is gone.'
    throw new GatewayError('invalid_params', message)
  }
  const definition = definitionOf(call, task.upstream)
  if (legacy !== undefined) {
    try {
      return await legacyTasks.handle(call, definition, { ...task, legacy }, uris)
    } catch (error) {
      throw errorOf(call, definition, error)
    }
  }
  const result = await forwardModern(call, definition, withParam(call.request, 'taskId', task.id), services)
  // SEP-2663: `complete` on all three, although its own examples say `task`.
  return { ...taskForCaller(call, task.upstream, result, taskIds, uris), resultType: 'complete' }
}
