// Process of its own: a small MCP server over Streamable HTTP. It does the handshake, insists on its session, and
// answers one tool, as JSON at /json and as a stream of one event at /sse. Nothing else, so that what is measured is
// not it.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { toolResult } from './messages.ts'

interface Message {
  readonly id?: number | string
  readonly method?: string
  readonly params?: Record<string, unknown>
}

const sessions = new Set<string>()
const serverInfo = { name: 'bench-upstream', version: '1.0.0' }
const tools = [
  {
    name: 'echo',
    description: 'Answers with what it was given.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } } }
  }
]

const server = createServer((request, response) => {
  if (request.method !== 'POST') return response.writeHead(request.method === 'DELETE' ? 204 : 405).end()
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => {
    text += chunk
  })
  request.on('end', () => answer(request, response, JSON.parse(text) as Message))
})

function answer(request: IncomingMessage, response: ServerResponse, { id, method, params }: Message): void {
  if (method === 'initialize') {
    const session = randomUUID()
    sessions.add(session)
    response.setHeader('mcp-session-id', session)
    return reply(request, response, id, { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo })
  }
  if (!sessions.has(String(request.headers['mcp-session-id']))) return void response.writeHead(404).end()
  if (id === undefined) return void response.writeHead(202).end()
  if (method === 'tools/list') return reply(request, response, id, { tools })
  reply(request, response, id, toolResult(params))
}

function reply(request: IncomingMessage, response: ServerResponse, id: Message['id'], result: unknown): void {
  const text = JSON.stringify({ jsonrpc: '2.0', id, result })
  if (request.url === '/sse') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`event: message\ndata: ${text}\n\n`)
  } else {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    response.end(text)
  }
}

// Longer than a round lasts: a socket that closes while somebody writes to it would fail the round.
server.keepAliveTimeout = 120_000
process.once('disconnect', () => process.exit())
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
