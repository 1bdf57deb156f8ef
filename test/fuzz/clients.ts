// Structured requests of clients of both eras and all transports: mostly what the protocol allows, one part changed in
// some, a few broken as text or as HTTP. Whatever is answered is read, and what comes back is told.

import type { OutgoingHttpHeaders } from 'node:http'
import { legacyRevisions } from '../../src/protocol/messages.ts'
import { jsonHeaders, send, type Answer } from '../kit/client.ts'
import { openSse, sseUrl } from '../kit/http-sse-client.ts'
import { modernMessage } from '../kit/modern-client.ts'
import { dial, untilClosed } from '../kit/raw-http.ts'
import { brokenText, mutated, type Random } from './random.ts'

type Json = Record<string, unknown>

export const clientKinds = ['streamable', 'sse', 'modern'] as const
export type ClientKind = (typeof clientKinds)[number]

/** What came back for a request that the protocol allows: how many results, and faults of the gateway itself. */
export interface Outcome {
  results: number
  readonly faults: string[]
}

/** Where, and as whom. */
export interface Target {
  readonly url: string
  readonly key: string
}

const maxFloodBytes = 262_144
/** Hostile upstreams are often silent: nobody waits longer. */
const patienceMs = 1_500

function anyCall(chance: Random): [method: string, params: Json] {
  const name = chance.pick(['echo', 'ask', 'long', 'odd', 't1', 'none'])
  const uri = chance.pick(['test://one', 'test://two', 'x', 'other://'])
  const task = { taskId: chance.pick(['task', 'x']) }
  return chance.pick<[string, Json]>([
    ['tools/call', { name, arguments: { text: 'hello' } }],
    ['tools/call', { name, arguments: {}, _meta: { progressToken: chance.pick([1, 'p']) } }],
    ['tools/call', { name, arguments: {}, task: { ttl: 1_000 } }],
    ['tools/list', {}],
    ['tools/list', { cursor: chance.pick(['', 'x', 'again']) }],
    ['prompts/list', {}],
    ['prompts/get', { name: 'greet', arguments: {} }],
    ['resources/list', {}],
    ['resources/templates/list', {}],
    ['resources/read', { uri }],
    ['resources/subscribe', { uri }],
    ['resources/unsubscribe', { uri }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'a', value: 'b' } }],
    ['logging/setLevel', { level: 'debug' }],
    ['ping', {}],
    ['tasks/get', task],
    ['tasks/result', task],
    ['tasks/cancel', task],
    ['tasks/list', {}],
    ['server/discover', {}],
    ['subscriptions/listen', { notifications: { toolsListChanged: true, resourceSubscriptions: [uri] } }],
    ['notifications/cancelled', { requestId: 1 }],
    ['notifications/roots/list_changed', {}]
  ])
}

const capabilities = (chance: Random): Json =>
  chance.pick<Json>([{}, { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true }, tasks: {} }])

function textOf(chance: Random, message: Json): string | Buffer {
  const roll = chance.below(10)
  if (roll === 0) return brokenText(chance, JSON.stringify(message), maxFloodBytes)
  return JSON.stringify(roll < 4 ? mutated(chance, message) : message)
}

/** One POST; a connection that breaks or is given up is an answer like any other. */
async function post(url: string, headers: OutgoingHttpHeaders, body: string | Buffer): Promise<Answer | undefined> {
  return await send(url, { headers, body, signal: AbortSignal.timeout(patienceMs) }).catch(() => undefined)
}

function note(outcome: Outcome, messages: readonly unknown[]): void {
  for (const message of messages) {
    const { result, error } = (message ?? {}) as { result?: unknown; error?: { message?: string; data?: Json } }
    if (result !== undefined) outcome.results++
    if (error?.data?.['reason'] === 'internal') outcome.faults.push(JSON.stringify(message))
  }
}

/** Answers to what the server asked, right and wrong ones. */
const answersTo = (chance: Random, messages: readonly unknown[]): Json[] =>
  messages.flatMap((message) => {
    const { id, method } = (message ?? {}) as Json
    if (id === undefined || method === undefined) return []
    return [{ jsonrpc: '2.0', id, result: { action: chance.pick(['accept', 'cancel']), content: {}, roots: [] } }]
  })

