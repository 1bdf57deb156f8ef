// The methods of 2026-07-28. One whose capability the endpoint does not offer is as unknown as one that the revision
// does not have.

import {
  GatewayError,
  latestModern,
  modernRevisions,
  rpcCodes,
  RpcError,
  type Result
} from '../../protocol/messages.ts'
import { modernClientRequests, tasksExtension, hasCapability } from '../../protocol/methods.ts'
import { changesResults, withArguments } from '../../protocol/translate/change-tool.ts'
import { rewriteMessages, rewriteReadResult, rewriteToolResult, withParam } from '../../protocol/translate/rewrite.ts'
import {
  checkArguments,
  checkProgressToken,
  definitionOf,
  excerpt,
  stringParam,
  type ModernCall
} from '../call/call.ts'
import { cappedTtlMs } from '../catalog/freshness.ts'
import { taskForCaller, unknownTask } from '../tasks/caller-tasks.ts'
import { converse, forwardModern, withModernErrors, type ModernServices } from './modern-forward.ts'
import { lists } from './list-pages.ts'
import { checkConditions, completion, resolve, shownResult, unknownName, withClientUri } from './shared.ts'
import { connectedResult } from './unconnected.ts'

async function discover(call: ModernCall, { catalogs, advertised }: ModernServices): Promise<Result> {
  const { modernCapabilities: capabilities, instructions } = catalogs.of(call)
  const ttlMs = catalogs.discoveryTtlMs(call)
  advertised.keep(call, capabilities, ttlMs, catalogs.isGuess(call))
  return {
    resultType: 'complete',
    supportedVersions: modernRevisions,
    capabilities,
    ...(instructions === undefined ? {} : { instructions }),
    ttlMs,
    cacheScope: 'private'
  }
}

/** Makes the result of a list. It depends on the caller, now or later, so that no cache may share it. */
async function listResult(
  call: ModernCall,
  { catalogs, pages }: ModernServices,
  list: (typeof lists)[number]
): Promise<Result> {
  return {
    resultType: 'complete',
    ...(await pages.page(call, list, catalogs.of(call), latestModern)),
    ttlMs: catalogs.remainingTtlMs(call, [list.list]),
    cacheScope: 'private'
  }
}

async function callTool(call: ModernCall, services: ModernServices): Promise<Result> {
  const name = stringParam(call, 'name')
  checkArguments(call)
  const found = resolve(call, services.catalogs, 'tool', name)
  const target = found instanceof Promise ? await found : found
  if (target === undefined) return connectedResult(call, name, () => unknownTo(call, services, 'tool', name))
  const { route, definition, uris } = target
  const knowsTasks =
    !changesResults(route.change) && hasCapability(call.client.capabilities, ['extensions', tasksExtension])
  const asTask = knowsTasks && services.legacyTasks.requiresTask(definition, route.name)
  const filled = route.change === undefined ? call.request : withArguments(call.request, route.change)
  checkConditions(call, target, 'tool', filled, services.wall)
  const request = withParam(filled, 'name', route.name)
  const ask = (): Promise<Result> => converse(call, definition, request, services, asTask)
  const result = await services.callLimits.within(call, 'tool', route, ask)
  if (result['resultType'] !== 'task') return rewriteToolResult(shownResult(result, route), uris)
  if (asTask) return result
  const { taskId } = result
  if (typeof taskId !== 'string' || !knowsTasks) {
    const message = `Upstream ${route.upstream} made a task that the client cannot follow.`
    throw new GatewayError('upstream_protocol', message, { data: { upstream: route.upstream } })
  }
  return taskForCaller(call, route.upstream, result, taskId, uris)
}

async function getPrompt(call: ModernCall, services: ModernServices): Promise<Result> {
  checkArguments(call)
  const name = stringParam(call, 'name')
  const target = await resolve(call, services.catalogs, 'prompt', name)
  if (target === undefined) throw unknownTo(call, services, 'prompt', name)
  checkConditions(call, target, 'prompt', call.request, services.wall)
  const { route, definition, uris } = target
  const request = withParam(call.request, 'name', route.name)
  const ask = (): Promise<Result> => converse(call, definition, request, services)
  return rewriteMessages(await services.callLimits.within(call, 'prompt', route, ask), uris)
}

async function readResource(call: ModernCall, services: ModernServices): Promise<Result> {
  const uri = stringParam(call, 'uri')
  const target = await resolve(call, services.catalogs, 'resource', uri)
  if (target === undefined) {
    const error = new GatewayError('unknown_resource', 'Resource not found', { data: { uri: excerpt(uri) } })
    throw unknownName(call, services.catalogs.of(call), 'resource', uri, services.states.lost(call) ?? error)
  }
  checkConditions(call, target, 'resource', call.request, services.wall)
  const { route, definition, uris } = target
  const request = withParam(call.request, 'uri', route.name)
  const ask = (): Promise<Result> => converse(call, definition, request, services)
  const result = await services.callLimits.within(call, 'resource', route, ask).catch((error: unknown) => {
    throw withClientUri(withUnknownUri(error, route.name), uris)
  })
  if (result['resultType'] !== 'complete') return result
  const { inputResponses, requestState } = call.request.params ?? {}
  // The client's input is no part of what a cache finds a result by (server/utilities/caching, "Cache Key").
  const ttlMs = inputResponses === undefined && requestState === undefined ? cappedTtlMs(result['ttlMs']) : 0
  return { ...rewriteReadResult(result, uris), ttlMs, cacheScope: 'private' }
}

