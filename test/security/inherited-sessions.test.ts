// Attack: a session outlives what it was opened for: its tenant is another one of the same name, its record in the
// store was altered, or its end was lost with a Redis that came back from a dump.

import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { sessionEndsKey, sessionKeys, sessionsChannel, tenantsKey } from '../../src/store/keys.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { acmeGateway, keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send, type LegacyClient } from '../kit/client.ts'
import { configOf, gateway, type TestGatewayOptions } from '../kit/gateway.ts'
import { redis, type PrivateRedis } from '../kit/redis.ts'
import { startUpstream } from '../kit/upstream.ts'
import { until } from '../kit/until.ts'
import { quiet } from '../store/kit.ts'

const ping = async (client: LegacyClient): Promise<number> => (await client.request('ping')).status
/** The same session at another gateway. */
const pingAt = async (url: string, { headers }: LegacyClient): Promise<number> =>
  (await send(url, { headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }) })).status
const keyAt = sessionKeys('acme', 'default')

/** Two tenants, so that one of them can go. */
async function twoTenants(t: Test, store = 'memory:') {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const options: TestGatewayOptions = {
    upstreams: { up: { type: 'http', url: upstream.url } },
    auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
    store,
    tenants: { other: { auth: { keys: [{ name: 'eve', key: keyOf.bob }] }, upstreams: {} } }
  }
  const whole = configOf(options) as { tenants: Record<string, unknown> }
  const { acme: _removed, ...others } = whole.tenants
  return { options, whole, without: { ...whole, tenants: others } }
}

/** A Redis, and a connection of our own to it. */
async function redisWithAccess(t: Test): Promise<{ server: PrivateRedis; direct: Redis }> {
  const server = await redis(t)
  const direct = new Redis(server.url)
  direct.on('error', () => {})
  t.teardown(() => direct.disconnect())
  return { server, direct }
}

t.test('a tenant that was removed and made again has none of the sessions of the one before', async (t) => {
  const { options, whole, without } = await twoTenants(t)
  const { url, reload } = await gateway(t, options)
  const before = await legacyClient(url(), keyOf.ada)
  const neighbour = await legacyClient(url('default', 'other'), keyOf.bob)
  reload(whole)
  t.equal(await ping(before), 200, 'positive control: a reload that keeps the tenant keeps its sessions')
  reload(without)
  t.equal(await ping(before), 404)
  reload(whole)
  const again = await before.request('ping')
  t.equal(again.status, 404)
  t.equal(again.json.error.data.reason, 'session_unknown')
  t.equal(await ping(await legacyClient(url(), keyOf.ada)), 200, 'its own sessions work')
  reload(without)
  reload(whole)
  t.equal(await ping(before), 404, 'also where nobody asked meanwhile')
  t.equal(await ping(neighbour), 200, 'the sessions of another tenant go on')
})

t.test('nor where it was removed, or made again, while the gateway was stopped', async (t) => {
  const store = `file:${join(t.testdir(), 'gatehouse.db')}`
  const { options } = await twoTenants(t, store)
  const { tenants, ...acmeOnly } = options
  const run = async (config: TestGatewayOptions, use: (url: string) => Promise<void>): Promise<void> => {
    const made = await gateway(t, config)
    await use(made.url())
    await made.close()
  }
  let before: LegacyClient
  await run(options, async (url) => {
    before = await legacyClient(url, keyOf.ada)
  })
  await run(options, async (url) => {
    t.equal(await pingAt(url, before), 200, 'positive control: an ordinary restart keeps the session')
  })
  await run(acmeOnly, async (url) => {
    t.equal(await pingAt(url, before), 200, 'so does one that takes another tenant away')
  })
  await run({ ...options, tenants: { ...tenants, acme: undefined } }, async (url) => {
    t.equal(await pingAt(url, before), 404)
  })
  await run(options, async (url) => {
    t.equal(await pingAt(url, before), 404)
    t.equal(await ping(await legacyClient(url, keyOf.ada)), 200)
  })
})

