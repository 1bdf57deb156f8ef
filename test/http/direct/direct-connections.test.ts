// A connection brings requests that are read from its socket, and then others, which Node's server reads: each is
// answered, in order, wherever its bytes are cut.

import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { createServer as createHttpServer } from 'node:http'
import t from 'tap'
import { serveDirectly } from '../../../src/http/direct/direct-connections.ts'
import { SocketReply } from '../../../src/http/direct/socket-reply.ts'
import type { RequestTurns } from '../../../src/http/request-turns.ts'
import { acmeGateway, keyOf } from '../../kit/acme-gateway.ts'
import { legacyClient } from '../../kit/client.ts'
import { listen } from '../../kit/listen.ts'
import { dial, untilClosed } from '../../kit/raw-http.ts'
import type { Teardown } from '../../kit/until.ts'

const callOf = (id: number, text = 'hello'): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: { text } } })

async function started(t: Teardown) {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  const session = `Mcp-Session-Id: ${headers['mcp-session-id']}\r\n`
  const kept = (id: number, text?: string): string =>
    acme.post(callOf(id, text), session).replace('Connection: close\r\n', '')
  return { acme, session, kept, last: (id: number) => acme.post(callOf(id), session) }
}

/** Ids of the answers, in the order in which they came. */
const ids = (text: string): string[] => [...text.matchAll(/"id":(\d+)/g)].map(([, id]) => String(id))

/** Each part leaves by itself: the one before has been read. */
async function sendInParts(socket: Socket, parts: readonly string[]): Promise<void> {
  socket.setNoDelay(true)
  for (const part of parts) {
    socket.write(part, 'latin1')
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  }
}

t.test('a request is answered wherever it is cut, and so is the next one on its connection', async (t) => {
  const { acme, kept, last } = await started(t)
  const whole = kept(1)
  const cuts = [1, 5, 6, 30, whole.indexOf('\r\n\r\n') + 2, whole.indexOf('\r\n\r\n') + 4, whole.length - 1]
  for (const cut of cuts) {
    const socket = dial(acme.port)
    const closed = untilClosed(socket)
    await sendInParts(socket, [whole.slice(0, cut), whole.slice(cut) + last(2)])
    t.same(ids(await closed), ['1', '2'], `cut at ${cut}`)
  }
  const socket = dial(acme.port)
  const closed = untilClosed(socket)
  await sendInParts(socket, [...whole].concat(last(2)))
  t.same(ids(await closed), ['1', '2'], 'byte by byte')
})

t.test('other requests may follow on the connection, and usual ones follow them', async (t) => {
  const { acme, kept, last } = await started(t)
  const health = `GET /health/live HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\n\r\n`
  const socket = dial(acme.port)
  const closed = untilClosed(socket)
  socket.write(kept(1) + kept(2, 'x'.repeat(100_000)) + health + kept(3) + last(4))
  const text = await closed
  t.same(ids(text), ['1', '2', '3', '4'])
  t.ok(text.indexOf('"id":2') < text.indexOf('"live"') && text.indexOf('"live"') < text.indexOf('"id":3'), text)
  t.equal(text.match(/HTTP\/1\.1 200 OK/g)?.length, 5)
})

