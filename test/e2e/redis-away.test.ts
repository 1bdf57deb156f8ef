// The gateway on a Redis that dies, freezes and comes back: whatever needs a session is refused within a second, never
// waits and never passes, and all works again by itself.

import t, { type Test } from 'tap'
import { jsonHeaders, legacyClient, send, type Answer, type LegacyClient } from '../kit/client.ts'
import { configOf, key } from '../kit/gateway.ts'
import { canaryServer, type CanaryServer } from '../kit/canary-server.ts'
import { serve } from '../kit/process.ts'
import { redis, type PrivateRedis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'

/** What is promised is a second. What waits for Redis, or for an upstream, takes longer than any busy machine does. */
const promisedMs = 20_000

interface House {
  readonly redis: PrivateRedis
  readonly web: CanaryServer
  /** Of two processes on the same Redis. */
  readonly urls: readonly [string, string]
}

async function acme(t: Test): Promise<House> {
  const server = await redis(t)
  const web = await canaryServer(t)
  const config = configOf({
    upstreams: { web: { url: web.url } },
    store: server.url,
    limits: { coldStartMs: 60_000 },
    top: { logLevel: 'warn' }
  })
  const [a, b] = await Promise.all([serve(t, config), serve(t, config)])
  return { redis: server, web, urls: [a.url, b.url] }
}

const endpoint = (url: string): string => `${url}/t/acme/mcp`
const ready = async (url: string): Promise<boolean> =>
  (await send(`${url}/health/ready`, { method: 'GET' })).status === 200
const tools = (client: LegacyClient): Promise<Answer> => client.request('tools/list')
/** The same session at another process. */
const at = (url: string, client: LegacyClient, method = 'tools/list'): Promise<Answer> =>
  send(endpoint(url), { headers: client.headers, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method }) })
const remove = (url: string, client: LegacyClient): Promise<Answer> =>
  send(endpoint(url), { method: 'DELETE', headers: client.headers })
const initialize = (url: string, path = 'mcp'): Promise<Answer> =>
  send(`${url}/t/acme/${path}`, {
    headers: { ...jsonHeaders, authorization: `Bearer ${key}` },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
    })
  })

/** Sends one request after the other until one is refused. @returns when the last one passed */
async function lastPass(client: LegacyClient): Promise<number> {
  let passedAt = performance.now()
  await until('the first refusal', async () => {
    const { status } = await tools(client)
    if (status === 200) passedAt = performance.now()
    return status === 503
  })
  return passedAt
}

async function refusedInTime(t: Test, what: string, request: () => Promise<Answer>): Promise<void> {
  const began = performance.now()
  const { status, headers, json } = await request()
  const tookMs = performance.now() - began
  t.match(
    { status, reason: json?.error?.data?.reason, retryAfter: headers['retry-after'] },
    { status: 503, reason: 'unavailable', retryAfter: /^\d+$/ },
    `${what}: 503, try again`
  )
  t.ok(tookMs < promisedMs, `${what}: in time (${Math.round(tookMs)} ms)`)
}

async function allRefused(t: Test, url: string, client: LegacyClient): Promise<void> {
  await Promise.all([
    refusedInTime(t, 'a request', () => at(url, client)),
    refusedInTime(t, 'a ping', () => at(url, client, 'ping')),
    refusedInTime(t, 'a call', () =>
      send(endpoint(url), {
        headers: client.headers,
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'web__mirror', arguments: { canary: 'refused' } }
        })
      })
    ),
    refusedInTime(t, 'a notification', () => client.notify('notifications/cancelled', { requestId: 1 })),
    refusedInTime(t, 'a GET stream', () =>
      send(endpoint(url), { method: 'GET', headers: { ...client.headers, accept: 'text/event-stream' } })
    ),
    refusedInTime(t, 'the end of a session', () => remove(url, client)),
    refusedInTime(t, 'initialize', () => initialize(url)),
    send(`${url}/health/live`, { method: 'GET' }).then(({ status }) => t.equal(status, 200, 'the process is live')),
    send(`${url}/health/ready`, { method: 'GET' }).then(({ status, headers }) =>
      t.match({ status, retry: headers['retry-after'] }, { status: 503, retry: '1' }, 'and not ready')
    )
  ])
}

t.test('Redis killed: sessions are refused at once; it heals when Redis is back, without a restart', async (t) => {
  const {
    redis,
    web,
    urls: [url]
  } = await acme(t)
  const client = await legacyClient(endpoint(url), key)
  t.equal((await tools(client)).json.result.tools.length, 4, 'used a moment before')
  await redis.stop()
  const killedAt = performance.now()
  t.ok((await lastPass(client)) - killedAt < promisedMs, 'the local copy is not used any longer than that')
  await allRefused(t, url, client)
  await allRefused(t, url, client)
  t.equal(web.executed.size, 0, 'nothing passed')

  await redis.restart()
  await until('readiness', () => ready(url))
  t.equal((await tools(client)).status, 404, 'Redis came back empty: the session is gone')
  const next = await legacyClient(endpoint(url), key)
  t.equal(
    (await next.request('tools/call', { name: 'web__mirror', arguments: { canary: 'healed' } })).json.result.content[0]
      .text,
    'healed'
  )
})

