// What a hostile MCP server says to one message, whatever carries it: often the right answer, so that the gateway goes on
// to the next step, and otherwise that answer changed, doubled, for somebody else, unasked, broken or missing.

import { anyValue, brokenText, mutated, type Random } from './random.ts'

type Json = Record<string, unknown>

export type HostileEra = 'legacy' | 'modern'

/** One thing that is put on the wire, or that happens to it. */
export type Act = { readonly message: unknown } | { readonly bytes: Buffer } | 'cut' | 'end'

/** Of one flood of bytes. */
const maxFloodBytes = 262_144

const tools = ['echo', 'ask', 'long', 'odd'].map((name) => ({ name, inputSchema: { type: 'object' } }))
const capabilities = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  completions: {},
  logging: {},
  tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } }
}

function goodResult(method: string, params: Json, era: HostileEra): Json {
  const results: Record<string, Json> = {
    initialize: {
      protocolVersion: params['protocolVersion'],
      capabilities,
      serverInfo: { name: 'hostile', version: '1' }
    },
    'server/discover': { supportedVersions: ['2026-07-28'], capabilities },
    'tools/list': { tools },
    'tools/call': { content: [{ type: 'text', text: 'hello' }] },
    'prompts/list': { prompts: [{ name: 'greet' }] },
    'prompts/get': { messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }] },
    'resources/list': { resources: [{ uri: 'test://one', name: 'one' }] },
    'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'test://{x}', name: 'any' }] },
    'resources/read': { contents: [{ uri: params['uri'], text: 'hello' }] },
    'completion/complete': { completion: { values: ['a'] } }
  }
  const result = results[method] ?? {}
  return era === 'legacy' ? result : { resultType: 'complete', ttlMs: 1_000, cacheScope: 'private', ...result }
}

const isHandshake = (method: unknown): boolean => method === 'initialize' || method === 'server/discover'

/** @param message what came, decoded @param era as it answers; a hostile server is not always true to it */
export function hostileActs(chance: Random, message: unknown, era: HostileEra): Act[] {
  const { id, method, params } = message as { id?: unknown; method?: unknown; params?: Json }
  if (typeof method !== 'string' || id === undefined) return chance.chance(0.1) ? [unasked(chance, 1)] : []
  const wrongEra = era === 'legacy' ? method === 'server/discover' : method === 'initialize'
  const answer: Json = wrongEra
    ? { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } }
    : { jsonrpc: '2.0', id, result: goodResult(method, params ?? {}, era) }
  // Who fails at the handshake is left alone for a while, and then nothing else is tried.
  if (chance.chance(isHandshake(method) ? 0.95 : method.endsWith('/list') ? 0.8 : 0.4)) return [{ message: answer }]
  return deviation(chance, answer, id)
}

function deviation(chance: Random, answer: Json, id: unknown): Act[] {
  const good: Act = { message: answer }
  const result = answer['result'] as Json | undefined
  return chance.pick<() => Act[]>([
    () => [{ message: mutated(chance, answer) }],
    () => [{ message: mutated(chance, answer) }, good],
    () => [good, good, { message: mutated(chance, answer) }],
    () => [{ message: { ...answer, id: chance.pick([0, 1, 2, 'x', null, -1, 1e300]) } }, good],
    () => [{ message: { jsonrpc: '2.0', id, error: mutated(chance, { code: -32000, message: 'no', data: {} }) } }],
    () => [...Array.from({ length: chance.below(60) }, (_, n) => unasked(chance, n)), good],
    () => [{ bytes: brokenText(chance, JSON.stringify(answer), maxFloodBytes) }, good],
    () => [{ bytes: brokenText(chance, JSON.stringify(answer), maxFloodBytes) }],
    () => [
      { message: { ...answer, result: { ...result, nextCursor: chance.pick(['again', '', 0, 'x'.repeat(9_000)]) } } }
    ],
    () => [{ message: { ...answer, result: { ...result, ...inputRequired(chance) } } }],
    () => [{ message: { ...answer, result: { ...result, tools: manyTools(chance) } } }],
    () => ['cut'],
    () => [unasked(chance, 0), 'cut'],
    () => ['end'],
    () => []
  ])()
}

/** A request or a notification of the server. */
function unasked(chance: Random, n: number): Act {
  const method = chance.pick([
    'sampling/createMessage',
    'elicitation/create',
    'roots/list',
    'ping',
    'notifications/tools/list_changed',
    'notifications/resources/list_changed',
    'notifications/resources/updated',
    'notifications/progress',
    'notifications/message',
    'notifications/cancelled',
    'notifications/tasks/status',
    'notifications/subscriptions/acknowledged',
    'notifications/elicitation/complete',
    'unknown/method'
  ])
  const params = {
    progressToken: chance.pick([0, 1, 'x']),
    progress: n,
    level: 'error',
    data: 'hello',
    uri: 'test://one',
    requestId: chance.below(4),
    messages: [],
    maxTokens: 1,
    message: 'may I?',
    requestedSchema: { type: 'object', properties: {} },
    taskId: 'task',
    status: 'working'
  }
  const isNotification = method.startsWith('notifications/') && chance.chance(0.95)
  const message = { jsonrpc: '2.0', ...(isNotification ? {} : { id: `s${n}` }), method, params }
  return { message: chance.chance(0.3) ? mutated(chance, message) : message }
}

function inputRequired(chance: Random): Json {
  const request = {
    method: chance.pick(['elicitation/create', 'roots/list', 'sampling/createMessage', 'x']),
    params: {}
  }
  const inputRequests: Json = { one: request, two: chance.chance(0.5) ? mutated(chance, request) : request }
  return {
    resultType: chance.pick(['input_required', 'task', 'other', 7]),
    inputRequests: chance.chance(0.2) ? anyValue(chance) : inputRequests,
    requestState: chance.pick(['state', '', 'x'.repeat(9_000), 7]),
    taskId: 'task',
    status: chance.pick(['working', 'completed', 'other'])
  }
}

const manyTools = (chance: Random): unknown[] =>
  Array.from({ length: chance.below(3_000) }, (_, n) =>
    chance.chance(0.02) ? anyValue(chance) : { name: `t${n}`, inputSchema: { type: 'object' } }
  )
