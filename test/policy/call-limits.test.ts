// Limits of calls, on the wire: what is counted apart, what a caller who has used them up is told, and what stays.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { acmeGateway, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { legacyClient, send, type Answer, type LegacyClient } from '../kit/client.ts'
import { openSse } from '../kit/http-sse-client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { startModern } from '../kit/modern-server.ts'
import { until } from '../kit/until.ts'

type Call = (name?: string) => Promise<Answer>

/** Calls of both eras, by ada unless another is named. */
async function callers(gateway: AcmeGateway, who: 'ada' | 'bob' = 'ada'): Promise<Record<string, Call>> {
  const client = await legacyClient(gateway.url(), keyOf[who])
  return {
    'a session': (name = 'echo') => client.request('tools/call', { name, arguments: {} }),
    '2026-07-28': (name = 'echo') =>
      modernRequest(gateway.url(), 'tools/call', { name, arguments: {} }, { token: keyOf[who] })
  }
}

const statuses = async (calls: number, call: Call): Promise<number[]> => {
  const all = []
  for (let n = 0; n < calls; n++) all.push((await call()).status)
  return all
}

const limited = (t: Test, callLimits: unknown): Promise<AcmeGateway> => acmeGateway(t, { callLimits })

t.test('who has used up a rate is told so by status, headers and message; others go on', async (t) => {
  for (const era of ['a session', '2026-07-28']) {
    const gateway = await limited(t, { slow: { per: ['principal'], perHour: 3 } })
    const { [era]: call } = await callers(gateway)
    const { [era]: colleague } = await callers(gateway, 'bob')
    if (call === undefined || colleague === undefined) throw new Error('no such era')
    const first = await call()
    t.match(first, { status: 200, json: { result: {} } }, era)
    t.equal(first.headers['ratelimit-policy'], '"slow-hour";q=3;w=3600')
    t.match(first.headers['ratelimit'], /^"slow-hour";r=2;t=1200$/)
    t.same(await statuses(2, call), [200, 200])
    const refused = await call()
    t.equal(refused.status, 429)
    const seconds = Number(refused.headers['retry-after'])
    t.ok(seconds > 1_100 && seconds <= 1_200, String(seconds))
    t.equal(refused.headers['ratelimit-policy'], '"slow-hour";q=3;w=3600')
    t.equal(refused.headers['ratelimit'], `"slow-hour";r=0;t=${seconds}`)
    const { error } = refused.json
    t.match(error, { code: 429, data: { reason: 'rate_limited', limit: 'slow' } })
    t.match(error.message, /^More than 3 calls an hour \(limit slow\)\. Retry in \d+ s\.$/)
    t.ok(error.data.retryAfterMs > (seconds - 1) * 1000)
    t.equal(typeof refused.json.id, 'number', 'it names the request')
    t.match(await colleague(), { status: 200, json: { result: {} } }, 'another caller has a limit of their own')
    t.equal(gateway.upstream.server.calls('echo'), 4, 'the upstream heard nothing of what was refused')
    t.ok(gateway.log.some(({ msg, outcome }) => msg === 'call' && outcome === 'rate_limited'))
  }
})

t.test('what is counted apart: all of the tenant, each caller, key, upstream, tool', async (t) => {
  const cases: ReadonlyArray<readonly [name: string, limit: object, ada: number[], other: number[], bob: number[]]> = [
    ['the tenant', {}, [200, 200, 429], [429], [429]],
    ['callers', { per: ['principal'] }, [200, 200, 429], [429], [200]],
    ['keys', { per: ['key'] }, [200, 200, 429], [429], [200]],
    ['upstreams', { per: ['upstream'] }, [200, 200, 429], [429], [429]],
    ['tools', { per: ['tool'] }, [200, 200, 429], [200], [429]],
    ['callers and tools', { per: ['principal', 'tool'] }, [200, 200, 429], [200], [200]],
    ['one caller', { who: { keys: ['bob'] } }, [200, 200, 200], [200], [200]],
    ['one tool', { what: { names: ['ec*'], kinds: ['tool'] } }, [200, 200, 429], [200], [429]]
  ]
  await Promise.all(
    cases.map(async ([name, limit, ada, other, bob]) => {
      const gateway = await limited(t, { two: { ...limit, perDay: 2 } })
      const { 'a session': call = fail } = await callers(gateway)
      const { '2026-07-28': byBob = fail } = await callers(gateway, 'bob')
      t.same(await statuses(3, call), ada, `of ${name}`)
      t.same([(await call('pid')).status], other, `of ${name}: another tool`)
      t.same(await statuses(1, byBob), bob, `of ${name}: another caller`)
    })
  )
})

