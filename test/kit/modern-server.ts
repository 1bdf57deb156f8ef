// The scripted server of 2026-07-28 (modern-script.ts, modern-tools.ts) over Streamable HTTP on a real socket, and over
// stdio as `node modern-server.ts [JSON]`, where the JSON is a `ModernScript`.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { createMcpServer, type Id, type Json, type McpServer } from './mcp-server.ts'
import { refuse, type ModernPeer } from './modern-peer.ts'
import { createModernServer, type ModernScript, type ModernServer } from './modern-script.ts'

export interface ModernSeen {
  readonly method: string
  readonly headers: IncomingHttpHeaders
  readonly message: Json | undefined
}

export interface ModernHttpOptions extends ModernScript {
  /** How requests are answered; JSON becomes SSE where something precedes the result. Default json. */
  readonly answers?: 'json' | 'sse'
  /** Are headers held against the body, Mcp-Param-* included? Default true. */
  readonly strict?: boolean
}

export interface ModernUpstream {
  readonly url: string
  readonly server: ModernServer
  /** What serves messages without an envelope, where the script says `legacy`, in one session that all share. */
  readonly legacy: McpServer | undefined
  /** Every HTTP request, whatever was answered. */
  readonly seen: ModernSeen[]
  /** Puts an answer in front of the next requests that match. */
  override(
    match: (seen: ModernSeen) => boolean,
    answer: (response: ServerResponse, seen: ModernSeen) => void,
    times?: number
  ): void
  /** Cuts all sockets. */
  cut(): void
  close(): Promise<void>
}

/** What an upstream over stdio is configured with. */
export const modernStdio = (script: ModernScript = {}) => ({
  type: 'stdio',
  command: process.execPath,
  args: [new URL(import.meta.url).pathname, JSON.stringify(script)]
})

const versionKey = 'io.modelcontextprotocol/protocolVersion'
const claims = (message: Json): boolean =>
  versionKey in (((message['params'] as Json | undefined)?.['_meta'] ?? {}) as Json)

export async function startModern(options: ModernHttpOptions = {}): Promise<ModernUpstream> {
  const server = createModernServer(options)
  const legacy =
    options.legacy === true ? createMcpServer(options.name === undefined ? {} : { name: options.name }) : undefined
  const seen: ModernSeen[] = []
  const overrides: Array<{
    match: (seen: ModernSeen) => boolean
    answer: (response: ServerResponse, seen: ModernSeen) => void
    left: number
  }> = []

  function peerOf(response: ServerResponse, id: Id | undefined): ModernPeer {
    let dropped = false
    if (id !== undefined)
      response.once('close', () => {
        if (!response.writableEnded && !dropped) server.cancel(id, peer)
      })
    const peer: ModernPeer = {
      reply(reply, status = 200) {
        if (response.destroyed) return
        const final = reply['method'] === undefined
        if (!response.headersSent && final && (options.answers !== 'sse' || status !== 200)) {
          response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(reply))
          return
        }
        if (!response.headersSent)
          response.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' })
        response.write(`data: ${JSON.stringify(reply)}\n\n`)
        if (final) response.end()
      },
      drop() {
        dropped = true
        response.socket?.destroy()
      }
    }
    return peer
  }

  function handle(current: ModernSeen, response: ServerResponse): void {
    const { method, headers, message } = current
    const override = overrides.find(({ match, left }) => left > 0 && match(current))
    if (override !== undefined) {
      override.left--
      return override.answer(response, current)
    }
    if (method !== 'POST' || message === undefined) return void response.writeHead(405, { Allow: 'POST' }).end()
    const peer = peerOf(response, message['id'] as Id | undefined)
    const id = message['id'] as Id | undefined
    if (id === undefined) response.writeHead(202).end()
    if (legacy !== undefined && !claims(message)) {
      if (message['method'] === 'initialize') response.setHeader('Mcp-Session-Id', 'everybody')
      return legacy.receive(message, {
        reply: (reply) => peer.reply(reply),
        push: () => {},
        exit: peer.drop,
        raw: () => {}
      })
    }
    const wrong =
      options.strict === false || id === undefined || !claims(message)
        ? undefined
        : headerFault(server, headers, message)
    if (wrong !== undefined) return refuse(id, peer, -32020, wrong)
    server.receive(message, peer, headers)
  }

  const http = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      const current = {
        method: request.method ?? '',
        headers: request.headers,
        message: body === '' ? undefined : (JSON.parse(body) as Json)
      }
      seen.push(current)
      handle(current, response)
    })
  })
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    server,
    legacy,
    seen,
    override: (match, answer, times = 1) => {
      overrides.push({ match, answer, left: times })
    },
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

