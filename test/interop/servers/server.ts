// The server of the tour as a process: `node server.ts PACKAGE stdio|http|sse`, with the SDK that is installed as
// PACKAGE. Over HTTP, one line on standard output says `ready URL`.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type * as ServerModule from '@modelcontextprotocol/sdk/server/index.js'
import type * as OldSseModule from '@modelcontextprotocol/sdk/server/sse.js'
import type * as StdioModule from '@modelcontextprotocol/sdk/server/stdio.js'
import type * as HttpModule from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Types } from '../kit/sdks.ts'
import { createFixture } from './fixture.ts'

const [, , name = '@modelcontextprotocol/sdk', transport = 'stdio'] = process.argv
const load = async <Module>(path: string): Promise<Module> => (await import(`${name}/${path}.js`)) as Module

const { Server } = await load<typeof ServerModule>('server/index')
const types = await load<typeof Types>('types')

if (transport === 'stdio') await overStdio()
else if (transport === 'http') await listen('/mcp', await streamableHttp())
else await listen('/sse', await oldSse())

async function overStdio(): Promise<void> {
  const { StdioServerTransport } = await load<typeof StdioModule>('server/stdio')
  await createFixture(Server, types).connect(new StdioServerTransport())
  process.stdin.once('end', () => process.exit(0))
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

async function streamableHttp(): Promise<Handler> {
  const { StreamableHTTPServerTransport } = await load<typeof HttpModule>('server/streamableHttp')
  const sessions = new Map<string, HttpModule.StreamableHTTPServerTransport>()
  return async (request, response) => {
    const id = request.headers['mcp-session-id']
    let session = typeof id === 'string' ? sessions.get(id) : undefined
    if (session === undefined && id !== undefined) {
      response.writeHead(404).end()
      return
    }
    if (session === undefined) {
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (made_) => {
          sessions.set(made_, made)
        }
      })
      session = made
      await createFixture(Server, types).connect(session)
    }
    await session.handleRequest(request, response)
  }
}

async function oldSse(): Promise<Handler> {
  const { SSEServerTransport } = await load<typeof OldSseModule>('server/sse')
  const sessions = new Map<string, OldSseModule.SSEServerTransport>()
  return async (request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://localhost')
    if (request.method === 'GET') {
      const session = new SSEServerTransport('/messages', response)
      // 1.0.4 shows its id nowhere but in the address that it writes.
      const id = session.sessionId ?? (session as unknown as { _sessionId: string })._sessionId
      sessions.set(id, session)
      response.once('close', () => {
        sessions.delete(id)
      })
      await createFixture(Server, types).connect(session)
      return
    }
    const session = sessions.get(searchParams.get('sessionId') ?? '')
    if (session === undefined)
      response.writeHead(request.method === 'POST' && request.url?.startsWith('/messages') === true ? 404 : 405).end()
    else await session.handlePostMessage(request, response)
  }
}

async function listen(path: string, handle: Handler): Promise<void> {
  const http = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      process.stderr.write(`${String(error)}\n`)
      if (!response.headersSent) response.writeHead(500)
      response.end()
    })
  })
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  process.stdout.write(`ready http://127.0.0.1:${(http.address() as AddressInfo).port}${path}\n`)
}
