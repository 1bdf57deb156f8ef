// The reference server of 2026-07-28 as a process: `--transport http|stdio`. Over HTTP one line on standard output says
// `ready URL`, over stdio one on standard error says `ready`.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { parseArgs } from 'node:util'
import {
  localhostHostValidation,
  localhostOriginValidation,
  toNodeHandler,
  type NodeIncomingMessageLike
} from '@modelcontextprotocol/node'
import { classifyInboundRequest, createMcpHandler } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { createEverything, createShared, type Everything } from './everything.ts'
import { createTasks, type Outcome, type RpcRequest } from './tasks.ts'

const {
  values: { transport }
} = parseArgs({ options: { transport: { type: 'string', default: 'http' } } })
const tasks = createTasks()
const responseTo = ({ id }: RpcRequest, outcome: Outcome) => ({ jsonrpc: '2.0' as const, id, ...outcome })

if (transport === 'stdio') overStdio()
else await overHttp()

async function overHttp(): Promise<void> {
  const sdk = createMcpHandler(() => createEverything(shared).mcp, { legacy: 'reject' })
  const shared = createShared((kind) => (kind === 'tools' ? sdk.notify.toolsChanged() : sdk.notify.promptsChanged()))

  async function answer(request: Request): Promise<Response> {
    const body = request.method === 'POST' ? await jsonOf(request) : undefined
    // Whatever the SDK would refuse, it does.
    if (body !== undefined && acceptable(request, body)) {
      const outcome = tasks(body)
      if (outcome !== undefined)
        return Response.json(responseTo(body, outcome), {
          status: 'error' in outcome && outcome.error.code === -32021 ? 400 : 200
        })
    }
    return await sdk.fetch(request)
  }

  const handle = toNodeHandler({ fetch: answer })
  const rightHost = localhostHostValidation()
  const rightOrigin = localhostOriginValidation()
  const http = createServer((request, response) => {
    if (rightHost(request, response) && rightOrigin(request, response))
      void handle(request as NodeIncomingMessageLike, response)
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  process.stdout.write(`ready http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp\n`)
}

async function jsonOf(request: Request): Promise<RpcRequest | undefined> {
  try {
    return (await request.clone().json()) as RpcRequest
  } catch {
    return undefined // Not JSON: the SDK says so.
  }
}

/** Does the request fit its headers? The SDK classifies by all but the last two. */
function acceptable({ headers }: Request, body: RpcRequest): boolean {
  const header = (name: string): string | undefined => headers.get(name) ?? undefined
  const found = {
    protocolVersionHeader: header('mcp-protocol-version'),
    mcpMethodHeader: header('mcp-method'),
    mcpNameHeader: header('mcp-name')
  }
  const given = Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined))
  const name = body.params?.['taskId'] ?? body.params?.['name']
  return (
    classifyInboundRequest({ httpMethod: 'POST', body, ...given }).kind === 'modern' &&
    found.protocolVersionHeader !== undefined &&
    found.mcpMethodHeader === body.method &&
    found.mcpNameHeader === name
  )
}

function overStdio(): void {
  // What is about tasks does not get as far as the SDK.
  const rest = new PassThrough()
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    const message = JSON.parse(line) as RpcRequest
    const outcome = message.id === undefined ? undefined : tasks(message)
    if (outcome === undefined) rest.write(`${line}\n`)
    else process.stdout.write(`${JSON.stringify(responseTo(message, outcome))}\n`)
  })
  const servers = new Set<Everything>()
  const shared = createShared((kind) => {
    for (const server of servers) {
      if (!server.mcp.isConnected()) servers.delete(server)
      else if (kind === 'tools') server.follow()
      else server.mcp.sendPromptListChanged()
    }
  })
  serveStdio(
    () => {
      const server = createEverything(shared)
      servers.add(server)
      return server.mcp
    },
    { transport: new StdioServerTransport(rest), legacy: 'reject' }
  )
  process.stderr.write('ready\n')
  lines.once('close', () => process.exit(0))
}