/** The members of the body that `Mcp-Name` repeats. */
const named: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId'
}

const plain = (value: string | string[] | undefined): string | undefined => {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(String(value))?.[1]
  return encoded === undefined ? (value as string | undefined) : Buffer.from(encoded, 'base64').toString()
}

/** @returns a sentence about the first header that does not repeat the body */
function headerFault({ script }: ModernServer, headers: IncomingHttpHeaders, message: Json): string | undefined {
  const params = (message['params'] ?? {}) as Json
  const member = named[String(message['method'])]
  const must: Array<[header: string, value: unknown]> = [
    ['mcp-protocol-version', (params['_meta'] as Json)[versionKey]],
    ['mcp-method', message['method']],
    ...(member === undefined ? [] : [['mcp-name', params[member]] as [string, unknown]])
  ]
  const tool =
    message['method'] === 'tools/call'
      ? (script.tools as Json[]).find(({ name }) => name === params['name'])
      : undefined
  walk((tool?.['inputSchema'] ?? {}) as Json, (params['arguments'] ?? {}) as Json)
  return must.flatMap(([header, value]) => {
    const found = plain(headers[header])
    const expected = value === undefined || value === null ? undefined : String(value)
    return found === expected ? [] : [`${header} is ${String(found)} and should be ${String(expected)}`]
  })[0]

  function walk(schema: Json, value: Json): void {
    for (const [property, part] of Object.entries((schema['properties'] ?? {}) as Record<string, Json>)) {
      const header = part['x-mcp-header']
      if (typeof header === 'string' && part['type'] !== 'number')
        must.push([`mcp-param-${header.toLowerCase()}`, value[property]])
      if (part['properties'] !== undefined) walk(part, (value[property] ?? {}) as Json)
    }
  }
}

if (import.meta.main) {
  const script = JSON.parse(process.argv[2] ?? '{}') as ModernScript
  const server = createModernServer(script)
  const legacy = script.legacy === true ? createMcpServer() : undefined
  const write = (message: Json): void => {
    process.stdout.write(`${JSON.stringify(message)}\n`)
  }
  const exit = (): void => process.exit(7)
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line) as Json
    // A cancellation names an id and has no envelope: it is of whichever era the request was.
    if (message['method'] === 'notifications/cancelled') server.receive(message, { reply: write, drop: exit })
    if (legacy !== undefined && !claims(message))
      legacy.receive(message, {
        reply: write,
        push: write,
        exit: (code) => process.exit(code),
        raw: (text) => {
          process.stdout.write(text)
        }
      })
    else if (message['method'] !== 'notifications/cancelled') server.receive(message, { reply: write, drop: exit })
  })
}

/** A modern server over HTTP at `default`, one over stdio at `pipe`, both at `all`. */
export const modernWays = (url: string) => ({
  upstreams: { up: { type: 'http', url, era: 'modern' }, pipe: { ...modernStdio(), era: 'modern' } },
  endpoints: {
    default: { upstreams: ['up'], prefix: '' },
    pipe: { upstreams: ['pipe'], prefix: '' },
    all: { upstreams: ['up', 'pipe'] }
  }
})
