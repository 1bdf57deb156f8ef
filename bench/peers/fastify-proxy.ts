// Process of its own: a second reference. Fastify, which parses what a client sends and what the server answers, and
// writes both again, as any gateway does that looks into messages; still without authentication, sessions, names or a
// log. argv: the origin behind it.

import { createParser } from 'eventsource-parser'
import { fastify } from 'fastify'
import type { AddressInfo } from 'node:net'
import { Pool, type Dispatcher } from 'undici'

const [origin = ''] = process.argv.slice(2)
const pool = new Pool(origin, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
const server = fastify({ keepAliveTimeout: 120_000 })

/** Of one hop only, or made anew. */
const ownHeaders = new Set(['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding'])

server.all('*', async (request, reply) => {
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !ownHeaders.has(name)))
  const {
    statusCode,
    headers: answered,
    body
  } = await pool.request({
    path: request.url,
    method: request.method as Dispatcher.HttpMethod,
    headers,
    body: request.body === undefined ? null : JSON.stringify(request.body)
  })
  reply.code(statusCode)
  for (const [name, value] of Object.entries(answered)) if (!ownHeaders.has(name)) reply.header(name, value)
  if (answered['content-type'] === 'text/event-stream') {
    reply.hijack()
    reply.raw.writeHead(statusCode, reply.getHeaders() as Record<string, string>)
    const parser = createParser({
      onEvent: ({ data }) => reply.raw.write(`event: message\ndata: ${JSON.stringify(JSON.parse(data))}\n\n`)
    })
    body.setEncoding('utf8')
    body.on('data', (text: string) => parser.feed(text)).on('end', () => reply.raw.end())
    return reply
  }
  const text = await body.text()
  return reply.send(text === '' ? undefined : JSON.stringify(JSON.parse(text)))
})

process.once('disconnect', () => process.exit())
await server.listen({ port: 0, host: '127.0.0.1' })
process.send?.(`http://127.0.0.1:${(server.server.address() as AddressInfo).port}`)
