// What one tenant may use of the gateway (`resources`): refusals name the limit, the neighbour is not touched, usage is
// told beside it, a change holds at once, and only a platform-admin makes it.

import { EventEmitter } from 'node:events'
import t from 'tap'
import type { Tenant } from '../../src/config/snapshot.ts'
import { createCallsInFlight } from '../../src/http/calls-in-flight.ts'
import { adminGateway, adminKeys, adminSection, globexKey } from '../kit/admin.ts'
import { jsonHeaders, legacyClient, send } from '../kit/client.ts'
import { key as apiKey } from '../kit/gateway.ts'
import { openSse, sseUrl } from '../kit/http-sse-client.ts'
import { modernListen } from '../kit/modern-listen.ts'
import { scriptedStdio } from '../kit/server-request.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const tools = ['a', 'b', 'big', 'echo', 'slow'].map((name) => ({ name, inputSchema: { type: 'object' } }))
const initialize = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
}
const opened = (url: string, token: string) =>
  send(url, { headers: { ...jsonHeaders, authorization: `Bearer ${token}` }, body: JSON.stringify(initialize) })

async function start(test: Parameters<typeof adminGateway>[0], resources: object, more: object = {}) {
  const upstream = await startUpstream({ tools })
  test.teardown(() => upstream.close())
  const up = { type: 'http', url: upstream.url }
  const made = await adminGateway(test, {
    upstreams: { up, ...more },
    resources,
    tenants: { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: { up } } }
  })
  const usage = async (tenant = 'acme') =>
    ((await made.call('GET', `/v1/tenants/${tenant}/usage`)).json as { resources: Record<string, object> }).resources
  return { ...made, upstream, usage, other: made.url('default', 'globex') }
}

t.test('sessions are counted over all callers, and one more has room when another ends', async (t) => {
  const { url, other, usage } = await start(t, { sessions: 2 })
  const [first] = await Promise.all([legacyClient(url(), apiKey), legacyClient(url(), apiKey)])
  const refused = await opened(url(), apiKey)
  t.equal(refused.status, 429)
  t.match(refused.headers, { 'retry-after': /^\d+$/ })
  const limit = 'resources.sessions'
  t.match(refused.json, { error: { message: /resources\.sessions/, data: { reason: 'too_many', limit } } })
  await t.rejects(openSse(sseUrl(url()), apiKey), /429/, 'HTTP+SSE too')
  await legacyClient(other, globexKey)
  await legacyClient(other, globexKey)
  await legacyClient(other, globexKey)
  t.match(await usage(), { sessions: { used: 2, limit: 2 } })
  t.match(await usage('globex'), { sessions: { used: 3, limit: null } })
  await first.end()
  await legacyClient(url(), apiKey)
})

t.test('streams of all kinds are counted together, until their connections close', async (t) => {
  const { url, other, usage } = await start(t, { streams: 3 })
  const client = await legacyClient(url(), apiKey)
  const [listening, modern, sse] = [
    await client.listen(),
    await modernListen(url(), { toolsListChanged: true }, { token: apiKey }),
    await openSse(sseUrl(url()), apiKey)
  ]
  t.match(await usage(), { streams: { used: 3, limit: 3 } })
  const refused = await modernListen(url(), { toolsListChanged: true }, { token: apiKey })
  t.equal(refused.status, 429)
  await until('the refusal', () => refused.text.includes('resources.streams'))
  t.equal(
    (await send(sseUrl(url()), { method: 'GET', headers: { ...client.headers, accept: 'text/event-stream' } })).status,
    429
  )
  const elsewhere = await modernListen(other, { toolsListChanged: true }, { token: globexKey })
  t.equal(elsewhere.status, 200)
  sse.close()
  await until('room', async () => {
    const stream = await modernListen(url(), { toolsListChanged: true }, { token: apiKey })
    return stream.status === 200
  })
  for (const each of [listening, modern, elsewhere]) each.close()
})

t.test('calls beyond their number are refused, and those of a neighbour are not', async (t) => {
  const { url, other, upstream, usage } = await start(t, { calls: 1 })
  const [ada, gus] = [await legacyClient(url(), apiKey), await legacyClient(other, globexKey)]
  const slow = ada.request('tools/call', { name: 'up__slow', arguments: {} })
  await until('it runs', () => upstream.server.calls('slow') === 1)
  t.match(await usage(), { calls: { used: 1, limit: 1 } })
  const refused = await ada.request('tools/list')
  t.match(refused.json, { error: { data: { reason: 'too_many', limit: 'resources.calls' } } })
  t.match((await gus.request('tools/list')).json, { result: { tools: [{}, {}, {}, {}, {}] } })
  upstream.server.release()
  t.match((await slow).json, { result: {} })
  t.match((await ada.request('tools/list')).json, { result: {} })
})