t.test('the removal reaches other gateways, and holds where Redis was away', async (t) => {
  const { server } = await redisWithAccess(t)
  const { options, whole, without } = await twoTenants(t, server.url)
  const [one, two] = [await gateway(t, options), await gateway(t, options)]
  const first = await legacyClient(one.url(), keyOf.ada)
  t.equal(await pingAt(two.url(), first), 200, 'positive control: known at both')
  one.reload(without)
  await until('the other gateway to know', async () => (await pingAt(two.url(), first)) === 404)
  one.reload(whole)

  const second = await legacyClient(one.url(), keyOf.ada)
  t.equal(await pingAt(two.url(), second), 200)
  server.pause()
  await until('Redis to be missed', async () => (await ping(second)) === 503)
  one.reload(without)
  one.reload(whole)
  server.resume()
  await until('Redis to be back', async () => (await ping(second)) !== 503)
  t.equal(await ping(second), 404)
  await until('the other gateway to know', async () => (await pingAt(two.url(), second)) === 404)
})

t.test('a session record of another shape than the gateway writes counts as absent, and is logged', async (t) => {
  const store = await createSqliteStore({ path: ':memory:', clock: Date, log: quiet })
  const { url, log } = await acmeGateway(t, { overrides: { store } })
  const alter = async (change: object): Promise<number> => {
    const client = await legacyClient(url(), keyOf.ada)
    const key = keyAt(client.sessionId)
    const record = JSON.parse((await store.get(key)) ?? '') as { owner: object }
    const text = JSON.stringify({ ...record, ...change }).replace('"own-proto"', '"__proto__"')
    await store.set(key, text, { ttlMs: 60_000 })
    const heard = Promise.withResolvers<void>()
    const stop = await store.subscribe(sessionsChannel, () => heard.resolve())
    await store.publish(sessionsChannel, `=${key}`)
    await heard.promise // And by the gateway, which listened first: it has no copy of the record any more.
    await stop()
    return await ping(client)
  }
  t.equal(await alter({}), 200, 'positive control')
  t.equal(await alter({ logLevel: 'debug', capabilities: { roots: {} } }), 200)
  const damaged = [
    { revision: 'own-proto' },
    { revision: '2026-07-28' },
    { revision: ['2025-11-25'] },
    { logLevel: 'loud' },
    { logLevel: {} },
    { capabilities: [] },
    { capabilities: null },
    { clientInfo: 'me' },
    { clientInfo: { name: {} } },
    { owner: [] },
    { owner: { tenant: 'acme', subject: 'ada', issuer: {}, clientId: 'x' } },
    { epoch: undefined },
    { epoch: -1 },
    { seat: '1' },
    { touchedAt: 'now' }
  ]
  for (const change of damaged) t.equal(await alter(change), 404, JSON.stringify(change))
  t.equal(log.filter(({ msg }) => String(msg).includes('is damaged')).length, damaged.length)
})

t.test('an acknowledged DELETE holds although Redis came back from a dump that is older', async (t) => {
  const { server, direct } = await redisWithAccess(t)
  const options = { store: server.url, limits: { sessionsPerPrincipal: 2 } }
  const one = await acmeGateway(t, options)
  const two = await acmeGateway(t, options)
  const [kept, ended] = [await legacyClient(one.url(), keyOf.ada), await legacyClient(two.url(), keyOf.ada)]
  await direct.save()
  await server.restart()
  for (const { url } of [one, two]) await until('Redis to be back', async () => (await pingAt(url(), kept)) === 200)
  t.equal(await pingAt(one.url(), ended), 200, 'positive control: a restart of Redis that lost nothing keeps sessions')

  t.equal((await ended.end()).status, 204)
  // One that never saw the session, and takes over from those that did.
  const young = await acmeGateway(t, options)
  await Promise.all([one.close(), two.close()])
  const stored = `gatehouse:${keyAt(ended.sessionId)}`
  t.equal(await direct.exists(stored), 0)
  await server.restart()
  t.equal(await direct.exists(stored), 1, 'it is in the store again')
  await until('Redis to be back', async () => (await pingAt(young.url(), ended)) !== 503)
  t.equal(await pingAt(young.url(), ended), 404)
  t.equal(await pingAt((await acmeGateway(t, options)).url(), ended), 404, 'also for gateways that start later')

  const next = [await legacyClient(young.url(), keyOf.ada), await legacyClient(young.url(), keyOf.ada)]
  t.same(await Promise.all(next.map(ping)), [200, 200], 'the slots of sessions that ended so are free')
  t.equal((await next[0]?.end())?.status, 204)
  t.same(await Promise.all(next.map(ping)), [404, 200], 'and an end in a store that lost nothing ends one session')
})

