// Attack: many connections that send a byte now and then (slowloris), or ask for a large answer and never read it, to
// keep the gateway busy with next to no effort. The clocks that end them are Node's own; here they run ten times as
// fast.

import { setInterval } from 'node:timers'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send } from '../kit/client.ts'
import { fasterServerTimeouts, fasterSocketTimeouts } from '../kit/faster-sockets.ts'
import { dial, readRawResponse, untilClosed } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'

const socketTimeouts = fasterSocketTimeouts(t)
const serverTimeouts = fasterServerTimeouts(t)

t.test('a client that sends or reads too slowly loses its connection, and no other client notices', async (t) => {
  const gateway = await acmeGateway(t)
  t.match(serverTimeouts, { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 2_000 })
  const client = await legacyClient(gateway.url(), keyOf.ada)
  const head = `POST /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${gateway.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${client.sessionId}\r\nContent-Type: application/json\r\n`
  const drip = async (start: string, more: string) => {
    const socket = dial(gateway.port)
    socket.write(start)
    const timer = setInterval(() => socket.write(more), 50)
    const text = await untilClosed(socket)
    clearInterval(timer)
    return readRawResponse(text).status
  }
  const bytes = 14_000_000
  const unread = async () => {
    const socket = dial(gateway.port)
    const body = `{"jsonrpc":"2.0","id":"unread","method":"tools/call","params":{"name":"big","arguments":{"bytes":${bytes}}}}`
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
    await until(
      'an answer that nobody reads is given up',
      () => serverTimeouts.connections.get(socket.localPort)?.destroyed
    )
    return (await untilClosed(socket)).length
  }

  const others = Promise.all([
    drip('POST /t/acme/mcp HTTP/1.1\r\n', 'X'),
    drip(`${head}Content-Length: 1000\r\n\r\n{`, ' '),
    drip(`${head}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'),
    drip(`${head}Transfer-Encoding: chunked\r\n\r\n1;`, 'x')
  ])
  const silent = untilClosed(dial(gateway.port))
  const all = Promise.all([unread(), others, silent])
  const over = all.then(() => true)
  const pings = async (): Promise<number> => {
    let slowest = 0
    do {
      const from = performance.now()
      t.equal((await client.request('ping')).status, 200)
      slowest = Math.max(slowest, performance.now() - from)
    } while (!(await Promise.race([over, wait(20, false)])))
    return slowest
  }
  const [[reader], slowest] = await Promise.all([all, pings()])
  const [headers, ...bodies] = await others
  t.equal(headers, 408, 'headers')
  for (const status of bodies) t.ok(status === 408 || status === 413 || status === 400, `a body: ${status}`)
  t.ok(slowest < 20_000)
  t.ok(socketTimeouts.has(15_000))
  t.ok(reader < bytes, `${reader} bytes of it were on the way`)
  t.equal((await send(`${gateway.publicUrl}/health/live`, { method: 'GET' })).status, 200)
  t.ok(
    gateway.log.some((line) => line['reason'] === 'request_timeout' && line['address'] === '127.0.0.1'),
    'a request that did not come whole has its line'
  )
})
