// HTTP+SSE of 2024-11-05 and servers that do not keep to it: forgotten sessions, refused messages, events and URLs of
// something else.

import t from 'tap'
import { handshake, recordingEvents, testConnector, until } from '../kit/connector.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { isCall, isMethod } from '../kit/upstream.ts'
import type { HttpDefinition } from '../../src/config/snapshot.ts'
import { openSse, sseDefinition } from './http-sse-kit.ts'

for (const unknownSession of [404, 400] as const) {
  t.test(
    `a server that answers ${unknownSession} because it forgot the session ends the connection, though its stream is open`,
    async (t) => {
      const { peer, call, events } = await openSse(t, { unknownSession })
      peer.forget()
      const failure = await call('echo').catch((error: unknown) => error)
      t.match(
        failure,
        unknownSession === 404
          ? { code: 'upstream_unavailable', message: /not executed/ }
          : { code: 'upstream_protocol', message: /400/ }
      )
      await until(() => events.ended.length === 1, 'its owner is told')
      t.equal(peer.server.calls('echo'), 0)
      await until(() => peer.streams() === 0, 'the stream is closed')
    }
  )
}

t.test('a message that is refused for its own sake fails alone', async (t) => {
  const { peer, call, events } = await openSse(t)
  peer.override(isCall('echo'), (response) => {
    response.writeHead(400).end()
  })
  await t.rejects(call('echo'), { code: 'upstream_protocol', message: /HTTP 400/ })
  await until(() => peer.server.received.some(({ method }) => method === 'ping'), 'the session was asked after')
  t.match(await call('echo'), { content: [{}] })
  t.same(events.ended, [])
})

const refusals: Array<[name: string, status: number, error: object]> = [
  ['credentials', 401, { code: 'upstream_unavailable', message: /refused our credentials/ }],
  ['a redirect', 307, { code: 'upstream_protocol', message: /redirects/ }],
  ['a fault', 500, { code: 'upstream_unavailable', data: { outcome: 'unknown' } }]
]
for (const [name, status, error] of refusals) {
  t.test(`a POST that is answered with ${name} fails its call, which is sent once`, async (t) => {
    const { peer, call } = await openSse(t)
    peer.override(isCall('echo'), (response) => {
      response.writeHead(status, { Location: 'http://169.254.169.254/' }).end()
    })
    const failure = await call('echo').catch((error: unknown) => error)
    t.match(failure, error)
    t.notMatch((failure as Error).message, /169\.254|hunter2|session=/)
    t.equal(peer.seen.filter(isCall('echo')).length, 1)
    t.match(await call('echo'), { content: [{}] }, 'the next call works')
  })
}

t.test('a POST that breaks is a call whose outcome is unknown', async (t) => {
  const { peer, call } = await openSse(t)
  peer.override(isCall('echo'), (response) => {
    response.socket?.destroy()
  })
  await t.rejects(call('echo'), { code: 'upstream_lost', data: { outcome: 'unknown' } })
  t.match(await call('echo'), { content: [{}] })
})

t.test('events that are no messages are left out, and the stream goes on', async (t) => {
  const { peer, call, logged } = await openSse(t)
  peer.write(
    ': keep-alive\n\nevent: ping\ndata: 2025\n\ndata: hello\n\ndata: {"jsonrpc":\n\nid: 7\ndata:\n\nretry: 5\n\n'
  )
  t.match(await call('echo'), { content: [{}] })
  t.equal(logged.filter(({ msg }) => msg === 'left out an event of the upstream').length, 2)
})

t.test('an answer that is broken JSON fails its own call, told by its id at the front', async (t) => {
  const { peer, call, events } = await openSse(t)
  const other = call('slow')
  peer.override(isCall('echo'), (response, { message }) => {
    response.writeHead(202).end()
    peer.write(`data: {"jsonrpc":"2.0","id":${String(message?.['id'])},"result":{"cut\n\n`)
  })
  await t.rejects(call('echo'), { code: 'upstream_protocol', message: /not valid JSON/ })
  await call('release')
  t.match(await other, { content: [{ text: 'slow is done' }] })
  t.same(events.ended, [])
})