t.test('many sessions that end at once at two gateways are no loss', async (t) => {
  const { server } = await redisWithAccess(t)
  const [one, two] = [await acmeGateway(t, { store: server.url }), await acmeGateway(t, { store: server.url })]
  const kept = await legacyClient(one.url(), keyOf.ada)
  const ends = await Promise.all(
    Array.from({ length: 60 }, async (_, n) => {
      const client = await legacyClient((n % 2 === 0 ? one : two).url(), keyOf.ada)
      return (await send((n % 3 === 0 ? one : two).url(), { method: 'DELETE', headers: client.headers })).status
    })
  )
  t.same(new Set(ends), new Set([204]))
  t.same(await Promise.all([pingAt(one.url(), kept), pingAt(two.url(), kept)]), [200, 200])
  t.notOk([...one.log, ...two.log].some(({ msg }) => String(msg).includes('has lost the end')))
})

t.test('a value of another type than the gateway writes counts as absent, and is logged', async (t) => {
  const { server, direct } = await redisWithAccess(t)
  const { url, log } = await acmeGateway(t, { store: server.url, limits: { sessionsPerPrincipal: 1 } })
  const poison = async (key: string): Promise<void> => {
    await direct.del(`gatehouse:${key}`)
    await direct.rpush(`gatehouse:${key}`, 'a list')
  }
  const logged = (): number => log.filter(({ msg }) => String(msg).includes('another type')).length

  const client = await legacyClient(url(), keyOf.ada)
  t.equal((await send(url(), { headers: client.headers, method: 'DELETE' })).status, 204, 'positive control')
  t.equal(logged(), 0)
  const poisoned = await legacyClient(url(), keyOf.ada)
  const seats = (await direct.keys('gatehouse:principal-seat:*')).map((name) => name.replace('gatehouse:', ''))
  t.equal(seats.length, 1)
  for (const key of [keyAt(poisoned.sessionId), ...seats]) await poison(key)
  await direct.publish(`gatehouse:${sessionsChannel}`, `=${keyAt(poisoned.sessionId)}`)
  await until('the session to be unknown', async () => (await ping(poisoned)) === 404)
  t.equal(logged(), 1)
  const next = await legacyClient(url(), keyOf.ada)
  t.equal(await ping(next), 200, 'the slot is free')
  t.equal(logged(), 2)

  await poison(sessionEndsKey('acme'))
  t.equal((await next.end()).status, 204, 'an end is counted anew')
  t.equal(await ping(next), 404)
  await direct.set(`gatehouse:${sessionEndsKey('acme')}`, 'many')
  const last = await legacyClient(url(), keyOf.ada)
  t.equal(await ping(last), 200)
  t.equal((await last.end()).status, 204)

  await direct.del(`gatehouse:${tenantsKey}`)
  await direct.set(`gatehouse:${tenantsKey}`, 'a text')
  const second = await acmeGateway(t, { store: server.url })
  t.ok(second.log.some(({ msg }) => String(msg).includes('another type')))
  t.same(await direct.lrange(`gatehouse:${tenantsKey}`, 0, -1), ['acme'])
})
