// How listen streams end: by the gateway with a good-bye (2026-07-28 basic/patterns/subscriptions "Graceful Closure"),
// by the client at any time, and for those who do not read them without one.

import { moveClock } from '../../kit/moving-clock.ts'
import { type Teardown, until } from '../../kit/until.ts'
import t, { type Test } from 'tap'
import { acmeGateway, authOf, keyOf } from '../../kit/acme-gateway.ts'
import { configOf, gateway, key } from '../../kit/gateway.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { modernListen, type ModernStream } from '../../kit/modern-listen.ts'
import { startModern } from '../../kit/modern-server.ts'

const idKey = 'io.modelcontextprotocol/subscriptionId'
const ack = (stream: ModernStream) => stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')
const filter = { toolsListChanged: true, resourceSubscriptions: ['test://one'] }

async function acme(t: Teardown) {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const options = {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' }, other: { upstreams: ['up'], prefix: '' } }
  }
  const made = await gateway(t, { ...options, overrides: { keepAliveMs: 50 } })
  return {
    upstream,
    made,
    options,
    legs: () => [...upstream.server.listens].filter((listen) => 'resourceSubscriptions' in listen.filter)
  }
}

/** The last two messages of a stream that was ended as it should be. */
function ended(t: Test, stream: ModernStream, id: unknown): void {
  const [cancelled, result] = stream.messages.slice(-2)
  t.match(cancelled, {
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId: id, reason: String, _meta: { [idKey]: id } }
  })
  t.notOk('id' in cancelled)
  t.same(Object.keys(result).toSorted(), ['id', 'jsonrpc', 'result'])
  t.equal(result.id, id)
  t.same(result.result, {
    resultType: 'complete',
    _meta: { [idKey]: id, 'io.modelcontextprotocol/serverInfo': { name: 'gatehouse', version: '0.0.0-test' } }
  })
}

t.test('a gateway that stops ends its streams at once and says so', async (t) => {
  const { made, legs } = await acme(t)
  const streams = [
    await modernListen(made.url(), filter, { token: key, id: 7 }),
    await modernListen(made.url(), {}, { token: key, id: 'seven' })
  ]
  await Promise.all(streams.map(ack))
  const began = performance.now()
  await made.close()
  t.ok(performance.now() - began < 20_000, 'nobody waits for them')
  await Promise.all(streams.map((stream) => stream.ended))
  for (const [stream, id] of [
    [streams[0], 7],
    [streams[1], 'seven']
  ] as const)
    if (stream !== undefined) ended(t, stream, id)
  await until('and so are those at the upstreams', () => legs().length === 0)
})

t.test('a stream ends with its endpoint, and those of other endpoints stay', async (t) => {
  const { made, options, legs } = await acme(t)
  const [gone, staying] = [
    await modernListen(made.url('other'), filter, { token: key, id: 1 }),
    await modernListen(made.url(), filter, { token: key, id: 1 })
  ]
  t.teardown(() => staying.close())
  await Promise.all([gone, staying].map(ack))
  const { other: _gone, ...endpoints } = options.endpoints
  made.reload(configOf({ ...options, endpoints }))
  await gone.ended
  ended(t, gone, 1)
  await until('its stream at the upstream is closed', () => legs().length === 1)
  t.notOk(staying.closed)
  t.same(staying.said(), [], 'nothing has changed there')
})

t.test('a reload that changes what an endpoint offers is told', async (t) => {
  const { made, options } = await acme(t)
  await modernRequest(made.url(), 'tools/list', {}, { token: key })
  const stream = await modernListen(made.url(), { toolsListChanged: true, promptsListChanged: true }, { token: key })
  t.teardown(() => stream.close())
  await ack(stream)
  made.reload(configOf({ ...options, endpoints: { default: { upstreams: ['up'], prefix: 'p' } } }))
  await until('both lists have other names', () => stream.said().length === 2)
  t.same(stream.said().toSorted(), ['notifications/prompts/list_changed', 'notifications/tools/list_changed'])
})

t.test('a stream ends when its token does, and another one stays', async (t) => {
  t.teardown(() => moveClock(0))
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const place = await acmeGateway(t, { overrides: { keepAliveMs: 50 } })
  place.reload(
    configOf({
      upstreams: { up: { type: 'http', url: upstream.url } },
      endpoints: { default: { upstreams: ['up'], prefix: '' } },
      auth: { ...(authOf(place.issuer) as object), leewaySeconds: 0 }
    })
  )
  const seconds = Math.floor(Date.now() / 1000)
  const brief = await modernListen(place.url(), filter, {
    token: await place.bearer('JWT', 'ada', { exp: seconds + 600 }),
    id: 3
  })
  const lasting = await place.bearer('JWT', 'bob', { exp: seconds + 3_600 })
  const long = await modernListen(place.url(), filter, { token: lasting })
  t.teardown(() => long.close())
  await Promise.all([brief, long].map(ack))
  moveClock(540_000)
  const beats = (): number => brief.text.split(': keep-alive').length
  const before = beats()
  await until('it is kept, before its time is over', () => beats() > before + 2)
  moveClock(601_000)
  await brief.ended
  ended(t, brief, 3)
  upstream.server.updated('test://one')
  await long.next(({ method }) => method === 'notifications/resources/updated')
  t.same(
    brief.said().filter((method) => method.startsWith('notifications/resources')),
    []
  )
})

t.test('a stream ends when its key is taken away', async (t) => {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const options = {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  }
  const keys = [
    { name: 'ada', key: keyOf.ada },
    { name: 'bob', key: keyOf.bob }
  ]
  const made = await gateway(t, { ...options, auth: { keys } })
  const [hers, his] = [
    await modernListen(made.url(), filter, { token: keyOf.ada, id: 1 }),
    await modernListen(made.url(), filter, { token: keyOf.bob })
  ]
  t.teardown(() => his.close())
  await Promise.all([hers, his].map(ack))
  made.reload(configOf({ ...options, auth: { keys: keys.slice(1) } }))
  await hers.ended
  ended(t, hers, 1)
  t.equal((await modernListen(made.url(), filter, { token: keyOf.ada })).status, 401)
  t.notOk(his.closed)
})

t.test('who does not read is cut off, and another one gets everything', async (t) => {
  const { made, legs } = await acme(t)
  const long = `test://one/${'x'.repeat(64 * 1024)}`
  const [lazy, eager] = [
    await modernListen(made.url(), filter, { token: key }),
    await modernListen(made.url(), filter, { token: key })
  ]
  t.teardown(() => eager.close())
  await Promise.all([lazy, eager].map(ack))
  lazy.pause()
  let sent = 0
  await until('the lazy one is cut off', async () => {
    for (const { id, peer } of legs())
      peer.reply({
        jsonrpc: '2.0',
        method: 'notifications/resources/updated',
        params: { uri: `${long}${sent}`, _meta: { [idKey]: id } }
      })
    sent++
    await until('the eager one has heard it', () => eager.text.includes(`${long}${sent - 1}"`))
    return legs().length === 1
  })
  t.ok(sent * long.length < 32 * 1024 * 1024, `after ${sent} messages`)
  t.equal(made.log.filter(({ msg }) => msg === 'a client did not read its stream; closed').length, 1)
  t.equal(eager.said().filter((line) => line.startsWith('notifications/resources')).length, sent)
})
