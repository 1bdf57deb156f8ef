// The scripted server over HTTP+SSE of 2024-11-05, on a real socket: a session is a stream, messages come where its
// first event says.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { randomUUID } from 'node:crypto'
import { createMcpServer, type Json, type McpServer, type Peer, type Script } from './mcp-server.ts'
import type { AddressInfo } from 'node:net'
import type { HttpUpstream, Seen } from './upstream.ts'

export interface SseUpstreamOptions extends Script {
  /** The data of the first event. Default: a relative address with the session's id in its query. */
  readonly endpoint?: (sessionId: string, origin: string) => string
  /** What an unknown session is answered with. Default 404. */
  readonly unknownSession?: 400 | 404
  /**
   * Requests are answered 202 only when their result is there, as servers do that work before they answer; or never.
   */
  readonly accepts?: 'at once' | 'late' | 'never'
}

export interface SseUpstream extends HttpUpstream {
  /** Writes to every stream as it is. */
  write(text: string): void
  /** Forgets all sessions, without closing their streams. */
  forget(): void
}

export async function startSseUpstream(options: SseUpstreamOptions = {}): Promise<SseUpstream> {
  const server: McpServer = createMcpServer(options)
  const seen: Seen[] = []
  const streams = new Map<string, ServerResponse>()
  const all = new Set<ServerResponse>()
  const overrides: Array<{
    match: (seen: Seen) => boolean
    answer: (response: ServerResponse, seen: Seen) => void
    left: number
  }> = []
  const write = (text: string): void => {
    for (const stream of all) stream.write(text)
  }
  const eventOf = (message: Json): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`
  let origin = ''

  function open(response: ServerResponse): void {
    const id = randomUUID()
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write(`event: endpoint\ndata: ${options.endpoint?.(id, origin) ?? `/messages?session=${id}`}\n\n`)
    streams.set(id, response)
    all.add(response)
    response.on('close', () => {
      streams.delete(id)
      all.delete(response)
    })
  }

  function post(message: Json, stream: ServerResponse, response: ServerResponse): void {
    const isRequest = message['id'] !== undefined && message['method'] !== undefined
    const accept = (): void => {
      if (!response.headersSent) response.writeHead(202).end('Accepted')
    }
    const send = (outgoing: Json): void => {
      stream.write(eventOf(outgoing))
      if (options.accepts === 'late' && outgoing['id'] === message['id']) accept()
    }
    const peer: Peer = {
      reply: send,
      push: send,
      exit: () => {
        stream.socket?.destroy()
      },
      raw: (text) => {
        stream.write(text)
      }
    }
    if (!isRequest || (options.accepts ?? 'at once') === 'at once') accept()
    server.receive(message, peer)
  }

  function handle(request: IncomingMessage, response: ServerResponse, body: string): void {
    const message = body === '' ? undefined : (JSON.parse(body) as Json)
    const current: Seen = { method: request.method ?? '', headers: request.headers, message }
    seen.push(current)
    const override = overrides.find(({ match, left }) => left > 0 && match(current))
    if (override !== undefined) {
      override.left--
      return override.answer(response, current)
    }
    const { pathname, searchParams } = new URL(request.url ?? '', origin)
    if (request.method === 'GET' && pathname === '/sse') return open(response)
    if (request.method !== 'POST' || pathname !== '/messages' || message === undefined) {
      response.writeHead(pathname === '/sse' ? 405 : 404, { Allow: 'GET' }).end('nothing here')
      return
    }
    const stream = streams.get(searchParams.get('session') ?? '')
    if (stream === undefined) response.writeHead(options.unknownSession ?? 404).end('no such session')
    else post(message, stream, response)
  }

  const http = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => handle(request, response, Buffer.concat(chunks).toString()))
  })
  let connections = 0
  http.on('connection', () => connections++)
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  origin = `http://127.0.0.1:${(http.address() as AddressInfo).port}`
  return {
    url: `${origin}/sse`,
    server,
    seen,
    get sessions() {
      return new Set(streams.keys())
    },
    write,
    forget: () => streams.clear(),
    broadcast: (message) => write(eventOf(message)),
    override: (match, answer, times = 1) => {
      overrides.push({ match, answer, left: times })
    },
    streams: () => all.size,
    connections: () => connections,
    allListening: () => all.size > 0,
    cut: () => http.closeAllConnections(),
    async close() {
      const closed = new Promise((resolve) => {
        http.close(resolve)
      })
      http.closeAllConnections()
      await closed
    }
  }
}
