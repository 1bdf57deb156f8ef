// The scripted server over Streamable HTTP, on a real socket: sessions, JSON or SSE answers, the standalone stream,
// event ids, and whatever misbehaviour a test puts in front of it.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { randomUUID } from 'node:crypto'
import { createMcpServer, type Json, type McpServer, type Peer, type Script } from './mcp-server.ts'
import type { AddressInfo } from 'node:net'

export interface Seen {
  readonly method: string
  readonly headers: IncomingMessage['headers']
  readonly message: Json | undefined
}

export interface HttpUpstreamOptions extends Script {
  /** How requests are answered; JSON becomes SSE where something precedes the result. Default json. */
  readonly answers?: 'json' | 'sse'
  /** Issue and demand session ids. Default true. */
  readonly sessions?: boolean
  /** Has each session lists of its own, of whose changes it alone is told? Default false. */
  readonly ownLists?: boolean
  /** Offer the GET stream. Default true. */
  readonly stream?: boolean
  /**
   * What an unknown session is answered with; 404 as the specification says, 400 as an early example of the SDK does.
   */
  readonly unknownSession?: 404 | 400
}

export interface HttpUpstream {
  readonly url: string
  readonly server: McpServer
  readonly seen: Seen[]
  readonly sessions: Set<string>
  /** Puts an answer in front of the next requests that match. */
  override(match: (seen: Seen) => boolean, answer: (response: ServerResponse, seen: Seen) => void, times?: number): void
  /** Sends on every open GET stream. */
  broadcast(message: Json): void
  /** Open GET streams. */
  streams(): number
  /** Connections that were opened so far. */
  connections(): number
  /** Does every session have its GET stream, so that a broadcast reaches them all? */
  allListening(): boolean
  /** Cuts all sockets. */
  cut(): void
  close(): Promise<void>
}

export const isCall =
  (tool: string) =>
  ({ message }: Seen): boolean =>
    message?.['method'] === 'tools/call' && (message['params'] as Json)['name'] === tool
export const isMethod =
  (method: string) =>
  ({ message }: Seen): boolean =>
    message?.['method'] === method

export async function startUpstream(options: HttpUpstreamOptions = {}): Promise<HttpUpstream> {
  const server = createMcpServer(options)
  const sessions = new Set<string>()
  const ofSessions = new Map<string, McpServer>()
  const seen: Seen[] = []
  const streams = new Map<ServerResponse, unknown>()
  const overrides: Array<{
    match: (seen: Seen) => boolean
    answer: (response: ServerResponse, seen: Seen) => void
    left: number
  }> = []
  const broadcast = (message: Json): void => push(message, [...streams.keys()])
  const push = (message: Json, to: ServerResponse[]): void => {
    for (const stream of to) stream.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
  }

  function post(message: Json, response: ServerResponse, session: unknown): void {
    const isRequest = message['id'] !== undefined && message['method'] !== undefined
    if (message['method'] === 'initialize' && options.sessions !== false) {
      const id = randomUUID()
      sessions.add(id)
      response.setHeader('Mcp-Session-Id', id)
      if (options.ownLists === true) ofSessions.set(id, createMcpServer(options))
    }
    let streaming = options.answers === 'sse'
    const peer: Peer = {
      reply(reply) {
        const final = reply['method'] === undefined
        if (!streaming && final && !response.headersSent) {
          response.setHeader('Content-Type', 'application/json').end(JSON.stringify(reply))
          return
        }
        streaming = true
        if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'text/event-stream' })
        response.write(`data: ${JSON.stringify(reply)}\n\n`)
        if (final) response.end()
      },
      // A server request is for the session of the call; what changed concerns all.
      push: (outgoing) =>
        push(
          outgoing,
          [...streams]
            .filter(([, its]) => (outgoing['id'] === undefined && options.ownLists !== true) || its === session)
            .map(([stream]) => stream)
        ),
      exit: () => {
        response.socket?.destroy()
      },
      raw: () => {}
    }
    if (!isRequest) response.writeHead(202).end()
    const own = ofSessions.get(String(session)) ?? server
    own.receive(message, peer)
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
    const sessionId = request.headers['mcp-session-id']
    if (options.sessions !== false && message?.['method'] !== 'initialize' && !sessions.has(String(sessionId))) {
      const status = sessionId === undefined ? 400 : (options.unknownSession ?? 404)
      response.writeHead(status, { 'Content-Type': 'application/json' })
      response.end(
        JSON.stringify({
          jsonrpc: '2.0',
          error: { code: -32000, message: 'no valid session' },
          id: message?.['id'] ?? null
        })
      )
      return
    }
    if (request.method === 'POST' && message !== undefined) return post(message, response, sessionId)
    if (request.method === 'DELETE') {
      sessions.delete(String(sessionId))
      response.writeHead(204).end()
      return
    }
    if (request.method === 'GET' && options.stream !== false) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.flushHeaders()
      streams.set(response, sessionId)
      response.on('close', () => streams.delete(response))
      return
    }
    response.writeHead(405, { Allow: 'POST' }).end()
  }

  const http = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => handle(request, response, Buffer.concat(chunks.splice(0)).toString()))
  })
  // A server that stands still for seconds, on a busy machine, would close idle sockets with requests that it did not
  // read yet. These are lost, because nothing is sent twice.
  http.keepAliveTimeout = 0
  let connections = 0
  http.on('connection', () => connections++)
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    server,
    seen,
    sessions,
    broadcast,
    override: (match, answer, times = 1) => {
      overrides.push({ match, answer, left: times })
    },
    streams: () => streams.size,
    connections: () => connections,
    allListening: () => sessions.size > 0 && new Set<unknown>(streams.values()).isSupersetOf(sessions),
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
