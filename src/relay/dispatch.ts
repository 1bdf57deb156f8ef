// From method to handler. Membership in the table is support; everything else is method-not-found.

import { GatewayError } from '../protocol/errors.ts'
import { isLogLevel, logLevels } from '../protocol/levels.ts'
import type { Result } from '../protocol/messages.ts'
import { rewritePromptResult, rewriteReadResult, rewriteToolResult, withParam } from '../protocol/rewrite.ts'
import { shapePromptResult, shapeToolResult } from '../protocol/shape.ts'
import type { Call } from './call.ts'
import type { Route } from './catalog.ts'
import { complete } from './completion.ts'
import { checkArguments, checkProgressToken, excerpt, find, methodNotFound, text, withUri } from './floor.ts'
import type { Floor, Handler } from './floor.ts'
import { listPage, lists } from './lists.ts'
import { created, taskHandlers, withKnownTask } from './task-calls.ts'

const handlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['ping', async () => ({})],
  ...lists.map((list): [string, Handler] => [list.method, async (call, floor) => {
    await floor.settled(call)
    return listPage(call, list, floor.catalog(call), call.live.session.record.revision)
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
  checkProgressToken(call)
  return handler(call, floor)
}

async function callTool (call: Call, floor: Floor): Promise<Result> {
  const name = text(call, 'name')
  checkArguments(call)
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
