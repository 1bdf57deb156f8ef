// Cases 87 and 114: callers who send a byte now and then, and callers who ask for much and read nothing. These are clocks of the real
// server, so this file takes half a minute; all its cases wait at the same time.

import { setInterval } from 'node:timers'
import t from 'tap'
import { acme, keyOf } from '../kit/acme.ts'
import { legacyClient, send } from '../kit/client.ts'
import { dial, readAnswer, untilClosed } from '../kit/raw.ts'

t.test('whoever is too slow is let go, and nobody else notices', async (t) => {
  const house = await acme(t)
  const client = await legacyClient(house.url(), keyOf.ada)
  const head = `POST /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${house.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${client.sessionId}\r\nContent-Type: application/json\r\n`
  const drip = async (start: string, more: string) => {
    const socket = dial(house.port)
    const from = performance.now()
    socket.write(start)
    const timer = setInterval(() => socket.write(more), 500)
    const text = await untilClosed(socket, 60_000)
    clearInterval(timer)
    return { status: readAnswer(text).status, seconds: (performance.now() - from) / 1000 }
  }
  const bytes = 14_000_000
  const unread = async () => {
    const socket = dial(house.port)
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":{"bytes":${bytes}}}}`
    socket.write(`${head}Content-Length: ${body.length}\r\n\r\n${body}`)
    await new Promise((resolve) => { setTimeout(resolve, 37_000) })
    return (await untilClosed(socket, 20_000)).length
  }

  const [headers, body, chunks, extension, silent, reader] = await Promise.all([
    drip('POST /t/acme/mcp HTTP/1.1\r\n', 'X'),
    drip(`${head}Content-Length: 1000\r\n\r\n{`, ' '),
    drip(`${head}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'),
    drip(`${head}Transfer-Encoding: chunked\r\n\r\n1;`, 'x'),
    drip('', ''),
    unread(),
    (async () => {
      const until = performance.now() + 25_000
      let slowest = 0
      while (performance.now() < until) {
        const from = performance.now()
        t.equal((await client.request('ping')).status, 200)
        slowest = Math.max(slowest, performance.now() - from)
        await new Promise((resolve) => { setTimeout(resolve, 1_000) })
      }
      t.ok(slowest < 5_000)
    })()
  ])
  t.equal(headers.status, 408, 'headers')
  t.ok(headers.seconds < 15, `${headers.seconds} s`)
  for (const [what, { status, seconds }] of Object.entries({ body, chunks, extension })) {
    t.ok(status === 408 || status === 413 || status === 400, `${what}: ${status}`)
    t.ok(seconds < 36, `${seconds} s`)
  }
  t.ok(silent.seconds < 40)
  t.ok(reader < bytes, `an answer that nobody reads is given up: ${reader} bytes of it were on the way`)
  t.equal((await send(`${house.publicUrl}/health/live`, { method: 'GET' })).status, 200)
})
