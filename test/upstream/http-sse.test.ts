// HTTP+SSE of 2024-11-05: where messages may be posted, what the end of the stream means, which POSTs count as taken.

import t from 'tap'
import { callOf, handshake, never, recordingClient, recordingEvents, testConnector, until } from '../kit/connector.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { isCall, isMethod, startUpstream } from '../kit/upstream.ts'
import { openSse, sseDefinition } from './http-sse-kit.ts'

t.test('each request carries what the definition asks for, and the revision once it is agreed', async (t) => {
  const { peer, call } = await openSse(t, {}, { headers: { 'X-Api-Key': 'k-1', 'Content-Type': 'text/plain' } })
  await call('echo')
  t.match(peer.seen[0], {
    method: 'GET',
    headers: { accept: 'text/event-stream', 'x-api-key': 'k-1', 'accept-encoding': 'identity' }
  })
  t.notOk(peer.seen.find(isMethod('initialize'))?.headers['mcp-protocol-version'])
  t.match(peer.seen.find(isCall('echo'))?.headers, {
    'x-api-key': 'k-1',
    'content-type': 'application/json',
    'mcp-protocol-version': '2025-11-25',
    'accept-encoding': 'identity',
    'user-agent': 'gatehouse-test/0.0.0'
  })
  t.same(peer.server.received.map(({ method }) => method).slice(0, 2), ['initialize', 'notifications/initialized'])
})

t.test("a server of the transport's own revision gets no header for it", async (t) => {
  const { peer, upstream, call } = await openSse(t, { revision: '2024-11-05' })
  t.equal(upstream.revision, '2024-11-05')
  await call('echo')
  t.notOk(peer.seen.find(isCall('echo'))?.headers['mcp-protocol-version'])
})

const addresses: Array<[name: string, endpoint: (session: string, origin: string) => string]> = [
  ['a path', (session) => `/messages?session=${session}`],
  ['a relative path', (session) => `messages?session=${session}`],
  ['a whole URL', (session, origin) => `${origin}/messages?session=${session}`],
  ['a URL without its scheme', (session, origin) => `${origin.slice('http:'.length)}/messages?session=${session}#there`]
]
for (const [name, endpoint] of addresses) {
  t.test(`messages go where the first event says, as ${name}`, async (t) => {
    const { call } = await openSse(t, { endpoint })
    t.match(await call('echo'), { content: [{}] })
  })
}

t.test('a server that wants its messages at another origin gets none, and neither does the other', async (t) => {
  const elsewhere = await startSseUpstream()
  t.teardown(elsewhere.close)
  const port = new URL(elsewhere.url).port
  const foreign = [
    `http://127.0.0.1:${port}/messages`,
    `//127.0.0.1:${port}/messages`,
    `\\\\127.0.0.1:${port}\\messages`,
    'https://127.0.0.1/messages',
    `http://localhost:${port}/messages`,
    'file:///etc/passwd',
    'data:,x',
    'http://[',
    'javascript:alert(1)',
    `http://127.0.0.1@evil.example:${port}/`
  ]
  for (const address of foreign) {
    const peer = await startSseUpstream({ endpoint: () => address })
    t.teardown(peer.close)
    const failure = await testConnector()
      .connector.connect(
        sseDefinition(peer.url, { headers: { Authorization: 'Bearer hunter2' } }),
        handshake,
        recordingEvents()
      )
      .catch((error: unknown) => error)
    t.match(failure, { code: 'upstream_protocol', message: /origin of its url/ }, address)
    t.notMatch((failure as Error).message, 'hunter2')
    t.equal(peer.seen.filter(({ method }) => method === 'POST').length, 0)
  }
  t.same(elsewhere.seen, [])
})

t.test('the address stays the first one, whatever comes later', async (t) => {
  const { peer, call } = await openSse(t)
  peer.write('event: endpoint\ndata: http://127.0.0.1:1/messages\n\nevent: endpoint\ndata: /elsewhere\n\n')
  t.match(await call('echo'), { content: [{}] })
})

