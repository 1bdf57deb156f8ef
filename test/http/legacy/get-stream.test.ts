// The stream that a client opens by GET (2025-11-25 basic/transports "Listening for Messages from the Server").

import pino from 'pino'
import t from 'tap'
import type { Store } from '../../../src/store/port.ts'
import { createSqliteStore } from '../../../src/store/sqlite.ts'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient, open, send, type Answer } from '../../kit/client.ts'
import { listenEvents, type EventStream } from '../../kit/events.ts'
import { dial } from '../../kit/raw-http.ts'
import { until } from '../../kit/until.ts'

const grow = (client: { request(method: string, params: unknown): Promise<Answer> }, name: string) =>
  client.request('tools/call', { name: 'grow', arguments: { name } })
const toolsChanged = (message: { method?: string }) => message.method === 'notifications/tools/list_changed'

t.test('its head', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const response = await open(acme.url(), { headers: { ...client.headers, accept: 'text/event-stream' } })
  t.equal(response.statusCode, 200)
  t.equal(response.headers['content-type'], 'text/event-stream; charset=utf-8')
  t.match(response.headers['cache-control'], /no-store/)
  t.equal(response.headers['x-accel-buffering'], 'no')
  t.equal(response.headers['x-content-type-options'], 'nosniff')
  t.notOk(response.headers['content-encoding'])
  t.notOk(response.headers['content-length'])
  const [first] = await new Promise<Buffer[]>((resolve) => {
    response.once('data', (part: Buffer) => resolve([part]))
  })
  t.match(String(first), /^: open\n\n/, 'a first byte that carries the head through proxies')
  response.destroy()
})

t.test('it brings what belongs to no call: a changed list, once per change and only here', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const stream = await client.listen()
  await client.request('tools/list')
  await until('the upstream can be heard', () => acme.upstream.streams() > 0)
  const answer = await grow(client, 'planted')
  t.equal(answer.headers['content-type'], 'application/json', 'not on the stream of the call')
  await stream.next(toolsChanged)
  const tools = (await client.request('tools/list')).json.result.tools as Array<{ name: string }>
  t.ok(tools.some(({ name }) => name === 'planted'))
  t.ok(
    stream.messages.every((message) => !('id' in message)),
    'no response ever comes on it'
  )
  stream.close()
})

t.test('a change while no stream is open is sent when one opens', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  await client.request('tools/list')
  await client.request('tools/call', { name: 'echo' })
  await until('the streams of the listing and of the session are open', () => acme.upstream.allListening())
  await grow(client, 'late')
  await until('the change is known', async () => (await client.request('tools/list')).text.includes('"late"'))
  const stream = await client.listen()
  await stream.next(toolsChanged)
  stream.close()
})

t.test('a second stream takes over from the first; of a hundred at once one is left', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  await client.request('tools/call', { name: 'echo' })
  await until('the upstream can be heard', () => acme.upstream.allListening())
  const first = await client.listen()
  const second = await client.listen()
  await first.ended
  await grow(client, 'one')
  await second.next(toolsChanged)
  t.same(first.messages, [])

  const crowd = await Promise.all(Array.from({ length: 100 }, () => client.listen()))
  await second.ended
  const open = new Set(crowd)
  for (const stream of crowd) void stream.ended.then(() => open.delete(stream))
  await until('one is left', () => open.size === 1)
  const [last] = open
  await grow(client, 'two')
  await last?.next(toolsChanged)
  t.equal(crowd.filter(({ messages }) => messages.some(toolsChanged)).length, 1, 'never broadcast')
  t.equal(open.size, 1)
  last?.close()
})

t.test('it is kept alive by comments', async (t) => {
  const acme = await acmeGateway(t, { overrides: { keepAliveMs: 20 } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  const response = await open(acme.url(), { headers: { ...client.headers, accept: 'text/event-stream' } })
  let text = ''
  response.setEncoding('utf8')
  response.on('data', (part: string) => {
    text += part
  })
  await until('comments come', () => text.split(': keep-alive\n\n').length > 4)
  t.match(text, /^: open\n\nid: \S+\nretry: 1000\ndata:\n\n(: keep-alive\n\n)+$/)
  response.destroy()
})

t.test('a stream that its client left is forgotten, even one left before it was open', async (t) => {
  const inner = await createSqliteStore({ path: ':memory:', clock: { now: Date.now }, log: pino({ level: 'silent' }) })
  let gate = Promise.resolve()
  let waiting = 0
  // Not live: sessions are read from it each time, and it takes as long as the gate is shut.
  const store: Store = {
    ...inner,
    live: false,
    async get(key) {
      waiting++
      await gate
      return await inner.get(key)
    }
  }
  const acme = await acmeGateway(t, { limits: { sessionIdleMs: 8_000 }, overrides: { keepAliveMs: 30, store } })
  const client = await legacyClient(acme.url(), keyOf.ada)
  await client.request('tools/call', { name: 'echo' })
  const stream = await client.listen()
  stream.close()

  const { promise, resolve } = Promise.withResolvers<void>()
  gate = promise
  waiting = 0
  const socket = dial(acme.port)
  socket.write(
    `GET /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${client.sessionId}\r\nAccept: text/event-stream\r\n\r\n`
  )
  await until('its session is looked up', () => waiting > 0)
  socket.destroy()
  await new Promise((done) => {
    socket.once('close', done)
  })
  for (let n = 0; n < 3; n++) t.equal((await send(`${acme.publicUrl}/health/live`, { method: 'GET' })).status, 200)
  resolve()
  await until(
    'the session idles out, which a forgotten listener would prevent',
    () => acme.upstream.sessions.size === 1
  )
  t.equal((await client.request('ping')).status, 404)
})

t.test('what comes while the client is away is there when it comes back, once, and then it listens on', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  await client.request('tools/call', { name: 'echo' })
  await until('the upstream can be heard', () => acme.upstream.allListening())
  const say = (data: string) =>
    acme.upstream.broadcast({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data } })
  const heard = (stream: EventStream) => stream.messages().map(({ params }) => params.data)
  const first = await listenEvents(acme.url(), client)
  await until('it is primed', () => first.lastId())
  say('one')
  await until('it is heard', () => heard(first).length === 1)
  first.cut()
  await first.ended
  say('two')
  say('three')
  const second = await listenEvents(acme.url(), client, first.lastId())
  await until('the missed are heard', () => heard(second).length === 2)
  say('four')
  await until('and what comes', () => heard(second).length === 3)
  t.same(heard(second), ['two', 'three', 'four'])
  second.cut()
})

t.test('a stream that another one took over from is over for a client that comes back to it', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const first = await listenEvents(acme.url(), client)
  await until('it is primed', () => first.lastId())
  const second = await listenEvents(acme.url(), client)
  await first.ended
  t.equal(
    (await listenEvents(acme.url(), client, first.lastId())).status,
    204,
    'or the two would push each other out for ever'
  )
  t.notOk(second.closed)
  second.cut()
})
