// A server on the official SDK that keeps something for each of its sessions over HTTP: a value that its tools set and
// tell, and what the session has subscribed to. It counts what reached it.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import type { Teardown } from './until.ts'

interface Seen {
  readonly method: string
  readonly session: string | undefined
  readonly revision: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly message: any // eslint-disable-line typescript/no-explicit-any
}

export interface StatefulServer {
  readonly url: string
  /** What was asked of it: method of HTTP, its session, revision and, of a POST, the message. */
  readonly seen: readonly Seen[]
  /** How often it had a message with this method. */
  count(method: string): number
  /** Is the GET stream of the session open? */
  listening(session: string | undefined): boolean
  /** Does it know the session? */
  knows(session: string | undefined): boolean
  /** How often it was opened. */
  accepted(session: string | undefined): number
  /** The id of the session is answered with 404 from now on. */
  forget(session: string | undefined): void
}

const uri = 'state://value'
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

/** State of one session. */
function makeServer(): McpServer {
  const mcp = new McpServer(
    { name: 'stateful', version: '7' },
    { capabilities: { resources: { subscribe: true }, logging: {} }, instructions: 'It remembers.' }
  )
  const subscribed = new Set<string>()
  let value = 'nothing'
  mcp.registerTool('set', { inputSchema: { value: z.string() } }, (given) => text((value = given.value)))
  mcp.registerTool('get', {}, () => text(value))
  mcp.registerTool('touch', {}, async () => {
    if (subscribed.has(uri)) await mcp.server.sendResourceUpdated({ uri })
    return text([...subscribed].join())
  })
  // On the GET stream, as the SDK does where a tool does not say to which call its question belongs.
  mcp.registerTool('ask', {}, async () => {
    const requestedSchema = { type: 'object' as const, properties: { word: { type: 'string' as const } } }
    const { content } = await mcp.server.elicitInput({ message: 'A word?', requestedSchema })
    return text(String(content?.['word']))
  })
  mcp.registerResource('value', uri, {}, () => ({ contents: [{ uri, text: value }] }))
  mcp.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    subscribed.add(params.uri)
    return {}
  })
  mcp.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    subscribed.delete(params.uri)
    return {}
  })
  return mcp
}

/** @param beforeGet what the server waits for before it opens a GET stream */
export async function startStateful(t: Teardown, beforeGet = async (): Promise<void> => {}): Promise<StatefulServer> {
  const seen: Seen[] = []
  const transports = new Map<string, StreamableHTTPServerTransport>()
  const gets: Array<{ readonly session: string | undefined; readonly response: ServerResponse }> = []
  const acceptedOf = (of: string | undefined): ServerResponse[] =>
    gets
      .filter(({ session, response }) => session === of && response.headersSent && response.statusCode === 200)
      .map(({ response }) => response)

  async function open(): Promise<StreamableHTTPServerTransport> {
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void transports.set(id, transport),
      onsessionclosed: (id) => void transports.delete(id)
    })
    await makeServer().connect(transport)
    return transport
  }

  const http = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      void (async () => {
        const message = chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString())
        const { method = '', headers } = request
        const session = headers['mcp-session-id']?.toString()
        seen.push({ method, session, revision: headers['mcp-protocol-version']?.toString(), headers, message })
        const known = transports.get(session ?? '')
        const isNew = message?.method === 'initialize'
        if (known === undefined && !isNew) return response.writeHead(404).end()
        if (method === 'GET') {
          gets.push({ session, response })
          await beforeGet()
        }
        await (known ?? (await open())).handleRequest(request, response, message)
      })()
    })
  })
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(async () => {
    for (const transport of transports.values()) await transport.close()
    http.closeAllConnections()
    http.close()
  })
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    seen,
    count: (method) => seen.filter(({ message }) => message?.method === method).length,
    listening: (session) => acceptedOf(session).some(({ closed }) => !closed),
    knows: (session) => transports.has(session ?? ''),
    accepted: (session) => acceptedOf(session).length,
    forget: (session) => void transports.delete(session ?? '')
  }
}
