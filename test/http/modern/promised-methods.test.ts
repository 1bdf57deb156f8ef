// What server/discover promised is answered, although the upstream turns out to offer less: a client that was told of
// resources asks for them, and must not be told that the method does not exist.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { configOf, gateway, key, type TestGateway } from '../../kit/gateway.ts'
import { stopSteadyClock } from '../../kit/held-time.ts'
import type { Json } from '../../kit/mcp-server.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { startModern } from '../../kit/modern-server.ts'
import { until } from '../../kit/until.ts'

const lists = [
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resourceTemplates'],
  ['prompts/list', 'prompts']
] as const
const ask = (acme: TestGateway, method: string, params = {}) =>
  modernRequest(acme.url(), method, params, { token: key })

/** An upstream with tools only, which answers nothing before it is `up`. */
async function coldStart(t: Test) {
  const upstream = await startModern({ capabilities: { tools: {} }, ttlMs: 60_000 })
  t.teardown(() => upstream.close())
  let isUp = false
  upstream.override(
    () => !isUp,
    (response) => void response.writeHead(503).end(),
    Infinity
  )
  const options = { upstreams: { up: { type: 'http', url: upstream.url } }, limits: { coldStartMs: 100 } }
  const acme = await gateway(t, options)
  return {
    acme,
    reload: () => acme.reload(configOf(options)),
    async up(): Promise<void> {
      isUp = true
      await until('the upstream is known', async () => (await ask(acme, 'tools/list')).json.result?.tools.length > 0)
    }
  }
}

t.test('a list that was promised while the upstream was unknown is empty, and no unknown method', async (t) => {
  const { acme, up, reload } = await coldStart(t)
  t.match((await ask(acme, 'server/discover')).json, {
    result: { capabilities: { resources: {}, prompts: {} }, ttlMs: 0 }
  })
  await up()
  reload()
  t.notOk('resources' in (await ask(acme, 'server/discover')).json.result.capabilities, 'it has no resources')
  for (const [method, member] of lists) {
    const { status, json } = await ask(acme, method)
    t.same([status, json.result?.[member]], [200, []], method)
  }
})

t.test('what was never promised is an unknown method', async (t) => {
  const { acme, up } = await coldStart(t)
  await up()
  t.same((await ask(acme, 'server/discover')).json.result.capabilities, { tools: { listChanged: true } })
  for (const [method] of lists) {
    const { status, json } = await ask(acme, method)
    t.same([status, json.error?.code], [404, -32601], method)
  }
})

t.test('what an endpoint has lost is an empty list for as long as its clients may cache that it had it', async (t) => {
  const upstreamWith = async (capabilities: Json) => {
    const upstream = await startModern({ capabilities, ttlMs: 60_000 })
    t.teardown(() => upstream.close())
    return { upstreams: { up: { type: 'http', url: upstream.url } } }
  }
  const [full, less] = [
    await upstreamWith({ tools: {}, resources: {}, prompts: {} }),
    await upstreamWith({ tools: {} })
  ]
  const acme = await gateway(t, full)
  const discover = async () => (await ask(acme, 'server/discover')).json.result
  await until('the upstream is known', async () => (await discover()).ttlMs > 0)
  const moveOn = stopSteadyClock(t)
  const { ttlMs, ...promised } = await discover()
  t.match(promised, { capabilities: { resources: {}, prompts: {} } })
  for (const [method, member] of lists)
    t.ok((await ask(acme, method)).json.result[member].length > 0, `positive control: ${method}`)

  acme.reload(configOf(less))
  await until('the other upstream is known', async () => (await ask(acme, 'tools/list')).json.result.tools.length > 0)
  t.notOk('resources' in (await discover()).capabilities, 'it has no resources')
  const answers = async () => {
    const all = lists.map(async ([method, member]) => {
      const { status, json } = await ask(acme, method)
      return [status, json.result?.[member] ?? json.error.code] as unknown
    })
    return await Promise.all(all)
  }
  const [empty, unknown] = [lists.map(() => [200, []]), lists.map(() => [404, -32601])]
  t.same(await answers(), empty)
  moveOn(ttlMs - 1)
  t.same(await answers(), empty, 'until the last moment')
  moveOn(2)
  t.same(await answers(), unknown, 'and no longer')
})

t.test('the official client, connected while the upstream was unknown, lists all that it was promised', async (t) => {
  const { acme, up } = await coldStart(t)
  const client = new Client({ name: 'modern', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(acme.url()), { requestInit }))
  t.teardown(() => client.close())
  t.ok(client.getServerCapabilities()?.resources)
  await up()
  t.ok((await client.listTools()).tools.length > 0)
  t.same((await client.listResources()).resources, [])
  t.same((await client.listResourceTemplates()).resourceTemplates, [])
  t.same((await client.listPrompts()).prompts, [])
})

t.test('ttlMs of server/discover is no longer than that of the upstream', async (t) => {
  const discovered = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, cacheScope: 'private' }
  const ttlOf = async (own: object) => {
    const upstream = await startModern({
      ttlMs: 600_000,
      results: { 'server/discover': { resultType: 'complete', ...discovered, ...own } }
    })
    t.teardown(() => upstream.close())
    const acme = await gateway(t, { upstreams: { up: { type: 'http', url: upstream.url } } })
    const [list, discovery] = [await ask(acme, 'tools/list'), await ask(acme, 'server/discover')]
    t.ok(list.json.result.ttlMs > 500_000, 'its lists hold for longer')
    return discovery.json.result.ttlMs
  }
  t.equal(await ttlOf({ ttlMs: 5_000 }), 5_000)
  t.equal(await ttlOf({}), 0, 'one that says nothing promises nothing')
  t.ok((await ttlOf({ ttlMs: 3_600_000 })) > 500_000, 'positive control: that of the lists, where it is the shorter')
})
