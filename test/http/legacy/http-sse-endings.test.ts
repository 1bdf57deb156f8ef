// How a stream of HTTP+SSE ends, and with it the session: nothing is left running for nobody.

import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { moveClock } from '../../kit/moving-clock.ts'
import { createMemoryAccount } from '../../../src/limits/memory.ts'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { send } from '../../kit/client.ts'
import { heldSocketTimeouts } from '../../kit/faster-sockets.ts'
import { dial } from '../../kit/raw-http.ts'
import { redis, sharedRedisUrl } from '../../kit/redis.ts'
import { httpSseClient, openSse, sseUrl, type HttpSseClient } from '../../kit/http-sse-client.ts'
import { until } from '../../kit/until.ts'
import { isMethod } from '../../kit/upstream.ts'

const ping = { jsonrpc: '2.0', id: 'p', method: 'ping' }
const slow = {
  jsonrpc: '2.0',
  id: 'slow',
  method: 'tools/call',
  params: { name: 'slow', _meta: { progressToken: 's' } }
}
const progress = ({ method }: { method?: string }): boolean => method === 'notifications/progress'

/** Callers are checked with the heartbeats: a stream that has had some more has passed a check. */
async function staysOpen(client: HttpSseClient): Promise<void> {
  const beats = (): number => client.text().split(': keep-alive\n\n').length
  const before = beats()
  await until('it stays, with its heartbeats', () => {
    if (client.closed) throw new Error('the stream ended')
    return beats() > before + 2
  })
}

t.test('a client that leaves takes its calls, its upstream connection and its session along', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const client = await httpSseClient(acme.url(), keyOf.ada)
  await client.post(slow)
  await client.next('the call to run', progress)
  t.equal(acme.upstream.sessions.size, 2)
  client.close()
  await until('the call is cancelled upstream', () =>
    acme.upstream.server.received.some(({ method }) => method === 'notifications/cancelled')
  )
  await until('its connection is let go of', () => acme.upstream.sessions.size === 1)
  const late = await client.post(ping)
  t.equal(late.status, 404)
  t.equal(late.json.error.data.reason, 'session_unknown')
})

t.test('nothing is sent after the token has expired, and the session ends with it', async (t) => {
  t.teardown(() => moveClock(0))
  const acme = await acmeGateway(t, { script: { answers: 'sse' }, overrides: { keepAliveMs: 50 } })
  const second = Math.floor(Date.now() / 1000)
  const client = await httpSseClient(acme.url(), await acme.bearer('JWT', 'ada', { exp: second + 600 }))
  await client.post(slow)
  await client.next('the call to run', progress)
  moveClock(540_000)
  await staysOpen(client)
  t.equal((await client.post(ping)).status, 202)
  await client.next('the answer, as it is not over before its time', ({ id }) => id === ping.id)
  // There is a leeway of 30 s.
  moveClock(631_000)
  await client.ended
  t.notOk(client.messages.some(({ id }) => id === 'slow'))
  t.equal((await client.post(ping)).status, 401)
  await until('the call is cancelled upstream', () =>
    acme.upstream.server.received.some(({ method }) => method === 'notifications/cancelled')
  )
})

t.test('a newer token of the same caller keeps the stream; it need not begin anew every few minutes', async (t) => {
  t.teardown(() => moveClock(0))
  const acme = await acmeGateway(t, { overrides: { keepAliveMs: 50 } })
  const second = Math.floor(Date.now() / 1000)
  const client = await httpSseClient(acme.url(), await acme.bearer('JWT', 'ada', { exp: second + 600 }))
  const authorization = `Bearer ${await acme.bearer('JWT', 'ada', { exp: second + 3_600 })}`
  t.equal((await client.post(ping, { authorization })).status, 202)
  moveClock(631_000)
  t.equal((await client.post(ping)).status, 401, 'it has')
  await staysOpen(client)
  t.equal((await client.post({ ...ping, id: 'after' }, { authorization })).status, 202)
  await client.next('the answer', ({ id }) => id === 'after')
  client.close()
})

t.test('a key that is taken away ends its stream at the next beat; that of others goes on', async (t) => {
  const acme = await acmeGateway(t, { overrides: { keepAliveMs: 50 } })
  const [ada, stranger, bob] = [
    await httpSseClient(acme.url(), keyOf.ada),
    await openSse(sseUrl(acme.url()), keyOf.ada),
    await httpSseClient(acme.url(), keyOf.bob)
  ]
  acme.reload({
    listen: { host: '127.0.0.1', port: 0 },
    store: 'memory:',
    tenants: {
      acme: {
        auth: { keys: [{ name: 'bob', key: keyOf.bob }] },
        upstreams: { up: { type: 'http', url: acme.upstream.url } },
        endpoints: { default: { upstreams: ['up'], prefix: '' } }
      }
    }
  })
  await Promise.all([ada.ended, stranger.ended])
  t.equal((await bob.post(ping)).status, 202)
  await bob.next('the answer', ({ id }) => id === 'p')
  bob.close()
})

t.test('a gateway that stops answers what runs, and ends each stream when its last answer is out', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' } })
  const [busy, idle, stranger] = [
    await httpSseClient(acme.url(), keyOf.ada),
    await httpSseClient(acme.url(), keyOf.ada),
    await openSse(sseUrl(acme.url()), keyOf.ada)
  ]
  await busy.post(slow)
  await busy.next('the call to run', progress)
  const closed = acme.close()
  await Promise.all([idle.ended, stranger.ended])
  t.notOk(busy.response.closed)
  acme.upstream.server.release()
  await Promise.all([busy.ended, closed])
  t.match(busy.messages.at(-1), { id: 'slow', result: { content: [{ text: 'slow is done' }] } })
})

