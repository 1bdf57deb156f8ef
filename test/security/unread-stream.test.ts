// Attack: a caller opens a stream, lets it fill and never reads. Its stream is closed; the gateway's memory does not
// grow, and others go on.

import t from 'tap'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { dial } from '../kit/raw-http.ts'
import { until } from '../kit/until.ts'

t.test('a GET stream that nobody reads is closed before its queue grows', async (t) => {
  const acme = await acmeGateway(t)
  const deaf = await legacyClient(acme.url(), keyOf.ada)
  const well = await legacyClient(acme.url(), keyOf.bob)
  const stream = await well.listen()
  for (const client of [deaf, well]) await client.request('tools/call', { name: 'echo' })
  await until('the upstream can be heard', () => acme.upstream.allListening())

  const socket = dial(acme.port)
  socket.pause()
  socket.write(
    `GET /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${deaf.sessionId}\r\nAccept: text/event-stream\r\n\r\n`
  )
  const data = 'x'.repeat(200_000)
  const closed = () => acme.log.some(({ msg }) => msg === 'a client did not read its stream; closed')
  let told = 0
  for (; told < 400 && !closed(); told++) {
    const params = { level: 'error', logger: `${told}`, data }
    acme.upstream.broadcast({ jsonrpc: '2.0', method: 'notifications/message', params })
    await stream.next((message) => message.params?.logger === params.logger)
  }
  await until('the deaf one is cut off', closed)
  const toldMb = (told * data.length) / 1e6
  t.ok(toldMb < 40, `after ${toldMb} MB, those in the buffers of the system included`)
  t.equal((await well.request('ping')).status, 200)
  t.equal((await deaf.request('ping')).status, 200, 'its session is not harmed, and it may listen again')
  const again = await deaf.listen()
  again.close()
  socket.destroy()
  stream.close()
})

t.test('a call whose stream nobody reads does not grow either, and still ends', async (t) => {
  const acme = await acmeGateway(t)
  const client = await legacyClient(acme.url(), keyOf.ada)
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":1}}}'
  const socket = dial(acme.port)
  socket.pause()
  socket.write(acme.post(body, `Mcp-Session-Id: ${client.sessionId}\r\n`))
  await until('it runs', () => acme.upstream.server.calls('slow') === 1)
  await until('the upstream can be heard', () => acme.upstream.allListening())
  const { id } = acme.upstream.seen.findLast(({ message }) => message?.['method'] === 'tools/call')?.message ?? {}
  const message = 'x'.repeat(100_000)
  const before = process.memoryUsage().rss
  for (let n = 0; n < 300; n++) {
    acme.upstream.broadcast({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: id, progress: n, message }
    })
    if (n % 10 === 0)
      await new Promise((resolve) => {
        setTimeout(resolve, 1)
      })
  }
  t.ok((process.memoryUsage().rss - before) / 1024 / 1024 < 200)
  acme.upstream.server.release()
  await until('the call has ended', () => acme.log.some(({ msg, tool }) => msg === 'call' && tool === 'slow'))
  t.equal((await client.request('ping')).status, 200)
  socket.destroy()
})