t.test('processes of a tenant: all of them count, and a neighbour still gets one', async (t) => {
  const upstreams = { stdio: { ...scriptedStdio, isolation: 'session' } }
  const made = await adminGateway(t, {
    upstreams,
    resources: { processes: 3 },
    tenants: { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams } }
  })
  const pid = async (token: string, tenant: string): Promise<unknown> =>
    (
      await (
        await legacyClient(made.url('default', tenant), token)
      ).request('tools/call', { name: 'stdio__pid', arguments: {} })
    ).json
  const fine = { result: { content: [{ type: 'text' }] } }
  t.match(await pid(apiKey, 'acme'), fine)
  t.match(await pid(apiKey, 'acme'), fine)
  t.match(await pid(apiKey, 'acme'), { error: { data: { reason: 'too_many', limit: 'resources.processes' } } })
  t.match(await pid(globexKey, 'globex'), fine)
  const { json } = await made.call('GET', '/v1/tenants/acme/usage')
  t.match(json, { resources: { processes: { used: 3, limit: 3 } } })
})

t.test('catalogs, results and memory are bounded, and a change holds at once', async (t) => {
  const { url, other, usage, call } = await start(t, { catalogTools: 3, resultBytes: 1024 })
  const [ada, gus] = [await legacyClient(url(), apiKey), await legacyClient(other, globexKey)]
  const names = async (client: typeof ada): Promise<string[]> =>
    (await client.request('tools/list')).json.result.tools.map(({ name }: { name: string }) => name)
  t.same(await names(ada), ['up__a', 'up__b', 'up__big'])
  t.match((await ada.request('tools/call', { name: 'up__echo', arguments: {} })).json, { error: { code: -32602 } })
  t.equal((await names(gus)).length, 5)
  const big = { name: 'up__big', arguments: { bytes: 4096, size: 4096, length: 4096 } }
  t.match((await ada.request('tools/call', big)).json, { result: { isError: true } })
  t.match((await gus.request('tools/call', big)).json.result.isError ?? false, false)
  t.match(await usage(), { memoryBytes: { limit: Number } })

  const document = { auth: {}, upstreams: {}, resources: { memoryBytes: 4_194_304 } }
  t.equal((await call('PUT', '/v1/tenants/initech', { body: document })).status, 201)
  t.match(await usage('initech'), { memoryBytes: { used: 0, limit: 4_194_304 } })
  const next = { headers: { 'If-Match': '*' }, body: { resources: { memoryBytes: 8_388_608 } } }
  t.equal((await call('PATCH', '/v1/tenants/initech', next)).status, 200)
  t.match(await usage('initech'), { memoryBytes: { limit: 8_388_608 } })
})

t.test('a body that would hold more memory than the tenant may is refused by that limit', async (t) => {
  const { url, other } = await start(t, { memoryBytes: 4_194_304 })
  const [ada, gus] = [await legacyClient(url(), apiKey), await legacyClient(other, globexKey)]
  const long = { name: 'up__echo', arguments: { text: 'x'.repeat(1_000_000) } }
  const refused = await ada.request('tools/call', long)
  t.equal(refused.status, 429, refused.text.slice(0, 300))
  t.match(refused.json, { error: { data: { reason: 'too_many', limit: 'resources.memoryBytes' } } })
  t.match((await gus.request('tools/call', long)).json, { result: {} })
})

t.test('a tenant-admin does not change what its tenant may use', async (t) => {
  const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['initech'] } : each))
  const { call } = await adminGateway(t, { upstreams: {}, top: { admin: { ...adminSection, keys } } })
  const at = '/v1/tenants/initech'
  const asAdmin = (body: object) => call('PATCH', at, { key: adminKeys.globex, body, headers: { 'If-Match': '*' } })
  t.equal((await call('PUT', at, { body: { auth: {}, upstreams: {}, resources: { sessions: 5 } } })).status, 201)
  for (const resources of [{ sessions: 6 }, { sessions: null }, null])
    t.equal((await asAdmin({ resources })).status, 403, JSON.stringify(resources))
  t.equal((await asAdmin({ origins: ['https://a.example'] })).status, 200, 'the rest it does')
})

t.test('a stream whose client has left before it was counted takes no place', async (t) => {
  const calls = createCallsInFlight()
  const tenant = { id: 'acme', resources: { streams: 1 } } as unknown as Tenant
  const streamOf = (destroyed: boolean) =>
    ({ tenant, raw: Object.assign(new EventEmitter(), { destroyed }) }) as unknown as Parameters<typeof calls.listen>[0]
  for (let times = 0; times < 3; times++) calls.listen(streamOf(true))
  calls.listen(streamOf(false))
  t.throws(() => calls.listen(streamOf(false)), { code: 'too_many' })
})