const fail: Call = () => Promise.reject(new Error('no such era'))

t.test('a token has no key: a limit per key is not about it', async (t) => {
  const gateway = await limited(t, { two: { per: ['key'], perDay: 1 } })
  const token = await gateway.bearer('JWT')
  const call: Call = () => modernRequest(gateway.url(), 'tools/call', { name: 'echo', arguments: {} }, { token })
  t.same(await statuses(3, call), [200, 200, 200])
})

t.test('prompts and resources count; lists, pings and what policy refuses do not', async (t) => {
  const gateway = await acmeGateway(t, {
    callLimits: { day: { perDay: 3 } },
    policy: {
      default: 'allow',
      rules: [{ name: 'no', effect: 'deny', what: { names: ['pid'], kinds: ['tool'] } }]
    }
  })
  const client = await legacyClient(gateway.url(), keyOf.ada)
  for (const method of ['ping', 'tools/list', 'resources/list']) await client.request(method)
  t.match(await client.request('tools/call', { name: 'pid' }), { json: { error: { code: -32602 } } })
  const [prompt] = (await client.request('prompts/list')).json.result.prompts
  const [resource] = (await client.request('resources/list')).json.result.resources
  t.match(await client.request('prompts/get', { name: prompt.name }), { status: 200, json: { result: {} } })
  t.match(await client.request('resources/read', { uri: resource.uri }), { status: 200, json: { result: {} } })
  t.match(await client.request('tools/call', { name: 'echo' }), { status: 200, json: { result: {} } })
  for (const [method, params] of [
    ['prompts/get', { name: prompt.name }],
    ['resources/read', { uri: resource.uri }],
    ['tools/call', { name: 'echo' }]
  ] as const)
    t.match(await client.request(method, params), {
      status: 429,
      json: { error: { data: { reason: 'quota_exceeded' } } }
    })
  t.match(await client.request('tools/list'), { status: 200, json: { result: {} } })
})

t.test('a quota outlives a restart', async (t) => {
  const store = `file:${join(t.testdir(), 'gatehouse.db')}`
  const quota = { perDay: 5, perMonth: 100 }
  const first = await acmeGateway(t, { store, callLimits: { quota } })
  const { 'a session': call = fail } = await callers(first)
  t.same(await statuses(3, call), [200, 200, 200])
  await first.close()
  const second = await acmeGateway(t, { store, callLimits: { quota } })
  const { '2026-07-28': again = fail } = await callers(second)
  const last = await again()
  t.equal(last.headers['ratelimit-policy'], '"quota-day";q=5;w=86400, "quota-month";q=100;w=2592000')
  t.match(last.headers['ratelimit'], /^"quota-day";r=1;t=\d+, "quota-month";r=96;t=\d+$/)
  t.same(await statuses(2, again), [200, 429])
  const refused = await again()
  t.match(refused.json.error.data, { reason: 'quota_exceeded', limit: 'quota' })
  t.ok(Number(refused.headers['retry-after']) <= 86_400)
  t.match(refused.headers['ratelimit'], /^"quota-day";r=0;t=\d+$/, 'of the one that was exceeded')
})

t.test('a reload changes a limit at once', async (t) => {
  const gateway = await limited(t, { day: { perDay: 1 } })
  const { '2026-07-28': call = fail } = await callers(gateway)
  t.same(await statuses(2, call), [200, 429])
  const config = (perDay: number) => ({
    listen: { host: '127.0.0.1', port: 0 },
    store: 'memory:',
    tenants: {
      acme: {
        auth: { keys: [{ name: 'ada', key: keyOf.ada }] },
        upstreams: { up: { type: 'http', url: gateway.upstream.url } },
        endpoints: { default: { upstreams: ['up'], prefix: '' } },
        limits: { day: { perDay } }
      }
    }
  })
  gateway.reload(config(3))
  t.same(await statuses(3, call), [200, 200, 429])
})