t.test('what takes longer than the drain is told so', async (t) => {
  const acme = await acmeGateway(t, { script: { answers: 'sse' }, limits: { drainMs: 100 } })
  const busy = await httpSseClient(acme.url(), keyOf.ada)
  await busy.post(slow)
  await busy.next('the call to run', progress)
  await Promise.all([busy.ended, acme.close()])
  t.match(busy.messages.at(-1), { id: 'slow', error: { data: { reason: 'shutting_down', outcome: 'unknown' } } })
})

t.test('no record of a session that ended is left in the store', async (t) => {
  const options = { store: `file:${join(t.testdir(), 'gatehouse.db')}`, limits: { sessionsPerPrincipal: 2 } }
  const acme = await acmeGateway(t, options)
  const [client, stranger] = [await httpSseClient(acme.url(), keyOf.ada), await openSse(sseUrl(acme.url()), keyOf.ada)]
  await acme.close()
  await Promise.all([client.ended, stranger.ended])
  const next = await acmeGateway(t, options)
  const both = [await httpSseClient(next.url(), keyOf.ada), await httpSseClient(next.url(), keyOf.ada)]
  t.equal(both.length, 2, 'they count for nothing any more')
  for (const open of both) open.close()
})

t.test('another process on the same store sends a POST on to the one that holds the stream', async (t) => {
  const store = sharedRedisUrl() ?? (await redis(t)).url
  const [acme, other] = await Promise.all([acmeGateway(t, { store }), acmeGateway(t, { store })])
  const client = await httpSseClient(acme.url(), keyOf.ada)
  const elsewhere = await send(client.messagesUrl.replace(acme.publicUrl, other.publicUrl), {
    headers: client.headers,
    body: JSON.stringify(ping)
  })
  t.equal(elsewhere.status, 202)
  await client.next('its answer', ({ id }) => id === ping.id)
  const invented = client.messagesUrl.replace(acme.publicUrl, other.publicUrl).replace(/.{43}$/, 'A'.repeat(43))
  t.equal((await send(invented, { headers: client.headers, body: JSON.stringify(ping) })).status, 404)
  client.close()
})

t.test('an initialize that came to another process is counted while it waits for lists of upstreams', async (t) => {
  const store = sharedRedisUrl() ?? (await redis(t)).url
  const memory = createMemoryAccount(1024 * 1024 * 1024)
  const [acme, other] = await Promise.all([acmeGateway(t, { store, overrides: { memory } }), acmeGateway(t, { store })])
  const held: ServerResponse[] = []
  acme.upstream.override(isMethod('initialize'), (response) => void held.push(response), Infinity)
  const client = await openSse(sseUrl(acme.url()), keyOf.ada)
  const atRest = memory.held
  const text = 'x'.repeat(1_000_000)
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'a', version: '1' }, text }
  const { status } = await send(client.messagesUrl.replace(acme.publicUrl, other.publicUrl), {
    headers: client.headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  })
  t.equal(status, 202)
  await until('the server is asked', () => held.length > 0)
  t.ok(memory.held - atRest >= text.length, `${memory.held - atRest} bytes are counted`)
  acme.upstream.override(isMethod('initialize'), (response) => response.writeHead(503).end(), Infinity)
  for (const response of held) response.writeHead(503).end()
  await client.next('the answer', ({ id }) => id === 1)
  await until('all of it is given back', () => memory.held - atRest < text.length / 2)
  client.close()
})

t.test('a client that does not read is cut off; what it cost is bounded, and others do not notice', async (t) => {
  // On a busy machine it takes long until so much waits that more is refused.
  const timeouts = heldSocketTimeouts(t, 15_000)
  const acme = await acmeGateway(t)
  const neighbour = await httpSseClient(acme.url(), keyOf.ada)
  const socket = dial(acme.port)
  socket.write(
    `GET /t/acme/sse HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nAccept: text/event-stream\r\n\r\n`
  )
  let text = ''
  const read = (part: Buffer): void => {
    text += part.toString()
  }
  socket.on('data', read)
  const path = await until('the endpoint event', () => /data: (\S+)\n/.exec(text)?.[1])
  const post = (body: unknown): Promise<{ status: number }> =>
    send(acme.publicUrl + path, { headers: neighbour.headers, body: JSON.stringify(body) })
  await post({
    jsonrpc: '2.0',
    id: 'init',
    method: 'initialize',
    params: { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'deaf', version: '1' } }
  })
  await until('it is initialized', () => text.includes('"protocolVersion"'))
  socket.off('data', read)
  socket.pause()
  const logged = (what: string): number => acme.log.filter(({ msg }) => msg === what).length
  const gaveUp = (): boolean => logged('a client did not read its stream; closed') > 0
  const statuses: number[] = []
  await until('the session is over', async () => {
    const calls = logged('call')
    const { status } = await post({
      jsonrpc: '2.0',
      id: statuses.length,
      method: 'tools/call',
      params: { name: 'big', arguments: { bytes: 3_000_000 } }
    })
    statuses.push(status)
    if (status === 429) timeouts.begin()
    // What has not come yet is no backlog, and would refuse nothing.
    if (status === 202) await until('its answer at the gateway', () => logged('call') > calls || gaveUp())
    return status === 404
  })
  const taken = statuses.filter((status) => status === 202).length
  t.ok(taken > 2 && taken < 34, `${taken} answers of three megabytes were asked for`)
  t.ok(statuses.includes(429), 'before it was given up, it was refused')
  t.ok(timeouts.asked.has(15_000))
  t.ok(gaveUp())
  t.match((await neighbour.request('tools/call', { name: 'echo' })).result.content, [{ type: 'text' }])
  await until('what it held is let go of', () => acme.upstream.sessions.size === 2)
  neighbour.close()
  socket.destroy()
})
