// The reference server over Streamable HTTP (`/mcp`) and over HTTP+SSE of 2024-11-05 (`/sse`, `/messages`), on loopback
// only.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server as HttpServer, type ServerResponse } from 'node:http'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { createEvents } from './events.ts'
import { createEverything } from './everything.ts'
import { createShared } from './shared.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** How soon a client whose stream was ended is told to come back. */
const retryMs = 50

export function streamableHttp(): HttpServer {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const shared = createShared()
  return guarded('/mcp', async (request, response) => {
    const sessionId = request.headers['mcp-session-id']
    if (typeof sessionId === 'string') {
      const transport = sessions.get(sessionId)
      if (transport === undefined) refuse(response, 404, 'no such session')
      else await transport.handleRequest(request, response)
      return
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, transport)
      },
      onsessionclosed: (id) => {
        sessions.delete(id)
      },
      eventStore: createEvents(),
      retryInterval: retryMs
    })
    await createEverything(shared).connect(transport)
    await transport.handleRequest(request, response)
  })
}

export function httpSse(): HttpServer {
  const sessions = new Map<string, SSEServerTransport>()
  const shared = createShared()
  return guarded('/', async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
    if (request.method === 'GET' && pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', response)
      sessions.set(transport.sessionId, transport)
      response.once('close', () => {
        sessions.delete(transport.sessionId)
      })
      await createEverything(shared).connect(transport)
    } else if (request.method === 'POST' && pathname === '/messages') {
      const transport = sessions.get(searchParams.get('sessionId') ?? '')
      if (transport === undefined) refuse(response, 404, 'no such session')
      else await transport.handlePostMessage(request, response)
    } else {
      refuse(response, pathname === '/sse' || pathname === '/messages' ? 405 : 404, 'nothing here')
    }
  })
}

/** Refuses what a browser was lured into sending (GHSA-w48q-cv73-mx4w), and paths that do not begin with this one. */
function guarded(path: string, handle: Handler): HttpServer {
  return createServer((request, response) => {
    const { host = '', origin } = request.headers
    if (!local(`http://${host}`) || (origin !== undefined && !local(origin)))
      return refuse(response, 403, 'this server answers to localhost only')
    if (request.url?.startsWith(path) !== true) return refuse(response, 404, 'nothing here')
    handle(request, response).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`)
      if (!response.headersSent) refuse(response, 500, 'internal error')
    })
  })
}

const local = (url: string): boolean =>
  URL.canParse(url) && ['localhost', '127.0.0.1', '[::1]'].includes(new URL(url).hostname)

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message } }))
}
