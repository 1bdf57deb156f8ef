// Process of its own: the least that a proxy in Node can be, to measure the gateway against. Heads and bodies go
// through as they are. argv: the origin behind it, and how: `pipe`, as most proxies are written, or `stream`, where
// undici writes the answer straight into the response, the cheapest way there is.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'

const [origin = '', how] = process.argv.slice(2)
const pool = new Pool(origin, { pipelining: 1 })

const optionsOf = (request: IncomingMessage) => ({
  path: request.url ?? '/',
  method: request.method ?? 'GET',
  headers: request.rawHeaders,
  body: request.method === 'POST' ? request : null
})

async function stream(request: IncomingMessage, response: ServerResponse): Promise<void> {
  await pool.stream(optionsOf(request), ({ statusCode, headers }) => response.writeHead(statusCode, headers))
}

async function pipe(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { statusCode, headers, body } = await pool.request(optionsOf(request))
  body.pipe(response.writeHead(statusCode, headers))
}

const pass = how === 'pipe' ? pipe : stream
const server = createServer((request, response) => {
  pass(request, response).catch(() => response.destroy())
})

server.keepAliveTimeout = 120_000
process.once('disconnect', () => process.exit())
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
