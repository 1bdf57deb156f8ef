// Cases 29 and 30: a stream outlives the request that opened it, but not the credential that it was opened with.

import t from 'tap'
import { acme, authOf, keyOf } from '../kit/acme.ts'
import { legacyClient } from '../kit/client.ts'
import { configOf } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'

t.test('a stream ends when its token does', async (t) => {
  const house = await acme(t, { overrides: { keepAliveMs: 50 } })
  const strict = configOf({ upstreams: { up: { type: 'http', url: house.upstream.url } }, endpoints: { default: { upstreams: ['up'], prefix: '' } }, auth: { ...authOf(house.issuer) as object, leewaySeconds: 0 } })
  house.reload(strict)
  const seconds = Math.floor(Date.now() / 1000)
  const brief = await legacyClient(house.url(), await house.bearer('JWT', 'ada', { exp: seconds + 3 }))
  const long = await legacyClient(house.url(), await house.bearer('JWT', 'bob'))
  const [ending, staying] = [await brief.listen(), await long.listen()]
  let stayed = true
  void staying.ended.then(() => { stayed = false })
  await ending.ended
  t.ok(Date.now() >= (seconds + 3) * 1000, 'not before')
  t.ok(Date.now() < (seconds + 8) * 1000)
  t.equal((await brief.request('ping')).status, 401)
  t.ok(stayed, 'another one stays')
  staying.close()
})

t.test('a stream ends when its key is taken away, and keeps nothing alive', async (t) => {
  const house = await acme(t, { overrides: { keepAliveMs: 50 } })
  const ada = await legacyClient(house.url(), keyOf.ada)
  const bob = await legacyClient(house.url(), keyOf.bob)
  const [hers, his] = [await ada.listen(), await bob.listen()]
  let stayed = true
  void his.ended.then(() => { stayed = false })
  house.reload(configOf({ upstreams: { up: { type: 'http', url: house.upstream.url } }, endpoints: { default: { upstreams: ['up'], prefix: '' } }, auth: { keys: [{ name: 'bob', key: keyOf.bob }] } }))
  await hers.ended
  t.equal((await ada.request('ping')).status, 401)
  t.equal((await bob.request('ping')).status, 200)
  t.ok(stayed)
  his.close()
})

t.test('a stream ends with its endpoint and its tenant', async (t) => {
  const house = await acme(t, { overrides: { keepAliveMs: 50 } })
  const ada = await legacyClient(house.url('files'), keyOf.ada)
  const stream = await ada.listen()
  house.reload(configOf({ upstreams: { up: { type: 'http', url: house.upstream.url } }, auth: authOf(house.issuer) }))
  await stream.ended
  await until('the endpoint is gone', async () => (await ada.request('ping')).status === 404)
})
