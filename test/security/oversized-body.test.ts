// Attack: bodies above the limit, with and without Content-Length, and compressed ones that would become large.

import { gzipSync } from 'node:zlib'
import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { dial, readRawResponse, untilClosed } from '../kit/raw-http.ts'

const limit = 4_096

t.test('a body over the limit is refused and its connection closed', async (t) => {
  const acme = await acmeGateway(t, { limits: { bodyBytes: limit } })
  const { headers, sessionId } = await legacyClient(acme.url(), keyOf.ada)
  const ping = (bytes: number) => `{"jsonrpc":"2.0","id":1,"method":"ping"}`.padEnd(bytes, ' ')
  t.equal((await send(acme.url(), { headers, body: ping(limit) })).status, 200, 'exactly the limit passes')

  const said = await send(acme.url(), { headers, body: ping(limit + 1) })
  t.equal(said.status, 413)
  t.equal(said.json.error.data.reason, 'too_large')
  t.equal(said.headers.connection, 'close')

  const head = `POST /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${sessionId}\r\nContent-Type: application/json\r\n`
  const announced = await acme.exchange(`${head}Content-Length: 99999999999\r\n\r\n`)
  t.equal(announced.status, 413, 'refused by what it says, before a byte of it has come')

  const socket = dial(acme.port)
  socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`)
  const chunk = `400\r\n${'x'.repeat(1024)}\r\n`
  let sent = 0
  const pour = setInterval(() => {
    if (socket.write(chunk)) sent += 1024
  }, 1)
  const text = await untilClosed(socket)
  clearInterval(pour)
  t.equal(readRawResponse(text).status, 413, 'without a length, as soon as it is too much')
  t.ok(sent < 1024 * 1024, `${sent} bytes were taken`)
  t.equal((await send(acme.url(), { headers, body: ping(60) })).status, 200)
})

t.test('a body is not read without a token, nor where there is no endpoint', async (t) => {
  const acme = await acmeGateway(t, { limits: { bodyBytes: limit } })
  for (const [path, status] of [
    ['/t/acme/mcp', 401],
    ['/t/nobody/mcp', 404],
    ['/nothing', 404]
  ] as const) {
    const socket = dial(acme.port)
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n{"jsonrpc`
    )
    const text = await untilClosed(socket)
    t.equal(readRawResponse(text).status, status, `${path}: answered while the body is still on its way`)
  }
})

t.test('a compressed body is refused before it is decompressed', async (t) => {
  const acme = await acmeGateway(t)
  const { headers } = await legacyClient(acme.url(), keyOf.ada)
  const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024, ' '))
  const before = process.memoryUsage().arrayBuffers
  for (const encoding of ['gzip', 'br', 'deflate, gzip', 'zstd', 'GZIP', 'x-gzip']) {
    t.equal(
      (await send(acme.url(), { headers: { ...headers, 'content-encoding': encoding }, body: bomb })).status,
      415,
      encoding
    )
  }
  t.ok(process.memoryUsage().arrayBuffers - before < 25 * 1024 * 1024)
  const encoded = await acme.exchange(
    acme.post('x', 'Transfer-Encoding: gzip, chunked\r\n').replace(/Content-Length: 1\r\n/, '')
  )
  t.ok(encoded.status >= 400, 'nor as a transfer coding')
})
