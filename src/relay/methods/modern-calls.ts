// tools/call, prompts/get and resources/read of 2026-07-28: to the upstream under its own names, and back under the
// public ones.

import { GatewayError, type Result, rpcCodes, RpcError, type UpstreamName } from '../../protocol/messages.ts'
import { hasCapability, tasksExtension } from '../../protocol/methods.ts'
import {
  rewritePromptResult,
  rewriteReadResult,
  rewriteToolResult,
  withParam
} from '../../protocol/translate/rewrite.ts'
import { checkArguments, definitionOf, excerpt, type ModernCall, stringParam } from '../call/call.ts'
import { cappedTtlMs } from '../catalog/freshness.ts'
import { taskForCaller, unknownTask } from '../tasks/caller-tasks.ts'
import { converse, errorOf, forwardModern, type ModernServices } from './modern-forward.ts'
import { resolve, withClientUri } from './shared.ts'

export async function callTool(call: ModernCall, services: ModernServices): Promise<Result> {
  const name = stringParam(call, 'name')
  checkArguments(call)
  const target = await resolve(call, services.catalogs, 'tool', name)
  if (target === undefined) throw unknownName(call, services, 'tool', name)
  const { route, definition, uris } = target
  const knowsTasks = hasCapability(call.client.capabilities, ['extensions', tasksExtension])
  const asTask = knowsTasks && services.legacyTasks.requiresTask(definition, route.name)
  const result = await converse(call, definition, withParam(call.request, 'name', route.name), services, asTask)
  if (result['resultType'] !== 'task') return rewriteToolResult(result, uris)
  if (asTask) return result
  if (typeof result['taskId'] !== 'string' || !knowsTasks) {
    const message = `Upstream ${route.upstream} made a task that the client cannot follow.`
    throw new GatewayError('upstream_protocol', message, { data: { upstream: route.upstream } })
  }
  return taskForCaller(call, route.upstream, result, services.taskIds, uris)
}

export async function getPrompt(call: ModernCall, services: ModernServices): Promise<Result> {
  const name = stringParam(call, 'name')
  const target = await resolve(call, services.catalogs, 'prompt', name)
  if (target === undefined) throw unknownName(call, services, 'prompt', name)
  const { route, definition, uris } = target
  return rewritePromptResult(
    await converse(call, definition, withParam(call.request, 'name', route.name), services),
    uris
  )
}

export async function readResource(call: ModernCall, services: ModernServices): Promise<Result> {
  const uri = stringParam(call, 'uri')
  const target = await resolve(call, services.catalogs, 'resource', uri)
  if (target === undefined) throw unknownResource(call, services, uri)
  const { route, definition, uris } = target
  let result: Result
  try {
    result = await converse(call, definition, withParam(call.request, 'uri', route.name), services)
  } catch (error) {
    throw withClientUri(withUnknownUri(error, route.name), uris)
  }
  if (result['resultType'] !== 'complete') return result
  // The client's input is no part of what a cache finds a result by (server/utilities/caching, "Cache Key").
  const ttlMs = hasInput(call) ? 0 : cappedTtlMs(result['ttlMs'])
  return { ...rewriteReadResult(result, uris), ttlMs, cacheScope: 'private' }
}

const hasInput = ({ request: { params } }: ModernCall): boolean =>
  params?.['inputResponses'] !== undefined || params?.['requestState'] !== undefined

function unknownName(call: ModernCall, services: ModernServices, kind: 'tool' | 'prompt', name: string): GatewayError {
  return (
    ownerAway(services.catalogs.of(call).unlistedOwnerOfName(name)) ??
    services.states.lost(call) ??
    new GatewayError('invalid_params', `Unknown ${kind}: ${excerpt(name)}`)
  )
}

function unknownResource(call: ModernCall, services: ModernServices, uri: string): GatewayError {
  const message = `Resource not found: ${excerpt(uri)}`
  return (
    ownerAway(services.catalogs.of(call).unlistedOwnerOfUri(uri)) ??
    services.states.lost(call) ??
    new GatewayError('unknown_resource', message, { data: { uri: excerpt(uri) } })
  )
}

/** While the upstream that would own a name cannot be asked, it is not known that the name is wrong. */
function ownerAway(upstream: UpstreamName | undefined): GatewayError | undefined {
  if (upstream === undefined) return undefined
  const message = `Upstream ${upstream} is away, and nobody else would know this name. Retry when it is back.`
  return new GatewayError('upstream_unavailable', message, { data: { upstream } })
}

/** server/resources "Error Handling": a client learns which URI was not found; older servers did not have to say. */
function withUnknownUri(error: unknown, uri: string): unknown {
  if (!(error instanceof RpcError) || error.error.code !== rpcCodes.invalidParams || error.error.data !== undefined)
    return error
  return new RpcError({ ...error.error, data: { uri } })
}

// The tasks extension (SEP-2663): tasks/get, tasks/update and tasks/cancel, routed by ids that hold the upstream.

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
  const isGone =
    legacy === undefined && task !== undefined && !catalogs.offers(call, task.upstream, 'extensions', tasksExtension)
  if (task === undefined || uris === undefined || isGone) throw unknownTask()
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
