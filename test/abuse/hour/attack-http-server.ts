// `node attack-http-server.ts SEED`, with IPC: MCP servers over HTTP that attack, one for each path `/KIND`, and those
// of the attacks on memory, in a process of their own. It tells `HostileServers`, and is told of each slice whether it
// has attacks on memory.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setPriority } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { random, type Random } from '../../fuzz/random.ts'
import { memoryUpstreams } from '../memory-attacks.ts'
import { callFloods, listFloods, politeResult, pour } from './floods.ts'
import type { HttpKind } from './slices.ts'

export interface HostileServers {
  readonly origin: string
  readonly memory: Readonly<Record<string, unknown>>
}

type Json = Record<string, unknown>

interface Asked {
  readonly id: unknown
  readonly method: unknown
  readonly chance: Random
}

setPriority(10)
const seed = Number(process.argv[2] ?? 0)
let received = 0

const event = (text: string): string => `data: ${text}\n\n`
const stream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' })

async function forever(response: ServerResponse, everyMs: number, say: () => string): Promise<void> {
  for (; !response.destroyed; await wait(everyMs)) response.write(say())
}

const retryAfter = (chance: Random): string =>
  chance.pick(['1e300', '9'.repeat(400), '-1', 'Fri, 31 Dec 9999 23:59:59 GMT', '99999999999', 'x', '0'])

/** Attacks that only HTTP carries. @returns false: the request is answered rightly */
type HttpAttack = (response: ServerResponse, asked: Asked) => unknown

const httpAttacks: Readonly<Record<HttpKind, HttpAttack>> = {
  retryAfter(response, { chance, method }) {
    if (method !== 'tools/call' && chance.chance(0.7)) return false
    response.writeHead(chance.pick([429, 503]), { 'retry-after': retryAfter(chance) })
    return response.end()
  },
  neverEnds(response, { method, chance }) {
    if (method !== 'tools/call') return false
    if (chance.chance(0.3)) return true
    if (chance.chance(0.5)) return forever(stream(response), 10, () => chance.pick([': x\n', 'data: x\n', 'id: 1\n\n']))
    return forever(response.writeHead(200, { 'content-type': 'application/json' }), 20, () => ' ')
  },
  tinyChunks(response, { method, id }) {
    if (method !== 'tools/call') return false
    const text = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[],"x":"${'x'.repeat(40_000)}"}}`
    const chunks = Array.from(text, (char) => `1\r\n${char}\r\n`).join('')
    const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'
    return response.socket?.write(`${head}${chunks}0\r\n\r\n`)
  },
  /** 404: the session is unknown, also the one that was just made. */
  forgets: (response, { method, chance }) =>
    method !== 'initialize' && chance.chance(0.8) && response.writeHead(404).end(),
  refuses: (response, { chance }) =>
    chance.chance(0.6) &&
    response.writeHead(chance.pick([400, 401, 403, 405, 500, 502]), { location: '/x' }).end('<p>'),
  resets: (response, { chance, method }) =>
    (method === 'tools/call' || chance.chance(0.2)) && (response.socket?.resetAndDestroy() ?? true),
  headers(response, { chance, method }) {
    if (method !== 'tools/call') return false
    const flood = `x: ${'y'.repeat(chance.pick([1, 9_000]))}\r\n`.repeat(chance.pick([50, 5_000]))
    return response.socket?.end(`HTTP/1.1 200 OK\r\n${flood}${chance.chance(0.5) ? '\r\n' : ''}`)
  },
  /** What the answers to a pipeline would be. */
  extraAnswers(response, { method }) {
    if (method !== 'tools/call') return false
    return response.socket?.write(
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'.repeat(500)
    )
  },
  inputRequests(response, { id, method, chance }) {
    if (method !== 'tools/call') return false
    const one = { method: 'elicitation/create', params: { message: 'x'.repeat(chance.pick([1, 900])) } }
    const inputRequests = Object.fromEntries(
      Array.from({ length: chance.pick([3, 5_000]) }, (_, at) => [`i${at}`, one])
    )
    const requestState = 'x'.repeat(chance.pick([1, 8_000_000]))
    const result = { resultType: 'input_required', inputRequests, requestState }
    return response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  }
}

/** Of the stream that a session listens on. */
const said: readonly string[] = [
  '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}',
  '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"long://item/1"}}',
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}',
  '{"jsonrpc":"2.0","id":7,"method":"roots/list"}'
]

const attackOf: Readonly<Record<string, HttpAttack | undefined>> = httpAttacks

/** What goes on by itself does so only while its slice does. */
let slice = new AbortController()

async function bodyOf(request: IncomingMessage): Promise<Json> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return parts.length === 0 ? {} : (JSON.parse(Buffer.concat(parts).toString()) as Json)
}

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const kind = request.url?.slice(1) ?? ''
  const chance = random(seed, received++)
  const { id, method, params = {} } = (await bodyOf(request)) as { id?: unknown; method?: unknown; params?: Json }
  if (request.method === 'GET') {
    const { signal } = slice
    stream(response).write(': here\n\n')
    for (; !response.destroyed && !signal.aborted; await wait(5))
      if (kind === 'changingLists' || kind === 'notifications')
        response.write(event(chance.pick(said)).repeat(chance.below(100)))
    return void response.end()
  }
  if (request.method !== 'POST') return void response.writeHead(405).end()
  if (id === undefined || method === undefined) return void response.writeHead(202).end()
  const isModern = kind === 'inputRequests'
  const attack = attackOf[kind]
  if (attack !== undefined && attack(response, { id, method, chance }) !== false) return
  const flood = method === 'tools/call' ? callFloods[kind] : method === 'tools/list' ? listFloods[kind] : undefined
  if (flood !== undefined) {
    const isStream = method === 'tools/call' || chance.chance(0.5)
    if (isStream) stream(response)
    else response.writeHead(200, { 'content-type': 'application/json' })
    await pour(response, flood({ id, chance, frame: isStream ? event : (text) => text }))
    return void response.end()
  }
  if (method === 'initialize' && !isModern) response.setHeader('mcp-session-id', `s${received}`)
  const discovered = {
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: { listChanged: true } },
    instructions: 'x'.repeat(90_000)
  }
  const result =
    isModern && method === 'server/discover'
      ? discovered
      : isModern && method === 'initialize'
        ? undefined
        : method === 'tools/call'
          ? { content: [] }
          : politeResult(method, params)
  const modern = isModern
    ? { resultType: 'complete', ttlMs: chance.pick([0, 1e300, 1_000]), cacheScope: 'private' }
    : {}
  const answer =
    result === undefined
      ? { error: { code: -32601, message: 'Method not found' } }
      : { result: { ...modern, ...result } }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
}

const server = createServer((request, response) => {
  response.on('error', () => {})
  handle(request, response).catch(() => response.destroy())
})
server.on('clientError', (_error, socket) => socket.destroy())
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { upstreams: memory, broadcast } = await memoryUpstreams({ teardown: () => {} })
const servers: HostileServers = { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, memory }
process.send?.(servers)

process.on('message', ({ onMemory }: { readonly onMemory: boolean }) => {
  slice.abort()
  slice = new AbortController()
  if (onMemory) void broadcast(slice.signal)
})
process.once('disconnect', () => process.exit(0))
