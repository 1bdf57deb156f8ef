// What carries the strict servers of the revisions with handshake: Streamable HTTP, HTTP+SSE, and a real child process
// that does nothing but hand its standard input and output to this process, so that all servers see and are seen here.

import { randomUUID } from 'node:crypto'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSocketServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { Json } from '../kit/mcp-server.ts'
import { createLegacySession, type LegacySession } from './legacy-session.ts'
import type { MatrixServer } from './matrix-server.ts'

export interface RunningServer {
  /** What an upstream is configured with. */
  readonly config: Json
  close(): Promise<void>
}

const event = (message: Json): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`

async function onLoopback(server: Server): Promise<{ port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve())
      })
      for (const socket of sockets) socket.destroy()
      await closed
    }
  }
}

/** A process that is nothing but a pipe to a socket of ours; one per connection of the gateway. */
export async function overStdio(
  serve: (write: (message: Json) => void, socket: Socket) => { receive(message: Json): void; end(): void }
): Promise<RunningServer> {
  // Without delay: a pipe does not wait for more, either.
  const { port, close } = await onLoopback(
    createSocketServer({ noDelay: true }, (socket) => {
      const served = serve((message) => {
        if (socket.writable) socket.write(`${JSON.stringify(message)}\n`)
      }, socket)
      createInterface({ input: socket }).on('line', (line) => served.receive(JSON.parse(line) as Json))
      socket.on('error', () => {}) // The process was ended.
      socket.once('close', () => served.end())
    })
  )
  const pipe = `const s=require('node:net').connect({port:${port},host:'127.0.0.1',noDelay:true});process.stdin.pipe(s);s.pipe(process.stdout)`
  return { config: { type: 'stdio', command: process.execPath, args: ['-e', pipe] }, close }
}

export function legacyOverStdio(state: MatrixServer): Promise<RunningServer> {
  return overStdio((write) => {
    const session = createLegacySession(state, write)
    return { receive: (message) => session.receive(message, write), end: () => session.end() }
  })
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

/** @param serve gets the message of a POST, or undefined */
async function overHttp(
  path: string,
  serve: (request: IncomingMessage, response: ServerResponse, message: Json | undefined) => void,
  state: MatrixServer
): Promise<RunningServer> {
  const http = createHttpServer((request, response) => {
    bodyOf(request)
      .then((body) => {
        const message = body === '' ? undefined : (JSON.parse(body) as Json)
        if (Array.isArray(message)) state.report('a batch')
        // Headers of 2026-07-28 tell proxies that there is no session; only its probe has them.
        if (
          message?.['method'] !== 'server/discover' &&
          (request.headers['mcp-method'] ?? request.headers['mcp-name']) !== undefined
        )
          state.report('headers of 2026-07-28')
        serve(request, response, message)
      })
      .catch((error: unknown) => state.report(`the server failed: ${String(error)}`))
  })
  const { port, close } = await onLoopback(http)
  return { config: { type: 'http', url: `http://127.0.0.1:${port}${path}` }, close }
}

export function legacyOverHttp(state: MatrixServer): Promise<RunningServer> {
  const sessions = new Map<string, { session: LegacySession; listening: Set<ServerResponse> }>()
  const refuse = (response: ServerResponse, status: number): void => void response.writeHead(status).end()

  return overHttp(
    '/mcp',
    (request, response, message) => {
      const id = String(request.headers['mcp-session-id'])
      if (message?.['method'] === 'server/discover') return refuse(response, 400)
      const greeting = message?.['method'] === 'initialize'
      if (greeting) {
        const listening = new Set<ServerResponse>()
        const made = randomUUID()
        sessions.set(made, {
          listening,
          session: createLegacySession(state, (out) => {
            for (const stream of listening) stream.write(event(out))
          })
        })
        response.setHeader('Mcp-Session-Id', made)
        if (request.headers['mcp-session-id'] !== undefined) state.report('initialize with a session')
      }
      const known = sessions.get(greeting ? String(response.getHeader('Mcp-Session-Id')) : id)
      if (known === undefined) return refuse(response, id === 'undefined' ? 400 : 404)
      const version = request.headers['mcp-protocol-version']
      const expected = greeting || state.revision < '2025-06-18' ? undefined : state.revision
      if (version !== expected)
        state.report(`${String(message?.['method'] ?? request.method)} with MCP-Protocol-Version ${String(version)}`)
      if (request.method === 'DELETE') {
        known.session.end()
        sessions.delete(id)
        return refuse(response, 204)
      }
      if (request.method === 'GET') {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders()
        known.listening.add(response)
        response.once('close', () => known.listening.delete(response))
        return
      }
      const accept = String(request.headers.accept)
      if (!accept.includes('application/json') || !accept.includes('text/event-stream'))
        state.report(`Accept: ${accept}`)
      if (message === undefined) return refuse(response, 400)
      if (message['id'] === undefined || message['method'] === undefined) refuse(response, 202)
      known.session.receive(message, (out) => {
        const last = out['method'] === undefined
        if (last && !response.headersSent)
          return void response.setHeader('Content-Type', 'application/json').end(JSON.stringify(out))
        if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'text/event-stream' })
        response.write(event(out))
        if (last) response.end()
      })
    },
    state
  )
}

export function legacyOverSse(state: MatrixServer): Promise<RunningServer> {
  const sessions = new Map<string, { session: LegacySession; stream: ServerResponse }>()

  return overHttp(
    '/sse',
    (request, response, message) => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
      if (request.method === 'GET' && pathname === '/sse') {
        const id = randomUUID()
        const session = createLegacySession(state, (out) => {
          response.write(event(out))
        })
        sessions.set(id, { session, stream: response })
        response
          .writeHead(200, { 'Content-Type': 'text/event-stream' })
          .write(`event: endpoint\ndata: /messages?session=${id}\n\n`)
        response.once('close', () => {
          session.end()
          sessions.delete(id)
        })
        return
      }
      const known = pathname === '/messages' ? sessions.get(searchParams.get('session') ?? '') : undefined
      if (request.method !== 'POST' || message === undefined || known === undefined)
        return void response.writeHead(pathname === '/sse' ? 405 : 404).end()
      if (request.headers['mcp-protocol-version'] !== undefined) state.report('MCP-Protocol-Version over HTTP+SSE')
      response.writeHead(202).end('Accepted')
      known.session.receive(message, (out) => {
        known.stream.write(event(out))
      })
    },
    state
  )
}