t.test(
  'when the stream ends, calls in flight are lost, their owner is told once, and a new connection works',
  async (t) => {
    const { peer, call, events, connect } = await openSse(t)
    const calls = [call('slow'), call('slow')]
    const lost = Promise.all(
      calls.map((call) => t.rejects(call, { code: 'upstream_lost', data: { outcome: 'unknown', upstream: 'files' } }))
    )
    await until(() => peer.server.calls('slow') === 2, 'both have reached the server')
    peer.cut()
    await lost
    t.match(events.ended, [{ code: 'upstream_lost' }])
    t.equal(events.ended.length, 1)
    await t.rejects(call('echo'), { code: 'upstream_unavailable' })
    t.equal(peer.server.calls('slow'), 2, 'nothing was sent again')
    const again = await connect()
    t.teardown(() => again.close())
    t.match(await again.request(callOf('echo'), recordingClient(), never), { content: [{}] })
  }
)

for (const accepts of ['late', 'never'] as const) {
  t.test(
    `a server that answers its POSTs ${accepts === 'late' ? 'only after the work' : 'not at all'} is understood, and holds no socket`,
    async (t) => {
      const { peer, call } = await openSse(t, { accepts })
      await Promise.all(Array.from({ length: 5 }, (_, n) => call('echo', { n })))
      const pending = new Set<unknown>()
      peer.override(isCall('pid'), (response) => {
        pending.add(response)
        response.on('close', () => pending.delete(response))
        peer.broadcast({
          jsonrpc: '2.0',
          id: peer.seen.findLast(isCall('pid'))?.message?.['id'],
          result: { content: [] }
        })
      })
      await call('pid')
      await until(() => pending.size === 0, 'the POST is given up')
    }
  )
}

t.test('whatever a POST is answered with besides its status is of no interest', async (t) => {
  const { peer, call } = await openSse(t)
  for (const [type, body] of [
    ['text/html', '<html>'],
    ['application/json', '{"ok":'],
    ['text/event-stream', 'data: x\n\n'],
    ['text/plain', 'x'.repeat(100_000)]
  ] as const) {
    peer.override(isCall('echo'), (response, { message }) => {
      response.writeHead(200, { 'Content-Type': type }).end(body)
      peer.broadcast({ jsonrpc: '2.0', id: message?.['id'], result: { content: [{ type: 'text', text: type }] } })
    })
    t.match(await call('echo'), { content: [{ text: type }] })
  }
})

t.test('lines may end as they like, and data may come in several', async (t) => {
  const { peer, call } = await openSse(t)
  peer.override(isCall('echo'), (response, { message }) => {
    response.writeHead(202).end()
    peer.write(
      `event: message\r\ndata: {"jsonrpc": "2.0",\r\ndata: "id": ${String(message?.['id'])},\r\ndata: "result": {"split": true}}\r\n\r\n`
    )
  })
  t.same(await call('echo'), { split: true })
})

t.test('closing and destroying close the stream, which is the session', async (t) => {
  const { peer, upstream, events, connect } = await openSse(t)
  const second = await connect()
  t.equal(peer.sessions.size, 2)
  await upstream.close()
  second.destroy(new Error('enough'))
  await until(() => peer.sessions.size === 0, 'both are closed')
  t.same(events.ended, [])
})

t.test('a cancelled call whose POST is still on its way is cut off, and cancelled at the server too', async (t) => {
  const { peer, upstream } = await openSse(t)
  let cut = false
  peer.override(isCall('echo'), (response) => {
    response.on('close', () => {
      cut = true
    })
  })
  const stop = new AbortController()
  const rejected = t.rejects(upstream.request(callOf('echo'), recordingClient(), stop.signal), { code: 'cancelled' })
  await until(() => peer.seen.some(isCall('echo')), 'it is on its way')
  stop.abort()
  await rejected
  await until(
    () => cut && peer.server.received.some(({ method }) => method === 'notifications/cancelled'),
    'both have happened'
  )
})

t.test('pinned to one transport, the other is not tried', async (t) => {
  const peer = await startUpstream()
  t.teardown(peer.close)
  await t.rejects(testConnector().connector.connect(sseDefinition(peer.url), handshake, recordingEvents()), {
    code: 'upstream_protocol',
    message: /HTTP\+SSE/
  })
  t.notOk(peer.seen.some(isMethod('initialize')))
  const old = await startSseUpstream()
  t.teardown(old.close)
  await t.rejects(
    testConnector().connector.connect(
      sseDefinition(old.url, { transport: 'streamable' }),
      handshake,
      recordingEvents()
    ),
    { code: 'upstream_protocol', message: /HTTP 405/ }
  )
  t.same(
    old.seen.map(({ method }) => method),
    ['POST']
  )
})
