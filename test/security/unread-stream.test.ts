// Case 114: a caller opens a stream, lets it fill, and reads nothing. Its own stream is cut; the gateway does not grow, others go on.

import t from 'tap'
import { acme, keyOf } from '../kit/acme.ts'
import { legacyClient } from '../kit/client.ts'
import { dial } from '../kit/raw.ts'
import { until } from '../kit/until.ts'

t.test('a GET stream that nobody reads is closed before its queue grows', async (t) => {
  const house = await acme(t)
  const deaf = await legacyClient(house.url(), keyOf.ada)
  const well = await legacyClient(house.url(), keyOf.bob)
  const stream = await well.listen()
  for (const client of [deaf, well]) await client.request('tools/call', { name: 'echo' })
  await until('the upstream can be heard', () => house.upstream.streams() === 3)

  const socket = dial(house.port)
  socket.pause()
  socket.write(`GET /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${house.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${deaf.sessionId}\r\nAccept: text/event-stream\r\n\r\n`)
  const before = process.memoryUsage().rss
  const data = 'x'.repeat(200_000)
  const closed = () => house.log.some(({ msg }) => msg === 'a client did not read its stream; closed')
  for (let n = 0; n < 400 && !closed(); n++) {
    house.upstream.broadcast({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data } })
    await new Promise((resolve) => { setImmediate(resolve) })
  }
  await until('the deaf one is cut off', closed)
  const grown = (process.memoryUsage().rss - before) / 1024 / 1024
  t.ok(grown < 200, `${Math.round(grown)} MiB`)
  await stream.next(({ method }) => method === 'notifications/message')
  t.equal((await well.request('ping')).status, 200)
  t.equal((await deaf.request('ping')).status, 200, 'its session is not harmed, and it may listen again')
  const again = await deaf.listen()
  again.close()
  socket.destroy()
  stream.close()
})

t.test('a call that streams to nobody does not grow either, and still ends', async (t) => {
  const house = await acme(t)
  const client = await legacyClient(house.url(), keyOf.ada)
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":1}}}'
  const socket = dial(house.port)
  socket.pause()
  socket.write(house.post(body, `Mcp-Session-Id: ${client.sessionId}\r\n`))
  await until('it runs', () => house.upstream.server.calls('slow') === 1)
  await until('the upstream can be heard', () => house.upstream.streams() === 2)
  const { id } = house.upstream.seen.findLast(({ message }) => message?.['method'] === 'tools/call')?.message ?? {}
  const message = 'x'.repeat(100_000)
  const before = process.memoryUsage().rss
  for (let n = 0; n < 300; n++) {
    house.upstream.broadcast({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress: n, message } })
    if (n % 10 === 0) await new Promise((resolve) => { setTimeout(resolve, 1) })
  }
  t.ok((process.memoryUsage().rss - before) / 1024 / 1024 < 200)
  house.upstream.server.release()
  await until('the call has ended', () => house.log.some(({ msg, tool }) => msg === 'call' && tool === 'slow'))
  t.equal((await client.request('ping')).status, 200)
  socket.destroy()
})
