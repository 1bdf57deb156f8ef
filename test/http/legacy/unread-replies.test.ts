// Answers that nobody reads wait in memory until their connection is given up: a session gets only so many of them.

import t from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../../kit/acme-gateway.ts'
import { legacyClient } from '../../kit/client.ts'
import { listenEvents } from '../../kit/events.ts'
import { httpSseClient } from '../../kit/http-sse-client.ts'
import { dial } from '../../kit/raw-http.ts'
import { until } from '../../kit/until.ts'

const big = (id: unknown, bytes: number) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'big', arguments: { bytes } } })
const answered = (acme: AcmeGateway): number =>
  acme.log.filter(({ msg, method }) => msg === 'call' && method === 'tools/call').length

for (const accept of ['application/json', 'text/event-stream']) {
  t.test(`as ${accept}: beyond 32 MiB the session is refused until it has read; others are not`, async (t) => {
    const acme = await acmeGateway(t)
    const [ada, other] = [await legacyClient(acme.url(), keyOf.ada), await legacyClient(acme.url(), keyOf.ada)]
    const sockets = Array.from({ length: 4 }, (_, n) => {
      const socket = dial(acme.port).pause()
      const body = big(`big ${n}`, 14_000_000)
      socket.write(
        `POST /t/acme/mcp HTTP/1.1\r\nHost: 127.0.0.1:${acme.port}\r\nAuthorization: Bearer ${keyOf.ada}\r\nMcp-Session-Id: ${ada.sessionId}\r\nContent-Type: application/json\r\nAccept: ${accept}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      )
      return socket
    })
    t.teardown(() => {
      for (const socket of sockets) socket.destroy()
    })
    await until('all are answered', () => answered(acme) === 4)
    const refused = await until('it is refused', async () => {
      const answer = await ada.request('ping')
      return answer.status === 200 ? undefined : answer
    })
    t.equal(refused.status, 429)
    t.match(refused.json, { error: { data: { reason: 'too_many' } } })
    t.equal((await listenEvents(acme.url(), ada)).status, 429, 'nor may it resume what is large')
    t.equal((await ada.notify('notifications/initialized')).status, 202, 'what asks for nothing is let in')
    t.equal((await other.request('ping')).status, 200)
    for (const socket of sockets) socket.resume()
    await until('it may ask again', async () => (await ada.request('ping')).status === 200)
  })
}

t.test('over HTTP+SSE too', async (t) => {
  const acme = await acmeGateway(t)
  const ada = await httpSseClient(acme.url(), keyOf.ada)
  ada.response.pause()
  let posted = 0
  const refused = await until('it is refused', async () => {
    const answer = await ada.post(JSON.parse(big(`big ${posted}`, 14_000_000)))
    if (answer.status !== 202) return answer
    posted++
    await until('it is answered', () => answered(acme) === posted)
    return undefined
  })
  t.equal(refused.status, 429)
  t.ok(posted < 8, `after ${posted} answers`)
  ada.response.resume()
  await until('all have come', () => ada.messages.filter(({ id }) => String(id).startsWith('big')).length === posted)
  t.same((await ada.request('ping')).result, {})
  ada.close()
})

t.test('several large answers at once are no reason to end a stream of HTTP+SSE', async (t) => {
  const acme = await acmeGateway(t)
  const ada = await httpSseClient(acme.url(), keyOf.ada)
  const answers = await Promise.all(
    [1, 2, 3, 4].map((n) => ada.request('tools/call', { name: 'big', arguments: { bytes: 3_000_000 } }, `big ${n}`))
  )
  t.same(
    answers.map(({ result }) => result.content[0].text.length),
    [3_000_000, 3_000_000, 3_000_000, 3_000_000]
  )
  t.same((await ada.request('ping')).result, {})
  ada.close()
})