t.test(
  'Redis frozen: no pass from the local copy, no wait; it heals when Redis goes on, and the sessions are still there',
  async (t) => {
    const {
      redis,
      web,
      urls: [url, other]
    } = await acme(t)
    const client = await legacyClient(endpoint(url), key)
    const ended = await legacyClient(endpoint(url), key)
    for (const session of [client, ended]) {
      t.equal((await tools(session)).status, 200)
      t.equal((await at(other, session)).status, 200, 'known at the other process too')
    }

    redis.pause()
    const frozenAt = performance.now()
    // Used all the time, so that a copy is always at hand.
    t.ok((await lastPass(client)) - frozenAt < promisedMs, 'the local copy is not used any longer than that')
    await refusedInTime(t, 'the end of a session at the other process', () => remove(other, ended))
    for (const session of [client, ended]) {
      await allRefused(t, url, session)
      await refusedInTime(t, 'at the other process', () => at(other, session))
    }
    t.equal(web.executed.size, 0, 'nothing passed')

    redis.resume()
    await until('readiness', async () => (await ready(url)) && (await ready(other)))
    t.equal((await tools(client)).status, 200, 'the session works again')
    t.equal((await at(other, client)).status, 200)
    // What was refused may have taken effect or not: nobody can know. But both processes must say the same.
    const statuses = [(await tools(ended)).status, (await at(other, ended)).status]
    t.equal(statuses[0], statuses[1], 'both processes agree on the session whose end was refused')
    t.ok(statuses[0] === 200 || statuses[0] === 404)
  }
)

t.test('a blink of Redis, too short to be noticed: an end at the other process is not missed', async (t) => {
  const {
    redis,
    urls: [url, other]
  } = await acme(t)
  let acknowledged = 0
  await until('three acknowledged ends', async () => {
    // The blink before may have been noticed.
    await until('readiness', async () => (await ready(url)) && (await ready(other)))
    const client = await legacyClient(endpoint(url), key)
    t.equal((await tools(client)).status, 200)
    redis.pause()
    const pausedAt = performance.now()
    const removed = remove(other, client)
    await until('a blink', () => performance.now() > pausedAt + 100)
    redis.resume()
    // On a busy machine it may have been longer than a command may take; then the end was refused.
    if ((await removed).status !== 204) return false
    const removedAt = performance.now()
    await until('the end to be known', async () => (await tools(client)).status === 404)
    t.ok(performance.now() - removedAt < promisedMs)
    return ++acknowledged === 3
  })
})

t.test('a session that is ended at one process is unknown at the other within a second', async (t) => {
  const {
    urls: [url, other]
  } = await acme(t)
  const client = await legacyClient(endpoint(url), key)
  t.equal((await tools(client)).status, 200)
  t.equal((await at(other, client)).status, 200)
  const stream = await client.listen()
  t.equal((await remove(other, client)).status, 204)
  const removedAt = performance.now()
  await until('the end to be known', async () => (await tools(client)).status === 404)
  await stream.ended
  t.ok(performance.now() - removedAt < promisedMs)
  t.equal((await at(other, client)).status, 404)
})

t.test('Redis down at the start: the process runs, is not ready, and becomes ready', async (t) => {
  const server = await redis(t)
  await server.stop()
  const web = await canaryServer(t)
  const hanging = await canaryServer(t)
  hanging.override(
    () => true,
    () => {},
    Infinity
  )
  const upstreams = { web: { url: web.url }, hanging: { url: hanging.url } }
  const { url } = await serve(
    t,
    configOf({
      upstreams,
      store: server.url,
      limits: { coldStartMs: 60_000 },
      endpoints: { default: { upstreams: ['web'] }, slow: { upstreams: ['hanging'] } },
      top: { logLevel: 'warn' }
    })
  )
  t.equal((await send(`${url}/health/live`, { method: 'GET' })).status, 200)
  t.notOk(await ready(url))
  await refusedInTime(t, 'initialize', () => initialize(url))
  await refusedInTime(t, 'initialize where an upstream would be waited for', () => initialize(url, 'slow/mcp'))
  await server.restart()
  await until('readiness', () => ready(url))
  t.same(
    (await tools(await legacyClient(endpoint(url), key))).json.result.tools.map(({ name }: { name: string }) => name),
    ['web__mirror', 'web__hold', 'web__ask', 'web__tell']
  )
})