t.test('what cannot become a request is refused at once', async (t) => {
  const { acme } = await started(t)
  for (const bytes of ['\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'hello\r\n'])
    t.match((await acme.exchange(Buffer.from(bytes, 'latin1'))).head, /^HTTP\/1\.1 400 /, JSON.stringify(bytes))
})

t.test('a connection ends after so many requests, and its last answer says so', async (t) => {
  const { acme, kept } = await started(t)
  const socket = dial(acme.port)
  const closed = untilClosed(socket)
  let answered = 0
  socket.on('data', (part: string) => {
    answered += part.match(/HTTP\/1\.1 200 OK/g)?.length ?? 0
    if (answered < 1_000) socket.write(kept(answered))
  })
  socket.write(kept(0))
  const text = await closed
  t.equal(answered, 1_000)
  t.equal(text.match(/connection: close/gi)?.length, 1)
  t.match(text.slice(text.lastIndexOf('HTTP/1.1')), /connection: close/i)
})

t.test('after the last answer of a connection no request is begun', async (t) => {
  const { acme, kept, last } = await started(t)
  const calls = (): number => acme.upstream.server.calls('echo')
  for (let round = 0; round < 5; round++) {
    const before = calls()
    const socket = dial(acme.port)
    const closed = untilClosed(socket)
    await sendInParts(socket, [last(1), kept(2)])
    // Whoever sends more than it has announced may lose the answer, too.
    t.notOk(ids(await closed).includes('2'))
    await acme.exchange(last(3))
    t.equal(calls() - before, 2, 'the first, and that of the other connection')
  }
})

t.test('no value can end the head of an answer or add to it, and no empty piece its body', async (t) => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = (await once(server, 'connection')) as [Socket]
  const closed = untilClosed(client)
  const request = {
    method: 'POST',
    url: '/',
    headers: {},
    rawHeaders: [],
    httpVersionMajor: 1,
    complete: true
  } as const
  const reply = () =>
    new SocketReply({ ...request, errored: null, socket }, { date: () => 'now', keepAlive: 'max=1' }, true, () => {})
  for (const value of ['a\r\nX-More: b', 'a\nb', 'a\0', 'ü\u0100'])
    t.throws(() => reply().writeHead(200, { 'X-Any': value }), TypeError, JSON.stringify(value))
  const streamed = reply().writeHead(200, {})
  streamed.write('')
  streamed.write(new Uint8Array(0))
  streamed.write('a')
  streamed.end()
  reply().writeHead(200, { 'X-Any': 'a b', 'Content-Length': 2 }).end('{}')
  socket.end()
  t.equal(
    await closed,
    'HTTP/1.1 200 OK\r\nDate: now\r\nConnection: keep-alive\r\nKeep-Alive: max=1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n' +
      'HTTP/1.1 200 OK\r\nX-Any: a b\r\nContent-Length: 2\r\nDate: now\r\nConnection: keep-alive\r\nKeep-Alive: max=1\r\n\r\n{}'
  )
})

/** Writes when it is told to, while the thread of the gateway stands still, and says that it has. */
const writer = `
  const { parentPort, workerData: { port, request, written } } = require('node:worker_threads')
  const socket = require('node:net').connect(port, '127.0.0.1', () => parentPort.postMessage('connected'))
  let text = ''
  socket.on('data', (chunk) => { text += chunk }).on('close', () => parentPort.postMessage(text)).on('error', () => {})
  parentPort.on('message', () => socket.write(request, () => {
    Atomics.store(written, 0, 1)
    Atomics.notify(written, 0)
  }))
`

t.test('what came in time is not late because the gateway was held up', async (t) => {
  const headersTimeout = 1_000
  const answered: string[] = []
  const server = createHttpServer()
  const options = { keepAliveTimeout: 5_000, headersTimeout, maxRequestsPerSocket: 10 }
  let silent = 0
  serveDirectly(server, {
    ...options,
    turns: { add: ({ begin }: { begin(): void }) => (begin(), false) } as unknown as RequestTurns,
    isOpen: () => true,
    accepts: () => true,
    serve(request, reply, body) {
      answered.push(`${request.url} ${String(body)}`)
      reply.writeHead(200, { 'Content-Length': '2', Connection: 'close' }).end('ok')
    },
    refuse: () => {},
    silent(socket) {
      silent++
      socket.destroy()
    }
  })
  const { port } = new URL(await listen(t, server))
  const written = new Int32Array(new SharedArrayBuffer(4))
  const request = 'POST /in-time HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}'
  const client = new Worker(writer, { eval: true, workerData: { port, request, written } })
  t.teardown(() => client.terminate())
  await once(client, 'message')
  // A port of threads has no origin.
  // eslint-disable-next-line unicorn/require-post-message-target-origin
  client.postMessage('write')
  // Nothing runs here until the request has come, and its time is over.
  // It may have written before this thread waits, and is not waited for then: `not-equal`.
  t.not(Atomics.wait(written, 0, 0, 20_000), 'timed-out')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, headersTimeout + 50)
  const [text] = (await once(client, 'message')) as [string]
  t.match(text, /^HTTP\/1\.1 200 /)
  t.same(answered, ['/in-time {}'])
  t.equal(silent, 0)

  const other = connect(Number(port), '127.0.0.1')
  t.teardown(() => other.destroy())
  await once(other, 'close')
  t.equal(silent, 1, 'and who says nothing is closed')
})
