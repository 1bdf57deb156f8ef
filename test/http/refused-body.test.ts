// A request that is refused before its body was read: the client sees the whole answer, and the connection is closed.

import { once } from 'node:events'
import t from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { heldSocketTimeouts } from '../kit/faster-sockets.ts'
import { dial, readRawResponse } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'

const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { padding: 'x'.repeat(1_000_000) } })

/** Sends the head of a request, with a part of its body. */
async function halfSent(
  acme: AcmeGateway,
  token?: string,
  { request = 'POST /t/acme/mcp', host = '', origin = '' } = {}
) {
  const socket = dial(acme.port)
  await once(socket, 'connect')
  const errors: Error[] = []
  let text = ''
  socket.on('error', (error) => errors.push(error)).on('data', (part: Buffer) => (text += part.toString()))
  const lines = [
    `${request} HTTP/1.1`,
    `Host: ${host === '' ? `127.0.0.1:${acme.port}` : host}`,
    ...(origin === '' ? [] : [`Origin: ${origin}`]),
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    `Content-Length: ${body.length}`
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body.slice(0, 10)}`)
  return { socket, errors, text: () => text }
}

t.test('what the client still sends is read, so that no reset takes the answer away', async (t) => {
  const acme = await acmeGateway(t)
  const { socket, errors, text } = await halfSent(acme)
  await until('the answer', () => text().includes('unauthenticated'))
  t.match(readRawResponse(text()), { status: 401 })
  t.equal(readRawResponse(text()).header('connection'), 'close')
  const closed = once(socket, 'close')
  socket.write(body.slice(10))
  await closed
  t.same(errors, [])
})

const refusals = [
  [403, 'for its Host', { host: 'elsewhere.example' }],
  [403, 'for its Origin', { origin: 'https://elsewhere.example' }],
  [404, 'for its path', { request: 'POST /t/none/mcp' }],
  [404, 'for a path of no endpoint', { request: 'POST /none' }],
  [405, 'for its method', { request: 'PUT /t/acme/mcp' }],
  [405, 'for its method there', { request: 'POST /t/acme/sse' }]
] as const

for (const [status, why, given] of refusals)
  t.test(`who is refused with ${status} ${why} has the answer whole, and no connection any more`, async (t) => {
    heldSocketTimeouts(t, 2_000)
    const acme = await acmeGateway(t)
    const { socket, errors, text } = await halfSent(acme, keyOf.ada, given)
    await until('the answer', () => text().includes('"error"'))
    t.match(readRawResponse(text()), { status })
    t.equal(readRawResponse(text()).header('connection'), 'close')
    socket.write(body.slice(10))
    // Sooner than Node closes those on which no other request comes: after 72 s.
    await until('it is closed', () => socket.closed, 60_000)
    t.same(errors, [])
  })

t.test('a client that sends no more is waited for no longer than some seconds', async (t) => {
  const acme = await acmeGateway(t)
  const { socket, text } = await halfSent(acme)
  const began = performance.now()
  await once(socket, 'close')
  t.match(readRawResponse(text()), { status: 401 })
  t.ok(performance.now() - began < 15_000)
})

t.test('the same request of somebody who is let in is answered, and the connection stays', async (t) => {
  const acme = await acmeGateway(t)
  const { socket, text } = await halfSent(acme, keyOf.ada)
  socket.write(body.slice(10))
  await until('the answer', () => text().includes('\r\n\r\n'))
  t.not(readRawResponse(text()).header('connection'), 'close')
  t.notOk(socket.closed)
  socket.destroy()
})