async function legacyConversation(chance: Random, { url, key }: Target, outcome: Outcome): Promise<void> {
  const auth = { ...jsonHeaders, authorization: `Bearer ${key}` }
  const params = {
    protocolVersion: chance.pick(legacyRevisions),
    capabilities: capabilities(chance),
    clientInfo: { name: 'fuzz', version: '1' }
  }
  const hello = { jsonrpc: '2.0', id: 0, method: 'initialize', params }
  const first = await post(url, auth, chance.chance(0.9) ? JSON.stringify(hello) : textOf(chance, hello))
  const headers = { ...auth, 'mcp-session-id': first?.headers['mcp-session-id'] ?? 'none' }
  if (chance.chance(0.9)) await post(url, headers, '{"jsonrpc":"2.0","method":"notifications/initialized"}')
  const listening = chance.chance(0.3)
    ? send(url, { method: 'GET', headers, signal: AbortSignal.timeout(patienceMs / 2) }).catch(() => undefined)
    : undefined
  for (let id = 1; id < 3 + chance.below(6); id++) {
    const [method, call] = anyCall(chance)
    const isNotification = method.startsWith('notifications/')
    const message = { jsonrpc: '2.0', ...(isNotification ? {} : { id }), method, params: call }
    const answer = await post(url, headers, textOf(chance, message))
    note(outcome, answer?.messages ?? [])
    for (const each of answersTo(chance, answer?.messages ?? [])) await post(url, headers, textOf(chance, each))
  }
  await listening
  if (chance.chance(0.7)) await send(url, { method: 'DELETE', headers }).catch(() => {})
}

async function modernConversation(chance: Random, { url, key }: Target, outcome: Outcome): Promise<void> {
  let more: Json = {}
  for (let id = 1; id < 3 + chance.below(6); id++) {
    const [method, call] = anyCall(chance)
    const { headers, body } = modernMessage(
      method,
      { ...call, ...more },
      { id, token: key, capabilities: capabilities(chance) }
    )
    const answer = await post(url, headers, textOf(chance, JSON.parse(body) as Json))
    note(outcome, answer?.messages ?? [])
    // Goes on where it was asked for input.
    const { requestState, inputRequests } = (answer?.json?.result ?? {}) as Json
    const asked = Object.keys((inputRequests ?? {}) as Json)
    const inputResponses = Object.fromEntries(asked.map((name) => [name, { action: 'accept', content: {} }]))
    more = requestState === undefined ? {} : { requestState, inputResponses }
  }
}

async function sseConversation(chance: Random, { url, key }: Target, outcome: Outcome): Promise<void> {
  const client = await openSse(sseUrl(url), key).catch(() => undefined)
  if (client === undefined) return
  const params = { protocolVersion: '2024-11-05', capabilities: capabilities(chance), clientInfo: { name: 'fuzz' } }
  const messages: Json[] = [
    { jsonrpc: '2.0', id: 0, method: 'initialize', params: { ...params, clientInfo: { name: 'fuzz', version: '1' } } },
    { jsonrpc: '2.0', method: 'notifications/initialized' }
  ]
  for (let id = 1; id < 3 + chance.below(4); id++) {
    const [method, call] = anyCall(chance)
    messages.push({ jsonrpc: '2.0', id, method, params: call })
  }
  for (const [n, message] of messages.entries()) {
    const body = n < 2 ? JSON.stringify(message) : textOf(chance, message)
    await post(client.messagesUrl, client.headers, body)
  }
  await Promise.race([client.ended, client.next('a result', ({ id }) => id === 0).catch(() => {})])
  for (const each of answersTo(chance, client.messages))
    await post(client.messagesUrl, client.headers, textOf(chance, each))
  note(outcome, client.messages)
  client.close()
}

/** Bytes that are hardly HTTP. */
export async function rawBytes(chance: Random, { url, key }: Target): Promise<void> {
  const { port, pathname, host } = new URL(url)
  const head =
    `${chance.pick(['POST', 'GET', 'DELETE', 'OPTIONS', 'PRI', 'post'])} ${chance.pick([pathname, '*', '/', url, '//'])} ` +
    `HTTP/1.${chance.below(3)}\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\n`
  const rest = chance.pick([
    'Content-Length: 5\r\n\r\n{}',
    'Transfer-Encoding: chunked\r\n\r\nff\r\n{}',
    'Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}',
    `X: ${'y'.repeat(40_000)}\r\n\r\n`,
    'Connection: close\r\n\r\n',
    '\r\n\0\0\0'
  ])
  const socket = dial(Number(port))
  socket.write(chance.chance(0.5) ? head + rest : brokenText(chance, head + rest, 4_096))
  await untilClosed(socket, patienceMs / 4).catch(() => {})
}

const conversations = { streamable: legacyConversation, sse: sseConversation, modern: modernConversation }

/** A conversation of one client with one endpoint, or part of it. Never rejects for what is answered. */
export const converse = (kind: ClientKind, chance: Random, target: Target, outcome: Outcome): Promise<void> =>
  conversations[kind](chance, target, outcome)