function unknownTo(call: ModernCall, services: ModernServices, kind: 'tool' | 'prompt', name: string): Error {
  const error = new GatewayError('invalid_params', `Unknown ${kind}: ${excerpt(name)}`)
  return unknownName(call, services.catalogs.of(call), kind, name, services.states.lost(call) ?? error)
}

/** server/resources "Error Handling": a client learns which URI was not found; older servers did not have to say. */
function withUnknownUri(error: unknown, uri: string): unknown {
  if (!(error instanceof RpcError) || error.error.code !== rpcCodes.invalidParams || error.error.data !== undefined)
    return error
  return new RpcError({ ...error.error, data: { uri } })
}

async function complete(call: ModernCall, services: ModernServices): Promise<Result> {
  const result = await completion(call, services.catalogs, ({ definition }, request) =>
    forwardModern(call, definition, request, services)
  )
  return { ...result, resultType: 'complete' }
}

/**
 * `tasks/get`, `tasks/update` and `tasks/cancel` of the tasks extension (SEP-2663), routed by ids that hold the
 * upstream.
 * @throws GatewayError missing_capability, invalid_params
 */
export async function taskMethod(call: ModernCall, services: ModernServices): Promise<Result> {
  const { catalogs, taskIds, legacyTasks, processTasks } = services
  const { method } = call.request
  if (!hasCapability(call.client.capabilities, ['extensions', tasksExtension])) {
    const message =
      `${method} is for clients that declare the extension ${tasksExtension} ` +
      'in io.modelcontextprotocol/clientCapabilities.'
    throw new GatewayError('missing_capability', message, {
      data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } }
    })
  }
  const shownId = stringParam(call, 'taskId')
  const task = taskIds.open(call, shownId)
  const uris = task === undefined ? undefined : catalogs.of(call).uriMap(task.upstream)
  const isGone =
    task?.legacy === undefined &&
    task !== undefined &&
    !catalogs.offers(call, task.upstream, 'extensions', tasksExtension)
  if (task === undefined || uris === undefined || isGone) throw unknownTask()
  const definition = definitionOf(call, task.upstream)
  const { legacy, process } = task
  if (legacy !== undefined) {
    return await withModernErrors(call, definition, () =>
      legacyTasks.handle(call, definition, { ...task, legacy }, uris)
    )
  }
  const at = process && processTasks.find(definition, process)
  if (process !== undefined && at === undefined)
    return await withModernErrors(call, definition, () => processTasks.elsewhere(call, definition, process))
  const result = await forwardModern(call, definition, withParam(call.request, 'taskId', task.id), services, at)
  // SEP-2663: `complete` on all three, although its own examples say `task`.
  return { ...taskForCaller(call, task.upstream, result, shownId, uris), resultType: 'complete' }
}

type ModernMethod = (call: ModernCall, services: ModernServices) => Promise<Result>

const methods: ReadonlyMap<string, ModernMethod> = new Map<string, ModernMethod>([
  ['server/discover', discover],
  ...lists.map((list): [string, ModernMethod] => [list.method, (call, services) => listResult(call, services, list)]),
  ['tools/call', callTool],
  ['prompts/get', getPrompt],
  ['resources/read', readResource],
  ['completion/complete', complete],
  ['tasks/get', taskMethod],
  ['tasks/update', taskMethod],
  ['tasks/cancel', taskMethod]
])

/** Their answer is made of all upstreams, so they wait for those whose listing is unknown. */
const aggregates: ReadonlySet<string> = new Set(['server/discover', ...lists.map(({ method }) => method)])

/** @throws GatewayError unknown_method; whatever the method throws */
export async function dispatchModern(call: ModernCall, services: ModernServices): Promise<Result> {
  const { catalogs, advertised, states } = services
  const { method } = call.request
  const unknown = (): GatewayError => new GatewayError('unknown_method', `Method not found: ${excerpt(method)}`)
  const handle = methods.get(method)
  if (handle === undefined) throw unknown()
  checkProgressToken(call)
  if (call.request.params?.['requestState'] !== undefined) await states.prepare(call)
  const needs = modernClientRequests.get(method)?.capability ?? []
  const isOffered = (): boolean => needs.length === 0 || hasCapability(catalogs.of(call).modernCapabilities, needs)
  if (aggregates.has(method) || !isOffered()) await catalogs.awaitListings(call)
  if (!isOffered() && !advertised.holds(call, needs)) throw states.lost(call) ?? unknown()
  return await handle(call, services)
}
