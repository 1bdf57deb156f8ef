// tools/call, prompts/get and resources/read: to the upstream under its own names, and back under the public ones. Any of them may come
// back with questions for the client (2026-07-28 basic/patterns/mrtr), and be sent again with the answers.

import { GatewayError, RpcError } from '../../protocol/errors.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import { has, tasksExtension } from '../../protocol/merge.ts'
import { isObject } from '../../protocol/messages.ts'
import type { Request, Result } from '../../protocol/messages.ts'
import { rewritePromptResult, rewriteReadResult, rewriteToolResult, withParam, without } from '../../protocol/rewrite.ts'
import type { ModernCall } from '../call.ts'
import type { Route } from '../catalog.ts'
import { checkArguments, excerpt, find, text, withUri } from '../floor.ts'
import { cappedTtl } from '../freshness.ts'
import type { ModernFloor } from './floor.ts'
import { shapeInputRequests } from './input.ts'
import type { RequestStates } from './state.ts'
import { withPages } from './url-first.ts'

export async function callTool (call: ModernCall, floor: ModernFloor): Promise<Result> {
  const name = text(call, 'name')
  checkArguments(call)
  const route = await find(call, floor, (catalog) => catalog.tool(name))
  if (route === undefined) throw away(floor.catalog(call).absentOwner(name)) ?? floor.states.lost(call) ?? new GatewayError('invalid_params', `Unknown tool: ${excerpt(name)}`)
  const request = withParam(call.request, 'name', route.name)
  const asTask = has(call.client.capabilities, ['extensions', tasksExtension]) && floor.onlyAsTask(call, route)
  const result = await (asTask ? withPages(call, floor, route, (asked) => floor.makeTask(asked, route, request)) : converse(call, floor, route, request))
  if (result['resultType'] === 'task') return asTask ? result : created(call, floor, route, result)
  return rewriteToolResult(result, floor.catalog(call).uriMap(route.upstream))
}

export async function getPrompt (call: ModernCall, floor: ModernFloor): Promise<Result> {
  const name = text(call, 'name')
  const route = await find(call, floor, (catalog) => catalog.prompt(name))
  if (route === undefined) throw away(floor.catalog(call).absentOwner(name)) ?? floor.states.lost(call) ?? new GatewayError('invalid_params', `Unknown prompt: ${excerpt(name)}`)
  return rewritePromptResult(await converse(call, floor, route, withParam(call.request, 'name', route.name)), floor.catalog(call).uriMap(route.upstream))
}

export async function readResource (call: ModernCall, floor: ModernFloor): Promise<Result> {
  const uri = text(call, 'uri')
  const route = await find(call, floor, (catalog) => catalog.resource(uri))
  if (route === undefined) throw away(floor.catalog(call).absentSource(uri)) ?? floor.states.lost(call) ?? new GatewayError('unknown_resource', `Resource not found: ${excerpt(uri)}`, { data: { uri: excerpt(uri) } })
  const map = floor.catalog(call).uriMap(route.upstream)
  const result = await converse(call, floor, route, withParam(call.request, 'uri', route.name)).catch((error: unknown) => withUri(map)(named(error, route.name)))
  if (result['resultType'] !== 'complete') return result
  // Answers of the client are no part of what a cache finds a result by (server/utilities/caching, "Cache Key").
  const ttlMs = isAnswer(call) ? 0 : cappedTtl(result['ttlMs'])
  return { ...rewriteReadResult(result, map), ttlMs, cacheScope: 'private' }
}

/** Where the owner of a name cannot be asked, nobody knows that it is wrong. */
function away (upstream: UpstreamName | undefined): GatewayError | undefined {
  return upstream === undefined ? undefined : new GatewayError('upstream_unavailable', `Upstream ${upstream} is away, and nobody else would know this name. Retry when it is back.`, { data: { upstream } })
}

/** server/resources "Error Handling": a client learns which URI was not found; older servers did not have to say. */
function named (error: unknown, uri: string): unknown {
  if (!(error instanceof RpcError) || error.error.code !== -32_602 || error.error.data !== undefined) return error
  return new RpcError({ ...error.error, data: { uri } })
}

const isAnswer = ({ request: { params } }: ModernCall): boolean => params?.['inputResponses'] !== undefined || params?.['requestState'] !== undefined

const converse = (call: ModernCall, floor: ModernFloor, route: Route, request: Request): Promise<Result> =>
  withPages(call, floor, route, (asked) => talk(asked, floor, route, asked === call ? request : withoutAnswers(request)))

/**
 * The request with the answers and the state that go along, where they belong.
 * @throws GatewayError invalid_params, invalid_state
 */
async function talk (call: ModernCall, floor: ModernFloor, route: Route, request: Request): Promise<Result> {
  const { inputResponses = {}, requestState } = call.request.params ?? {}
  if (!isObject(inputResponses)) throw new GatewayError('invalid_params', `"inputResponses" of ${call.request.method} must be an object.`)
  if (requestState === undefined) return await floor.forward(call, route, request)
  const { parked, upstreamState } = floor.states.open(call, route.upstream, requestState)
  if (parked !== undefined) return await floor.resume(call, route, parked, inputResponses)
  return await floor.forward(call, route, upstreamState === undefined ? without(request, 'requestState') : withParam(request, 'requestState', upstreamState))
}

/**
 * What a modern upstream answered, with its questions and its state as the client gets them.
 * @throws GatewayError upstream_protocol
 */
export function withQuestions (call: ModernCall, states: RequestStates, upstream: UpstreamName, result: Result): Result {
  if (result['resultType'] !== 'input_required') return result
  const { ttlMs: _ttl, cacheScope: _scope, inputRequests, requestState, ...rest } = result
  if (inputRequests === undefined && typeof requestState !== 'string') {
    throw new GatewayError('upstream_protocol', `Upstream ${upstream} asks for input without saying which.`, { data: { upstream } })
  }
  return {
    ...rest,
    ...inputRequests !== undefined && { inputRequests: shapeInputRequests(inputRequests, upstream, call.endpoint, call.client.capabilities) },
    ...typeof requestState === 'string' && { requestState: states.seal(call, upstream, { upstreamState: requestState }) }
  }
}

/** A call that became a task (extension io.modelcontextprotocol/tasks). */
function created (call: ModernCall, floor: ModernFloor, { upstream }: Route, result: Result): Result {
  const id = result['taskId']
  if (typeof id !== 'string' || !has(call.client.capabilities, ['extensions', tasksExtension])) {
    throw new GatewayError('upstream_protocol', `Upstream ${upstream} made a task that the client cannot follow.`, { data: { upstream } })
  }
  return floor.shapeTask(call, upstream, result)
}

/** For legacy servers, which know nothing of answers. */
export const withoutAnswers = (request: Request): Request => without(without(request, 'inputResponses'), 'requestState')
