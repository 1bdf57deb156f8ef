// From method to handler. Membership in the table is support; everything else is method-not-found.

import { GatewayError, RpcError } from '../protocol/errors.ts'
import { isLogLevel, logLevels } from '../protocol/levels.ts'
import { isObject, metaOf } from '../protocol/messages.ts'
import type { Result } from '../protocol/messages.ts'
import { pageOf } from '../protocol/pages.ts'
import { rewritePromptResult, rewriteReadResult, rewriteToolResult, withParam, withRef } from '../protocol/rewrite.ts'
import type { UriMap } from '../protocol/rewrite.ts'
import { shapeCompletion, shapePromptResult, shapeToolResult } from '../protocol/shape.ts'
import type { Call } from './call.ts'
import type { Catalog, ListName, Route } from './catalog.ts'
import { excerpt, find, methodNotFound, text } from './floor.ts'
import type { Floor, Handler } from './floor.ts'
import { created, taskHandlers, withKnownTask } from './task-calls.ts'

const maxTokenLength = 1_024

const lists: ReadonlyArray<readonly [method: string, member: ListName, key: string, name: string]> = [
  ['tools/list', 'tools', 'tools', 'name'],
  ['prompts/list', 'prompts', 'prompts', 'name'],
  ['resources/list', 'resources', 'resources', 'uri'],
  ['resources/templates/list', 'templates', 'resourceTemplates', 'uriTemplate']
]

const handlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['ping', async () => ({})],
  ...lists.map(([method, member, key, name]): [string, Handler] => [method, async (call, floor) => {
    await floor.settled(call)
    const { entries, nextCursor } = pageOf(floor.catalog(call).list(member, call.live.session.record.revision), call.request.params?.['cursor'], call.snapshot.limits.pageSize, (entry) => String(entry[name]))
    return nextCursor === undefined ? { [key]: entries } : { [key]: entries, nextCursor }
  }]),
  ['tools/call', callTool],
  ['prompts/get', getPrompt],
  ['resources/read', readResource],
  ['resources/subscribe', subscribe],
  ['resources/unsubscribe', unsubscribe],
  ['completion/complete', complete],
  ['logging/setLevel', setLevel],
  ...taskHandlers
])

/** @throws GatewayError method_not_found; whatever the handler throws */
export function dispatch (call: Call, floor: Floor): Promise<Result> {
  const handler = handlers.get(call.request.method)
  if (handler === undefined) throw methodNotFound(call.request.method)
  const token = metaOf(call.request.params)['progressToken']
  // It comes back with every progress message: a long one would be sent many times over.
  if (token !== undefined && typeof token !== 'number' && JSON.stringify(token).length > maxTokenLength) {
    throw new GatewayError('invalid_params', `"_meta.progressToken" is longer than ${maxTokenLength} characters.`)
  }
  return handler(call, floor)
}

async function callTool (call: Call, floor: Floor): Promise<Result> {
  const name = text(call, 'name')
  const args = call.request.params?.['arguments']
  if (args !== undefined && !isObject(args)) throw new GatewayError('invalid_params', '"arguments" of tools/call must be an object.')
  const route = await find(call, floor, (catalog) => catalog.tool(name))
  if (route === undefined) throw new GatewayError('invalid_params', `Unknown tool: ${excerpt(name)}`)
  const request = withParam(withKnownTask(call, floor, route), 'name', route.name)
  const result = await created(call, floor, route, request, await floor.forward(call, route, request))
  return shapeToolResult(rewriteToolResult(result, floor.catalog(call).uriMap(route.upstream)), call.live.session.record.revision)
}

async function getPrompt (call: Call, floor: Floor): Promise<Result> {
  const name = text(call, 'name')
  const route = await find(call, floor, (catalog) => catalog.prompt(name))
  if (route === undefined) throw new GatewayError('invalid_params', `Unknown prompt: ${excerpt(name)}`)
  const result = await floor.forward(call, route, withParam(call.request, 'name', route.name))
  return shapePromptResult(rewritePromptResult(result, floor.catalog(call).uriMap(route.upstream)), call.live.session.record.revision)
}

async function readResource (call: Call, floor: Floor): Promise<Result> {
  const { route } = await resourceOf(call, floor)
  const map = floor.catalog(call).uriMap(route.upstream)
  return rewriteReadResult(await floor.forward(call, route, withParam(call.request, 'uri', route.name)).catch(withUri(map)), map)
}

/** An upstream names the URI in its error as it knows it; the client knows another. */
const withUri = (map: UriMap) => (error: unknown): never => {
  if (error instanceof RpcError && isObject(error.error.data) && typeof error.error.data['uri'] === 'string') {
    throw new RpcError({ ...error.error, data: { ...error.error.data, uri: map(error.error.data['uri']) } })
  }
  throw error
}

async function complete (call: Call, floor: Floor): Promise<Result> {
  const ref = call.request.params?.['ref']
  if (!isObject(ref)) throw new GatewayError('invalid_params', '"ref" of completion/complete must be an object.')
  const [member, look]: [string, (catalog: Catalog, name: string) => Route | undefined] = ref['type'] === 'ref/prompt'
    ? ['name', (catalog, name) => catalog.prompt(name)]
    : ['uri', (catalog, name) => catalog.resource(name)]
  const name = ref[member]
  if (typeof name !== 'string') throw new GatewayError('invalid_params', `"ref.${member}" of completion/complete must be a string.`)
  const route = await find(call, floor, (catalog) => look(catalog, name))
  if (route === undefined) throw new GatewayError('invalid_params', `Unknown reference: ${excerpt(name)}`)
  // Other upstreams of the endpoint complete, this one does not: nothing to suggest, rather than a method that seems to be missing.
  if (!floor.offers(call, route, 'completions')) return { completion: { values: [] } }
  return shapeCompletion(await floor.forward(call, route, withRef(call.request, { ...ref, [member]: route.name })).catch((error: unknown) => {
    // An upstream of 2024-11-05 could not declare completion: whether it has it is found out here.
    if (error instanceof RpcError && error.error.code === -32601) return { completion: { values: [] } }
    throw error
  }))
}

async function subscribe (call: Call, floor: Floor): Promise<Result> {
  const { route, uri } = await resourceOf(call, floor)
  return await floor.subscriptions.subscribe(call, route.upstream, route.name, uri).catch(withUri(floor.catalog(call).uriMap(route.upstream)))
}

async function unsubscribe (call: Call, floor: Floor): Promise<Result> {
  const { route } = await resourceOf(call, floor)
  return await floor.subscriptions.unsubscribe(call, route.upstream, route.name).catch(withUri(floor.catalog(call).uriMap(route.upstream)))
}

/** @throws GatewayError invalid_params, resource_not_found */
async function resourceOf (call: Call, floor: Floor): Promise<{ route: Route, uri: string }> {
  const uri = text(call, 'uri')
  const route = await find(call, floor, (catalog) => catalog.resource(uri))
  if (route === undefined) throw new GatewayError('resource_not_found', `Resource not found: ${excerpt(uri)}`, { data: { uri: excerpt(uri) } })
  return { route, uri }
}

async function setLevel (call: Call, floor: Floor): Promise<Result> {
  const level = call.request.params?.['level']
  if (!isLogLevel(level)) throw new GatewayError('invalid_params', `"level" must be one of ${logLevels.join(', ')}.`)
  await floor.setLogLevel(call, level)
  return {}
}
