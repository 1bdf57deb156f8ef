// Attack: a stream is kept open after its credential has expired or was taken away.

import { moveClock } from '../kit/moving-clock.ts'
import t from 'tap'
import { acmeGateway, authOf, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { listenEvents, type EventStream } from '../kit/events.ts'
import { configOf } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'

t.test('a stream ends when its token does', async (t) => {
  const acme = await acmeGateway(t, { overrides: { keepAliveMs: 50 } })
  const strict = configOf({
    upstreams: { up: { type: 'http', url: acme.upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: { ...(authOf(acme.issuer) as object), leewaySeconds: 0 }
  })
  acme.reload(strict)
  const seconds = Math.floor(Date.now() / 1000)
  const brief = await legacyClient(acme.url(), await acme.bearer('JWT', 'ada', { exp: seconds + 1_200 }))
  const long = await legacyClient(acme.url(), await acme.bearer('JWT', 'bob', { exp: seconds + 7_200 }))
  const [ending, staying] = [await listenEvents(acme.url(), brief), await listenEvents(acme.url(), long)]
  t.teardown(() => staying.cut())
  /** Callers are checked with the heartbeats: a stream that has had some more has passed a check. */
  const hasStayed = async (stream: EventStream): Promise<boolean> => {
    const beats = (): number => stream.text().split(': keep-alive\n\n').length
    const before = beats()
    await until('its heartbeats', () => stream.closed || beats() > before + 2)
    return !stream.closed
  }
  t.teardown(() => moveClock(0))
  moveClock(600_000)
  t.equal((await brief.request('ping')).status, 200)
  t.ok(await hasStayed(ending), 'not before')
  moveClock(1_201_000)
  await ending.ended
  t.equal((await brief.request('ping')).status, 401)
  t.ok(await hasStayed(staying), 'another one stays')
})

t.test('a stream ends when its key is taken away, and keeps nothing alive', async (t) => {
  const acme = await acmeGateway(t, { overrides: { keepAliveMs: 50 } })
  const ada = await legacyClient(acme.url(), keyOf.ada)
  const bob = await legacyClient(acme.url(), keyOf.bob)
  const [hers, his] = [await ada.listen(), await bob.listen()]
  let stayed = true
  void his.ended.then(() => {
    stayed = false
  })
  acme.reload(
    configOf({
      upstreams: { up: { type: 'http', url: acme.upstream.url } },
      endpoints: { default: { upstreams: ['up'], prefix: '' } },
      auth: { keys: [{ name: 'bob', key: keyOf.bob }] }
    })
  )
  await hers.ended
  t.equal((await ada.request('ping')).status, 401)
  t.equal((await bob.request('ping')).status, 200)
  t.ok(stayed)
  his.close()
})

t.test('a stream ends with its endpoint and its tenant', async (t) => {
  const acme = await acmeGateway(t, { overrides: { keepAliveMs: 50 } })
  const ada = await legacyClient(acme.url('files'), keyOf.ada)
  const stream = await ada.listen()
  acme.reload(configOf({ upstreams: { up: { type: 'http', url: acme.upstream.url } }, auth: authOf(acme.issuer) }))
  await stream.ended
  await until('the endpoint is gone', async () => (await ada.request('ping')).status === 404)
})
