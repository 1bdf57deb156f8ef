// Catalogs of two moments: what an upstream listed before its list changed, and what the configuration of then offered,
// each against now; and what is not kept any more is said not to be.

import { createServer } from 'node:http'
import t from 'tap'
import { readingPast } from '../../src/admin/clients/past-catalogs.ts'
import { parseOwnJson } from '../../src/protocol/json.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { adminGateway, adminKeys } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { listen } from '../kit/listen.ts'
import { until } from '../kit/until.ts'

const tenant = '/v1/tenants/initech'
const endpoint = `${tenant}/endpoints/default/catalog`
const key = 'gh_key_of_ian_0123456789'
const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: 'object' } })

/** A server of 2025-11-25 without streams, whose tools the test chooses. */
async function changingServer(t: Parameters<typeof listen>[0]) {
  const state = { tools: [tool('stays', 'as it is'), tool('goes', 'for now'), tool('alters', 'one')] }
  const url: string = await listen(
    t,
    createServer((request, response) => {
      let text = ''
      request.on('data', (chunk: Buffer) => (text += chunk.toString()))
      request.on('end', () => {
        const { id, method } = (text === '' ? {} : parseOwnJson(text)) as { id?: number; method?: string }
        if (id === undefined) return response.writeHead(method === undefined ? 405 : 202).end()
        const results: Record<string, object> = {
          initialize: {
            protocolVersion: '2025-11-25',
            capabilities: { tools: {} },
            serverInfo: { name: 'changing', version: '1' }
          },
          'tools/list': { tools: state.tools }
        }
        const result = results[method ?? '']
        const answer = result === undefined ? { error: { code: -32601, message: 'unknown' } } : { result }
        return response
          .writeHead(200, { 'Content-Type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
      })
    })
  )
  return { url: `${url}/mcp`, state }
}

t.test('a catalog of before is compared with that of now', async (t) => {
  const { url, state } = await changingServer(t)
  const made = await adminGateway(t, { upstreams: { up: { url } } })
  const body = { auth: { keys: [{ name: 'ian', key }] }, upstreams: { up: { url } } }
  t.equal((await made.call('PUT', tenant, { body })).status, 201)
  const client = await legacyClient(made.url('default', 'initech'), key)
  const names = async (): Promise<string[]> => {
    const { json } = await client.request('tools/list')
    return json.result.tools.map(({ name }: { name: string }) => name)
  }
  await until('its tools are listed', async () => (await names()).includes('up__goes'))
  const moments = async () =>
    (await made.call('GET', `${endpoint}/moments`, { key: adminKeys.viewer })).json as {
      items: Array<{ at: string; version: number | null; upstream: string | null; gone: number }>
      since: string | null
    }
  const { since } = await until('what it lists is kept', async () => {
    const told = await moments()
    return told.since === null ? undefined : told
  })
  t.match((await moments()).items, [{ version: 1, actor: 'platform', upstream: null }])

  state.tools = [tool('stays', 'as it is'), tool('alters', 'two'), tool('comes', 'new')]
  await made.call('POST', `${tenant}/upstreams/up/reconnect`, { body: {} })
  const changed = await until('the change is kept', async () =>
    (await moments()).items.find(({ upstream }) => upstream === 'up')
  )
  t.match(changed, { came: 1, gone: 1, altered: 1, version: null })
  const before = new Date(Date.parse(changed.at) - 1).toISOString()
  const compared = async (from: object, to: object = {}) => {
    const answer = await made.call('POST', `${endpoint}/diff`, { body: { from, to }, key: adminKeys.viewer })
    if (answer.status !== 200) throw new Error(answer.text)
    return answer.json
  }
  t.match(await compared({ at: before }), {
    onlyFrom: ['up__goes'],
    onlyTo: ['up__comes'],
    changed: [{ name: 'up__alters', from: { description: 'one' }, to: { description: 'two' } }],
    same: 1,
    unknown: []
  })
  const now = new Date().toISOString()
  t.match(await compared({ at: now }), { onlyFrom: [], onlyTo: [], changed: [], same: 3 })

  // A rule of the configuration of later, and a moment before it.
  const policy = { default: 'allow', rules: [{ name: 'no-news', effect: 'deny', what: { names: ['comes'] } }] }
  t.equal((await made.call('PUT', `${tenant}/policy`, { body: policy })).status, 201)
  t.match(await compared({ at: now }), { onlyFrom: ['up__comes'], onlyTo: [], changed: [], same: 2 })

  const early = new Date(Date.parse(since ?? '') - 60_000).toISOString()
  const lost = await made.call('POST', `${endpoint}/diff`, { body: { from: { at: early }, to: {} } })
  t.match(lost.json, { status: 404, detail: /not kept/ })
  t.equal((await made.call('POST', `${endpoint}/diff`, { body: { from: { at: 'noon' }, to: {} } })).status, 400)
  const ofFile = '/v1/tenants/acme/endpoints/default/catalog'
  t.match((await made.call('POST', `${ofFile}/diff`, { body: { from: { at: early }, to: {} } })).json, {
    unknown: ['up'],
    onlyFrom: []
  })
})

t.test('what has to be read for a moment that is over counts as requests of whoever asks', async (t) => {
  const { url, state } = await changingServer(t)
  state.tools = Array.from({ length: 100 }, (_, at) => tool(`tool${at}`, 'x'.repeat(10_000)))
  const made = await adminGateway(t, { upstreams: { up: { url } } })
  const catalog = '/v1/tenants/acme/endpoints/default/catalog'
  const ask = (by: string, body: object) => made.call('POST', catalog, { key: by, body })
  const statusOf = async (by: string) => (await made.call('GET', '/v1/tenants/acme', { key: by })).status
  const at = await until('the lists are kept', async () => {
    await ask(adminKeys.platform, {})
    const { json } = await made.call('GET', `${catalog}/moments`)
    const { since } = json as { since: string | null }
    return since === null ? undefined : new Date().toISOString()
  })
  t.match((await ask(adminKeys.viewer, {})).json, { count: 100 })
  t.equal(await statusOf(adminKeys.viewer), 200, 'the control: that of now is read already')
  const twice = await made.call('POST', `${catalog}/diff`, {
    key: adminKeys.auditor,
    body: { from: { at }, to: { at } }
  })
  t.match(twice, { status: 200, json: { same: 100 } }, 'two moments are counted at once, and the first is answered')
  t.match(await ask(adminKeys.auditor, { at }), { status: 429, json: { type: 'urn:gatehouse:problem:rate_limited' } })
  t.equal(await statusOf(adminKeys.auditor), 429)
  t.match((await ask(adminKeys.platform, { at })).json, { count: 100 })
  t.equal(await statusOf(adminKeys.platform), 200, 'those of the platform are not held up')
})

t.test('of one tenant few are read at once, and none of them holds up another tenant', async (t) => {
  const opened = Promise.withResolvers<string>()
  const read = (id: string) => readingPast({ id: tenantId(id) }, () => opened.promise)
  const held = [read('acme'), read('acme')]
  await t.rejects(read('acme'), { code: 'rate_limited', message: /Too many catalogs of the past/ })
  const other = read('globex')
  opened.resolve('read')
  t.same(
    await Promise.all([...held, other, read('globex')]),
    Array.from({ length: 4 }, () => 'read')
  )
  t.equal(await read('acme'), 'read')
})
