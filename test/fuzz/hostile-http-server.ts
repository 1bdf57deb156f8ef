// `node hostile-http-server.ts SEED`, with IPC: hostile servers over HTTP in a process of their own, told as `Ports`. Each
// answers with JSON, with a stream, or with what is no HTTP at all.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostileActs, type Act, type HostileEra } from './hostile.ts'
import { random, type Random } from './random.ts'

export type HttpKind = 'streamable' | 'sse' | 'modern'
export type Ports = Readonly<Record<HttpKind, number>>

const seed = Number(process.argv[2] ?? 0)
let received = 0

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const text = Buffer.concat(parts).toString()
  return text === '' ? {} : JSON.parse(text)
}

const eventOf = (message: unknown): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`

function write(response: ServerResponse, acts: readonly Act[]): void {
  for (const act of acts) {
    if (act === 'cut') response.socket?.destroy()
    else if (act === 'end') response.end()
    else if (!response.writableEnded) response.write('bytes' in act ? act.bytes : eventOf(act.message))
  }
}

/** Answers that are wrong as HTTP. */
function wrongHttp(chance: Random, response: ServerResponse): void {
  const raw = (text: string): void => {
    response.socket?.write(text)
    response.socket?.destroy()
  }
  chance.pick([
    () =>
      response.writeHead(chance.pick([204, 301, 400, 401, 403, 404, 405, 409, 429, 500, 503]), { location: '/' }).end(),
    () => response.writeHead(200, { 'content-type': chance.pick(['text/html', '', 'application/json; x']) }).end('<p>'),
    () => response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end('no gzip'),
    () => response.writeHead(200, { 'content-type': 'text/event-stream' }).end('id: x\nretry: 0\ndata: {}\n\n'),
    () => raw('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{}'),
    () => raw(`HTTP/1.1 200 OK\r\n${'X: y\r\n'.repeat(chance.below(5_000))}\r\n`),
    () => raw('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'),
    () => raw('not HTTP at all\r\n\r\n'),
    () => response.socket?.destroy()
  ])()
}

function streamable(era: HostileEra) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chance = random(seed, received++)
    const message = await bodyOf(request)
    if (request.method !== 'POST') {
      if (request.method !== 'GET' || era === 'modern' || chance.chance(0.5)) return void response.writeHead(405).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      return write(response, hostileActs(chance, { id: 1, method: 'tools/call' }, era))
    }
    const { id, method } = message as { id?: unknown; method?: unknown }
    if (method !== 'initialize' && method !== 'server/discover' && chance.chance(0.1))
      return wrongHttp(chance, response)
    const acts = hostileActs(chance, message, era)
    if (id === undefined || method === undefined) return void response.writeHead(202).end()
    const headers = method === 'initialize' ? { 'mcp-session-id': `s${received}` } : {}
    const [first] = acts
    if (acts.length === 1 && typeof first === 'object') {
      response.writeHead(200, { ...headers, 'content-type': 'application/json' })
      return void response.end('bytes' in first ? first.bytes : JSON.stringify(first.message))
    }
    response.writeHead(200, { ...headers, 'content-type': 'text/event-stream' })
    write(response, acts)
    if (chance.chance(0.7)) response.end()
  }
}

/** HTTP+SSE of 2024-11-05: what is said goes to the stream of the session. */
function httpSse() {
  const streams = new Map<string, ServerResponse>()
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const n = received++
    const chance = random(seed, n)
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`event: endpoint\ndata: /messages?n=${n}\n\n`)
      streams.set(`/messages?n=${n}`, response)
      response.once('close', () => streams.delete(`/messages?n=${n}`))
      return
    }
    const message = await bodyOf(request)
    const stream = streams.get(request.url ?? '')
    if (stream === undefined) return void response.writeHead(request.url?.startsWith('/sse') === true ? 405 : 404).end()
    if (chance.chance(0.05)) wrongHttp(chance, response)
    else response.writeHead(202).end()
    write(stream, hostileActs(chance, message, 'legacy'))
  }
}

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>): Promise<number> {
  const server = createServer((request, response) => {
    response.on('error', () => {})
    handle(request, response).catch(() => response.destroy())
  })
  server.on('clientError', (_error, socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const ports: Ports = {
  streamable: await listen(streamable('legacy')),
  sse: await listen(httpSse()),
  modern: await listen(streamable('modern'))
}
process.send?.(ports)
process.once('disconnect', () => process.exit(0))
