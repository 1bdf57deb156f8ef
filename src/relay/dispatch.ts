// From method to handler. Membership in the table is support; everything else is method-not-found.

import { GatewayError } from '../protocol/errors.ts'
import { isLogLevel, logLevels } from '../protocol/levels.ts'
import { isObject, metaOf } from '../protocol/messages.ts'
import type { Result } from '../protocol/messages.ts'
import { pageOf } from '../protocol/pages.ts'
import { rewritePromptResult, rewriteReadResult, rewriteToolResult, withParam, withRef } from '../protocol/rewrite.ts'
import type { Call } from './call.ts'
import type { Catalog, Route } from './catalog.ts'
import { RpcError } from '../protocol/errors.ts'

/** What the handlers need of the rest of the relay. */
export interface Floor {
  /** The caller's catalog, as it is now. */
  catalog (call: Call): Catalog
  /** Waits, for a short time, for upstreams that are not known yet. */
  settled (call: Call): Promise<void>
  /** Sends to the route's upstream, at most once. */
  forward (call: Call, route: Route, request: Call['request']): Promise<Result>
  /** Does the upstream of the route declare the capability? Unknown counts as yes. */
  offers (call: Call, route: Route, capability: string): boolean
  setLogLevel (call: Call, level: typeof logLevels[number]): Promise<void>
}

const maxTokenLength = 1_024

type Handler = (call: Call, floor: Floor) => Promise<Result>

const lists: ReadonlyArray<readonly [method: string, member: 'tools' | 'prompts' | 'resources' | 'templates', key: string, name: string]> = [
  ['tools/list', 'tools', 'tools', 'name'],
  ['prompts/list', 'prompts', 'prompts', 'name'],
  ['resources/list', 'resources', 'resources', 'uri'],
  ['resources/templates/list', 'templates', 'resourceTemplates', 'uriTemplate']
]

const handlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['ping', async () => ({})],
  ...lists.map(([method, member, key, name]): [string, Handler] => [method, async (call, floor) => {
    await floor.settled(call)
    const { entries, nextCursor } = pageOf(floor.catalog(call)[member], call.request.params?.['cursor'], call.snapshot.limits.pageSize, (entry) => String(entry[name]))
    return nextCursor === undefined ? { [key]: entries } : { [key]: entries, nextCursor }
  }]),
  ['tools/call', callTool],
  ['prompts/get', getPrompt],
  ['resources/read', readResource],
  ['completion/complete', complete],
  ['logging/setLevel', setLevel]
])

/** @throws GatewayError method_not_found; whatever the handler throws */
export function dispatch (call: Call, floor: Floor): Promise<Result> {
  const handler = handlers.get(call.request.method)
  if (handler === undefined) throw new GatewayError('method_not_found', `Method not found: ${excerpt(call.request.method)}`)
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
  const result = await floor.forward(call, route, withParam(call.request, 'name', route.name))
  return rewriteToolResult(result, floor.catalog(call).uriMap(route.upstream))
}

async function getPrompt (call: Call, floor: Floor): Promise<Result> {
  const name = text(call, 'name')
  const route = await find(call, floor, (catalog) => catalog.prompt(name))
  if (route === undefined) throw new GatewayError('invalid_params', `Unknown prompt: ${excerpt(name)}`)
  const result = await floor.forward(call, route, withParam(call.request, 'name', route.name))
  return rewritePromptResult(result, floor.catalog(call).uriMap(route.upstream))
}

async function readResource (call: Call, floor: Floor): Promise<Result> {
  const uri = text(call, 'uri')
  const route = await find(call, floor, (catalog) => catalog.resource(uri))
  if (route === undefined) throw new GatewayError('resource_not_found', `Resource not found: ${excerpt(uri)}`, { data: { uri: excerpt(uri) } })
  const map = floor.catalog(call).uriMap(route.upstream)
  try {
    return rewriteReadResult(await floor.forward(call, route, withParam(call.request, 'uri', route.name)), map)
  } catch (error) {
    // An upstream names the URI in its error as it knows it; the client knows another.
    if (error instanceof RpcError && isObject(error.error.data) && typeof error.error.data['uri'] === 'string') {
      throw new RpcError({ ...error.error, data: { ...error.error.data, uri: map(error.error.data['uri']) } })
    }
    throw error
  }
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
  return await floor.forward(call, route, withRef(call.request, { ...ref, [member]: route.name }))
}

async function setLevel (call: Call, floor: Floor): Promise<Result> {
  const level = call.request.params?.['level']
  if (!isLogLevel(level)) throw new GatewayError('invalid_params', `"level" must be one of ${logLevels.join(', ')}.`)
  await floor.setLogLevel(call, level)
  return {}
}

/** Only a miss waits for upstreams that are still on their way. */
async function find (call: Call, floor: Floor, look: (catalog: Catalog) => Route | undefined): Promise<Route | undefined> {
  const route = look(floor.catalog(call))
  if (route !== undefined) return route
  await floor.settled(call)
  return look(floor.catalog(call))
}

function text (call: Call, member: string): string {
  const value = call.request.params?.[member]
  if (typeof value !== 'string') throw new GatewayError('invalid_params', `"${member}" of ${call.request.method} must be a string.`)
  return value
}

const excerpt = (value: string): string => value.length <= 200 ? value : value.slice(0, 200) + '…'
