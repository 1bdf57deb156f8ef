// A server of both eras on the official SDK: over stdio as `node dual-era-server.ts [even]`, and over HTTP with
// sessions for the older era, as the SDK describes it for servers that had sessions before. It is written as servers of
// the older era are: it asks by server requests, which the SDK refuses in 2026-07-28, and, unless it is `even`, it
// registers a tool for clients that declared sampling at the handshake.

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type NodeIncomingMessageLike,
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
  toWebRequest
} from '@modelcontextprotocol/node'
import {
  type CallToolResult,
  acceptedContent,
  createMcpHandler,
  inputRequired,
  isLegacyRequest,
  McpServer
} from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

const text = (value: unknown): CallToolResult => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })
const question = {
  mode: 'form' as const,
  message: 'who?',
  requestedSchema: { type: 'object' as const, properties: { name: { type: 'string' as const } } }
}

function makeServer(even: boolean): McpServer {
  const mcp = new McpServer({ name: 'dual', version: '1' }, { capabilities: { tools: { listChanged: true } } })
  mcp.registerTool('plain', {}, () => text('plain'))
  mcp.registerTool('elicits', {}, async ({ mcpReq }) => text(await mcpReq.elicitInput(question)))
  // As servers of 2026-07-28 are written.
  mcp.registerTool('inquires', {}, ({ mcpReq }) => {
    const given = acceptedContent(mcpReq.inputResponses, 'name')
    return given === undefined
      ? inputRequired({ inputRequests: { name: inputRequired.elicit(question) } })
      : text(given)
  })
  mcp.server.oninitialized = () => {
    if (even || mcp.server.getClientCapabilities()?.sampling === undefined) return
    mcp.registerTool('samples', {}, async ({ mcpReq }) =>
      text(
        await mcpReq.requestSampling({
          messages: [{ role: 'user', content: { type: 'text', text: 'hello' } }],
          maxTokens: 5
        })
      )
    )
  }
  return mcp
}

interface DualEraUpstream {
  readonly url: string
  /** What was asked of it: the method of HTTP, and that of the message. */
  readonly seen: string[]
  close(): Promise<void>
}

interface DualEraOptions {
  readonly even?: boolean
  /** Does its older era have sessions? If not, the SDK serves each request by itself. Default true. */
  readonly sessions?: boolean
  /** How it shows that it has an older era: it misses a session id, names the revision, or not at all. */
  readonly shows?: 'session' | 'revision' | 'nothing'
}

export async function startDualEra(options: DualEraOptions = {}): Promise<DualEraUpstream> {
  const { even = false, sessions = true, shows = 'session' } = options
  const seen: string[] = []
  const transports = new Map<string, NodeStreamableHTTPServerTransport>()
  const handler = createMcpHandler(() => makeServer(even), { legacy: sessions ? 'reject' : 'stateless' })
  const modern = toNodeHandler({
    async fetch(request: Request, given) {
      const response = await handler.fetch(request, given)
      if (shows !== 'revision' || request.headers.get('mcp-method') !== 'server/discover') return response
      const answer = (await response.json()) as { result: { supportedVersions: string[] } }
      answer.result.supportedVersions.push('2025-11-25')
      return Response.json(answer)
    }
  })

  async function openSession(): Promise<NodeStreamableHTTPServerTransport> {
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized(id) {
        transports.set(id, transport)
      }
    })
    await makeServer(even).connect(transport)
    return transport
  }

  const http = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      void (async () => {
        const body = chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString())
        const { method = '', headers } = request
        seen.push(`${method} ${body?.method ?? ''}`)
        const like = request as NodeIncomingMessageLike
        if (!sessions || !(await isLegacyRequest(await toWebRequest(like, body))))
          return await modern(like, response, body)
        const id = String(headers['mcp-session-id'])
        if (method === 'GET' && !transports.has(id) && shows !== 'session') return response.writeHead(405).end()
        const transport = transports.get(id) ?? (await openSession())
        await transport.handleRequest(request, response, body)
      })()
    })
  })
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    seen,
    async close() {
      await handler.close()
      for (const transport of transports.values()) await transport.close()
      http.closeAllConnections()
      await new Promise((resolve) => {
        http.close(resolve)
      })
    }
  }
}

if (import.meta.main) serveStdio(() => makeServer(process.argv[2] === 'even'))
