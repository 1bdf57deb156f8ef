// Every POST of the admin API that makes, changes or does something is done once, however often it is sent with the
// same Idempotency-Key. Taken from the table of routes, so that none is left out.

import { join } from 'node:path'
import t from 'tap'
import { takesIdempotencyKey } from '../../src/admin/configuration/once.ts'
import { adminRoutes } from '../../src/admin/table.ts'
import { recordsIn } from '../audit/kit.ts'
import { adminGateway } from '../kit/admin.ts'
import { isCall, startUpstream } from '../kit/upstream.ts'

const apiKey = 'gh_key_of_ian_0123456789'
const at = '/v1/tenants/initech'

t.test('what is sent again with its key is not done again, and is by another key', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, { upstreams: {}, top: { audit: { store: false, file } } })
  const tenant = { auth: { keys: [{ name: 'ci', key: apiKey }] }, upstreams: { up: { url: upstream.url } } }
  t.equal((await made.call('PUT', at, { body: tenant })).status, 201)
  const changes = async () => (await recordsIn(file)).filter(({ kind }) => kind === 'change').length
  const post = (path: string, body: object, key: string, headers = {}) =>
    made.call('POST', path, { body, headers: { 'Idempotency-Key': key, ...headers } })

  /** What each route is sent, and again by another key; how many records each time leaves. */
  const requests: Readonly<Record<string, readonly [path: string, first: object, other: object, records: number]>> = {
    '/v1/apply': [
      '/v1/apply',
      { tenants: { initech: { ...tenant, origins: ['https://a.example'] } } },
      { tenants: { initech: { ...tenant, origins: ['https://b.example'] } } },
      1
    ],
    '/v1/rollback': ['/v1/rollback', { version: 1 }, { version: 2 }, 1],
    '/v1/tenants/{tenant}/keys': [`${at}/keys`, { name: 'a' }, { name: 'b' }, 1],
    '/v1/tenants/{tenant}/endpoints/{endpoint}/try': [
      `${at}/endpoints/default/try`,
      { tool: 'up__echo', credential: apiKey },
      { tool: 'up__echo', credential: apiKey },
      1
    ],
    '/v1/tenants/{tenant}/connections/revoke': [
      `${at}/connections/revoke`,
      { issuer: 'https://idp.example', subject: 'ada', upstream: 'up' },
      { issuer: 'https://idp.example', subject: 'ada', upstream: 'up' },
      0
    ],
    '/v1/tenants/{tenant}/upstreams/{upstream}/reconnect': [`${at}/upstreams/up/reconnect`, {}, {}, 1]
  }
  const routes = adminRoutes.filter(takesIdempotencyKey).map(({ path }) => path)
  t.same(Object.keys(requests).toSorted(), routes.toSorted(), 'each route that takes a key is tried')
  for (const [route, [path, first, other, records]] of Object.entries(requests)) {
    const before = await changes()
    const headers = route === '/v1/apply' ? { 'If-Match': '*' } : {}
    const [one, again] = [
      await post(path, first, `${route} 1`, headers),
      await post(path, first, `${route} 1`, headers)
    ]
    t.ok(one.status < 300, `${route}: ${one.status} ${one.text}`)
    t.same([again.status, again.text], [one.status, one.text], `${route} is answered as the first time`)
    t.equal((await changes()) - before, records, `${route} is done once`)
    const third = await post(path, other, `${route} 2`, headers)
    t.ok(third.status < 300, `${route}: ${third.status} ${third.text}`)
    t.equal((await changes()) - before, 2 * records, `${route} is done again by another key`)
  }
  t.equal(upstream.seen.filter(isCall('echo')).length, 2, 'a tool is called once by each')

  const stream = { Accept: 'text/event-stream' }
  const tried = await post(`${at}/endpoints/default/try`, { tool: 'up__echo', credential: apiKey }, 's', stream)
  t.match(tried.json, { status: 400, detail: /takes no Idempotency-Key/ })
  const text = 'x'.repeat(100_000)
  const long = { tool: 'up__echo', credential: apiKey, arguments: { text } }
  t.equal((await post(`${at}/endpoints/default/try`, long, 'long')).status, 200)
  t.match((await post(`${at}/endpoints/default/try`, long, 'long')).json, {
    status: 409,
    detail: /too long to be kept/
  })
  upstream.override(
    isCall('echo'),
    (response, { message }) => {
      const result = { content: [{ type: 'text', text: 'x'.repeat(2_000_000) }] }
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result }))
    },
    2
  )
  const before = upstream.seen.filter(isCall('echo')).length
  for (const time of ['first', 'again']) {
    const { json } = await post(`${at}/endpoints/default/try`, { tool: 'up__echo', credential: apiKey }, 'longest')
    t.match(json, { status: 409, detail: /The call was made, and its answer is longer/ }, time)
  }
  t.equal(upstream.seen.filter(isCall('echo')).length - before, 1, 'what was done is not done again')
})