t.test('so many run at once, and who is refused may come again when one has ended', async (t) => {
  const gateway = await limited(t, { few: { per: ['principal'], concurrent: 2 } })
  const { '2026-07-28': call = fail, 'a session': inSession = fail } = await callers(gateway)
  const running = [call('slow'), inSession('slow')]
  await until('both run', () => gateway.upstream.server.calls('slow') === 2)
  for (const each of [call, inSession])
    t.match(await each(), {
      status: 429,
      headers: { 'retry-after': '1' },
      json: { error: { data: { reason: 'too_many', limit: 'few' }, message: /More than 2 calls/ } }
    })
  t.match(await (await callers(gateway, 'bob'))['2026-07-28']?.(), { json: { result: {} } })
  gateway.upstream.server.release()
  await Promise.all(running)
  t.match(await call(), { status: 200, json: { result: {} } })
})

t.test('a limit of one speaks of one call', async (t) => {
  for (const [number, message] of [
    [{ perDay: 1 }, /^More than 1 call a day \(limit one\)/],
    [{ perHour: 1 }, /^More than 1 call an hour \(limit one\)/],
    [{ concurrent: 1 }, /^More than 1 call at once \(limit one\)\. Wait for one to end\.$/]
  ] as const) {
    const gateway = await limited(t, { one: number })
    const { '2026-07-28': call = fail } = await callers(gateway)
    const first = call('slow')
    await until('it runs', () => gateway.upstream.server.calls('slow') === 1)
    t.match((await call()).json, { error: { code: 429, message } })
    gateway.upstream.server.release()
    t.match((await first).json, { result: {} }, 'the control')
  }
})

t.test('of a hundred limits, headers tell those of which least is left', async (t) => {
  const many = Array.from({ length: 99 }, (_, n) => [`limit-${n}-${'x'.repeat(40)}`, { perDay: 1_000 + n }] as const)
  const gateway = await limited(t, { ...Object.fromEntries(many), scarce: { perDay: 4 } })
  const { 'a session': call = fail } = await callers(gateway)
  const { headers, status } = await call()
  t.equal(status, 200)
  const { ratelimit, 'ratelimit-policy': policy } = headers as Record<string, string>
  t.equal(ratelimit?.split(', ').length, 10)
  t.equal(policy?.split(', ').length, 10)
  t.match(ratelimit, /"scarce-day";r=3;/)
  t.ok(`${ratelimit}${policy}`.length < 2_048)
})

t.test('where the answer has no status of its own, the error says it: on a stream, in a batch', async (t) => {
  const gateway = await limited(t, { day: { perDay: 1 } })
  const client = await openSse(gateway.url().replace(/mcp$/, 'sse'), keyOf.ada)
  const clientInfo = { name: 'raw', version: '1' }
  await client.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
  await client.notify('notifications/initialized')
  t.match(await client.request('tools/call', { name: 'echo', arguments: {} }), { result: {} })
  const refused = await client.request('tools/call', { name: 'echo', arguments: {} })
  t.match(refused.error, { code: 429, data: { reason: 'quota_exceeded', limit: 'day' } })
  t.ok(refused.error.data.retryAfterMs > 0)
  client.close()

  const { headers }: LegacyClient = await legacyClient(gateway.url(), keyOf.ada, '2025-03-26')
  const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'echo', arguments: {} } }
  const body = JSON.stringify([
    { ...call, id: 1 },
    { jsonrpc: '2.0', id: 2, method: 'ping' }
  ])
  const batch = await send(gateway.url(), { headers, body })
  t.equal(batch.status, 200)
  t.match(batch.text, /"quota_exceeded"/)
  t.match(batch.text, /"result":\{\}/)
})

t.test('calls at a modern upstream count, by clients of both eras', async (t) => {
  const modern = await startModern()
  t.teardown(() => modern.close())
  const gateway = await acmeGateway(t, {
    upstreams: { up: { type: 'http', url: modern.url } },
    callLimits: { day: { perDay: 2 } }
  })
  const { '2026-07-28': call = fail, 'a session': inSession = fail } = await callers(gateway)
  t.same([(await call()).status, (await inSession()).status, (await call()).status], [200, 200, 429])
})