t.test('invalid UTF-8 ends the connection, because what was lost is unknown', async (t) => {
  const { peer, call, events } = await openSse(t)
  const lost = t.rejects(call('slow'), { code: 'upstream_protocol', data: { outcome: 'unknown' } })
  await until(() => peer.server.calls('slow') === 1, 'the call is there')
  peer.write(Buffer.from('data: {"a":"\xff"}\n\n', 'latin1') as unknown as string)
  await lost
  t.equal(events.ended.length, 1)
})

const strangers: Array<[name: string, status: number, type: string, body: string, message: RegExp]> = [
  ['a page', 200, 'text/html', '<html>', /Content-Type/],
  ['JSON', 200, 'application/json', '{"jsonrpc":"2.0","id":1,"result":{}}', /does not speak HTTP\+SSE/],
  ['405', 405, 'text/plain', '', /GET is refused \(HTTP 405\)/],
  [
    'a stream of something else',
    200,
    'text/event-stream',
    'data: {"jsonrpc":"2.0","method":"x"}\n\n',
    /does not begin with the event "endpoint"/
  ],
  ['a stream that ends', 200, 'text/event-stream', ': bye\n\n', /ended without the event "endpoint"/]
]
for (const [name, status, type, body, message] of strangers) {
  t.test(`a URL that answers GET with ${name} is no HTTP+SSE, which is told`, async (t) => {
    const peer = await startSseUpstream()
    t.teardown(peer.close)
    peer.override(
      ({ method }) => method === 'GET',
      (response) => {
        response.writeHead(status, { 'Content-Type': type }).end(body)
      }
    )
    await t.rejects(testConnector().connector.connect(sseDefinition(peer.url), handshake, recordingEvents()), {
      code: 'upstream_protocol',
      message
    })
    t.equal(peer.seen.length, 1, 'nothing was posted')
  })
}

t.test(
  'a server that wants other credentials, redirects, is down or stays mute cannot be connected to, and why is told',
  async (t) => {
    const peer = await startSseUpstream()
    t.teardown(peer.close)
    const connect = (overrides: Partial<HttpDefinition> = {}) =>
      testConnector().connector.connect(sseDefinition(peer.url, overrides), handshake, recordingEvents())
    for (const status of [401, 403, 429, 503]) {
      peer.override(
        ({ method }) => method === 'GET',
        (response) => {
          response.writeHead(status).end()
        }
      )
      await t.rejects(connect(), { code: 'upstream_unavailable', data: { status } })
    }
    peer.override(
      ({ method }) => method === 'GET',
      (response) => {
        response.writeHead(302, { Location: 'http://169.254.169.254/' }).end()
      }
    )
    await t.rejects(connect(), { code: 'upstream_protocol', message: /redirects \(HTTP 302\)/ })
    peer.override(
      ({ method }) => method === 'GET',
      (response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': hello\n\n')
      }
    )
    await t.rejects(connect({ connectMs: 200 }), { code: 'upstream_unavailable', message: /connectMs/ })
    await until(() => peer.streams() === 0, 'the stream is closed')
    await peer.close()
    await t.rejects(connect(), { code: 'upstream_unavailable', message: /ECONNREFUSED/ })
  }
)

t.test('a server that ends during the handshake is to be tried again, and its owner hears nothing', async (t) => {
  const peer = await startSseUpstream()
  t.teardown(peer.close)
  peer.override(isMethod('initialize'), (response) => {
    response.writeHead(202).end()
    peer.cut()
  })
  const events = recordingEvents()
  await t.rejects(testConnector().connector.connect(sseDefinition(peer.url), handshake, events), {
    code: 'upstream_unavailable',
    message: /ended during its start/
  })
  t.same(events.ended, [])
})
