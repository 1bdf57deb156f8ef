// Keys, versions, rollback, plan and apply: what is made once, what is taken back, and what is said before it is done.

import { hash } from 'node:crypto'
import t from 'tap'
import { controlVersionKey } from '../../src/store/keys.ts'
import { adminGateway, adminKeys, type AdminGateway } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { modernRequest } from '../kit/modern-client.ts'
import { redis } from '../kit/redis.ts'
import { redisCommand } from '../kit/redis-groups.ts'
import { until, type Teardown } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const any = { 'If-Match': '*' }
const sha256 = (key: string): string => hash('sha256', key)

async function start(t: Teardown) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, { upstreams: {} })
  const document = { auth: {}, upstreams: { up: { type: 'http', url: upstream.url } } }
  const { status } = await made.call('PUT', '/v1/tenants/initech', { body: document })
  if (status !== 201) throw new Error(`PUT: ${status}`)
  return { ...made, upstream, document }
}

const newKey = async ({ call }: Pick<AdminGateway, 'call'>, name: string, headers: Record<string, string> = {}) =>
  call('POST', '/v1/tenants/initech/keys', { body: { name, scopes: ['mcp'] }, headers })

t.test('a key is shown once, lets its holder in at once, and out at once', async (t) => {
  const made = await start(t)
  const answer = await newKey(made, 'ci')
  t.equal(answer.status, 201, answer.text)
  const { key } = answer.json as { key: string }
  t.match(key, /^gatehouse_[\w-]{43}[0-9a-f]{8}$/)
  const client = await legacyClient(made.url('default', 'initech'), key)
  t.match((await client.request('ping')).json, { result: {} })
  t.match((await made.call('GET', '/v1/tenants/initech/keys')).json, { items: [{ name: 'ci', scopes: ['mcp'] }] })
  t.equal((await newKey(made, 'ci')).status, 409)
  for (const path of ['', '/keys', '/upstreams'])
    t.notMatch((await made.call('GET', `/v1/tenants/initech${path}`)).text, key.slice(3))
  t.equal((await made.call('DELETE', '/v1/tenants/initech/keys/ci')).status, 204)
  t.equal((await client.request('ping')).status, 401)
  t.equal((await made.call('DELETE', '/v1/tenants/initech/keys/ci')).status, 404)
  t.equal(
    (await made.call('POST', '/v1/tenants/acme/keys', { body: { name: 'x' } })).status,
    409,
    'the tenant is the file’s'
  )
  t.notMatch(JSON.stringify(made.log), key)
})

t.test('a request that is sent again with its Idempotency-Key is done once', async (t) => {
  const made = await start(t)
  const headers = { 'Idempotency-Key': 'b2a6' }
  const [first, second] = [await newKey(made, 'ci', headers), await newKey(made, 'ci', headers)]
  t.equal(second.status, 201)
  t.same(second.json, first.json)
  t.equal(second.headers['etag'], first.headers['etag'])
  t.match((await newKey(made, 'other', headers)).json, { status: 409, detail: /Another request/ })
  t.equal((await newKey(made, 'ci', { 'Idempotency-Key': 'c3b7' })).status, 409, 'a request of its own')
  t.equal((await newKey(made, 'ci', { 'Idempotency-Key': 'x'.repeat(300) })).status, 409)
  const together = await Promise.all([1, 2, 3].map(() => newKey(made, 'both', { 'Idempotency-Key': 'd4c8' })))
  t.ok(together.some(({ status }) => status === 201))
  t.equal(new Set(together.filter(({ status }) => status === 201).map(({ text }) => text)).size, 1)
  const { items } = (await made.call('GET', '/v1/tenants/initech/keys')).json as { items: unknown[] }
  t.equal(items.length, 2)
})

t.test('a tenant-admin makes and takes keys also where a platform-admin gave references', async (t) => {
  const made = await adminGateway(t, {
    upstreams: {},
    top: {
      admin: {
        listen: { port: 0 },
        keys: [
          { name: 'platform', role: 'platform-admin', sha256: sha256(adminKeys.platform) },
          { name: 'acme', role: 'tenant-admin', tenants: ['initech'], sha256: sha256(adminKeys.acme) }
        ]
      }
    }
  })
  const body = {
    auth: {},
    upstreams: { up: { url: 'http://127.0.0.1:1/', headers: { A: '${PATH}' } } }
  }
  t.equal((await made.call('PUT', '/v1/tenants/initech', { body })).status, 201)
  const key = adminKeys.acme
  const answer = await made.call('POST', '/v1/tenants/initech/keys', { key, body: { name: 'ci' } })
  t.equal(answer.status, 201, answer.text)
  t.match((await made.call('GET', '/v1/tenants/initech')).json, { problems: [], upstreams: 1 }, 'it still compiles')
  t.equal((await made.call('DELETE', '/v1/tenants/initech/keys/ci', { key })).status, 204)
  const bent = { upstreams: { up: { url: 'http://127.0.0.1:2/' } } }
  t.equal((await made.call('PATCH', '/v1/tenants/initech', { key, body: bent, headers: any })).status, 403)
})

t.test('versions say who changed what and when; an earlier one can be taken up again', async (t) => {
  const made = await start(t)
  const patch = (origin: string) =>
    made.call('PATCH', '/v1/tenants/initech', { body: { origins: [origin] }, headers: any })
  await patch('https://two.example')
  await patch('https://three.example')
  const { items } = (await made.call('GET', '/v1/versions')).json as { items: Array<Record<string, unknown>> }
  t.match(items, [
    { version: 3, action: 'tenant.patch', actor: 'platform', tenants: ['initech'], at: /^\d{4}-/ },
    { version: 2 },
    { version: 1, action: 'tenant.put' }
  ])
  const page = (await made.call('GET', '/v1/versions?limit=2')).json as { nextCursor: string; items: unknown[] }
  t.match(await made.call('GET', `/v1/versions?limit=2&cursor=${page.nextCursor}`), {
    json: { items: [{ version: 1 }], nextCursor: null }
  })
  t.match((await made.call('GET', '/v1/versions', { key: adminKeys.globex })).json, { items: [] })
  const configurationAt = async (version: number | string, key?: string) =>
    await made.call('GET', `/v1/tenants/initech/versions/${version}`, key === undefined ? {} : { key })
  t.match((await configurationAt(2)).json, { version: 2, configuration: { origins: ['https://two.example'] } })
  t.match((await configurationAt(3)).json, { configuration: { origins: ['https://three.example'] } })
  t.same((await made.call('GET', '/v1/tenants/none/versions/2')).json, { version: 2, configuration: null })
  for (const version of [5, 0, 'x', '1e0']) t.equal((await configurationAt(version)).status, 404)
  t.equal((await configurationAt(2, adminKeys.viewer)).status, 403, 'it has URLs and arguments')
  t.equal((await configurationAt(2, adminKeys.globex)).status, 404)
  const planOf = (body: object, key = adminKeys.platform) => made.call('POST', '/v1/plan', { key, body })
  const planned = await planOf({ rollback: 2 })
  t.match(planned.json, { version: 3, tenants: [{ tenant: 'initech', change: 'changed' }] }, planned.text)
  t.same(((await planOf({ rollback: 3 })).json as { tenants: unknown[] }).tenants, [])
  t.equal((await planOf({ rollback: 99 })).status, 404)
  t.equal((await planOf({ rollback: 2, tenant: 'initeck' })).status, 404)
  const misspelt = await made.call('POST', '/v1/rollback', { body: { version: 2, tenant: 'initeck' } })
  t.match(misspelt, { status: 404, json: { detail: /no such tenant/ } })
  const ofFile = await made.call('POST', '/v1/rollback', { body: { version: 2, tenant: 'acme' } })
  t.match(ofFile, { status: 409, json: { type: 'urn:gatehouse:problem:managed_by_file' } })
  const noVersion = await made.call('POST', '/v1/rollback', { body: { version: 0 } })
  t.match(noVersion.json, { errors: [{ path: 'version', message: 'must be 1 or more' }] })
  t.equal((await planOf({ rollback: 2 }, adminKeys.acme)).status, 403)
  for (const body of [{}, { tenants: {}, rollback: 2 }]) t.equal((await planOf(body)).status, 400, 'of one thing')
  t.match((await made.call('GET', '/v1/tenants/initech')).json, { version: 3 }, 'a plan changes nothing')
  t.equal(planned.headers['etag'], '"3"')
  const rollback = (ifMatch: string) =>
    made.call('POST', '/v1/rollback', { body: { version: 2 }, headers: { 'If-Match': ifMatch } })
  const late = await rollback('"2"')
  t.match(late, { status: 412, json: { type: 'urn:gatehouse:problem:precondition_failed' }, headers: { etag: '"3"' } })
  t.match(late.json, { detail: /has changed since/ }, 'somebody was first')
  t.match((await made.call('GET', '/v1/tenants/initech')).json, { version: 3 }, 'a refused rollback changes nothing')
  const back = await rollback(String(planned.headers['etag']))
  t.match(back.json, { version: 4, tenants: ['initech'] }, back.text)
  t.match((await made.call('GET', '/v1/tenants/initech')).json, { version: 4, origins: ['https://two.example'] })
  t.match((await made.call('POST', '/v1/rollback', { body: { version: 2 } })).json, { version: 4, tenants: [] })
  for (const version of [5, 99]) t.equal((await made.call('POST', '/v1/rollback', { body: { version } })).status, 404)
  await made.call('DELETE', '/v1/tenants/initech', { headers: any })
  t.equal((await made.call('POST', '/v1/rollback', { body: { version: 1, tenant: 'initech' } })).status, 200)
  t.match((await made.call('GET', '/v1/tenants/initech')).json, { version: 6, origins: [] })
  t.equal((await made.call('POST', '/v1/rollback', { key: adminKeys.acme, body: { version: 1 } })).status, 403)
})

t.test('a rollback of all leaves out what the file has taken over, and says so; that of one is refused', async (t) => {
  const store = (await redis(t)).url
  const one = await adminGateway(t, { upstreams: {}, store })
  const put = (id: string, origin: string) =>
    one.call('PUT', `/v1/tenants/${id}`, {
      body: { auth: {}, upstreams: {}, origins: [origin] },
      headers: origin.includes('new') ? any : {}
    })
  for (const origin of ['https://old.example', 'https://new.example'])
    for (const id of ['initech', 'umbrella']) await put(id, origin)
  const other = await adminGateway(t, {
    upstreams: {},
    store,
    tenants: { initech: { auth: { keys: [{ name: 'ci', key: 'gh_key_of_the_file_0123456789' }] }, upstreams: {} } }
  })
  const refused = await other.call('POST', '/v1/rollback', { body: { version: 2, tenant: 'initech' } })
  t.match(refused, { status: 409, json: { type: 'urn:gatehouse:problem:managed_by_file' } })
  const back = await other.call('POST', '/v1/rollback', { body: { version: 2 } })
  t.match(back.json, { version: 5, tenants: ['umbrella'], managedByFile: ['initech'] }, back.text)
  t.match((await other.call('GET', '/v1/tenants/umbrella')).json, { origins: ['https://old.example'] })
})

t.test('a version with a document that cannot be read any more is not gone back to', async (t) => {
  const server = await redis(t)
  const made = await adminGateway(t, { upstreams: {}, store: server.url })
  const put = (id: string, origin: string) =>
    made.call('PUT', `/v1/tenants/${id}`, {
      body: { auth: {}, upstreams: {}, origins: [origin] },
      headers: origin.includes('new') ? any : {}
    })
  for (const id of ['initech', 'umbrella']) await put(id, 'https://old.example')
  await put('umbrella', 'https://new.example')
  const place = `gatehouse:${controlVersionKey('1')}`
  const record = JSON.parse(String(await redisCommand(server, 'get', place))) as { sealed: Record<string, string> }
  const damaged = { ...record, sealed: { 'tenant/initech': 'x'.repeat(60) } }
  await redisCommand(server, 'set', place, JSON.stringify(damaged))
  t.equal((await made.call('POST', '/v1/rollback', { body: { version: 2 } })).status, 404)
  t.match(
    (await made.call('GET', '/v1/tenants/initech')).json,
    { origins: ['https://old.example'] },
    'it is not removed'
  )
  await redisCommand(server, 'set', place, JSON.stringify(record))
  t.equal((await made.call('POST', '/v1/rollback', { body: { version: 2 } })).status, 200, 'the control')
})

t.test('a rollback brings back no key that was revoked, also of a tenant that was removed since', async (t) => {
  const made = await start(t)
  const keyOf = async (name: string) => ((await newKey(made, name)).json as { key: string }).key
  const statusOf = async (token: string) =>
    (await modernRequest(made.url('default', 'initech'), 'tools/list', {}, { token })).status
  const [revoked, kept] = [await keyOf('ci'), await keyOf('kept')]
  const patched = await made.call('PATCH', '/v1/tenants/initech', { body: { origins: ['https://a.b'] }, headers: any })
  const { version } = patched.json as { version: number }
  const rollback = async (to: number) => {
    const { status, text } = await made.call('POST', '/v1/rollback', { body: { version: to, tenant: 'initech' } })
    t.equal(status, 200, text)
  }
  t.equal(await statusOf(revoked), 200)
  t.equal((await made.call('DELETE', '/v1/tenants/initech/keys/ci')).status, 204)
  t.equal(await statusOf(revoked), 401)
  const later = await keyOf('later')
  await rollback(version)
  t.equal(await statusOf(revoked), 401)
  t.equal(await statusOf(kept), 200, 'a key that nobody revoked')
  t.equal(await statusOf(later), 200, 'nor that one, which was made since')
  t.match((await made.call('GET', '/v1/tenants/initech')).json, { origins: ['https://a.b'] })
  t.equal((await made.call('DELETE', '/v1/tenants/initech', { headers: any })).status, 204)
  await rollback(version)
  t.equal(await statusOf(revoked), 401, 'removed in between')
  t.equal(await statusOf(kept), 200)
  t.match((await made.call('GET', '/v1/tenants/initech/keys')).json, { items: [{ name: 'kept' }, { name: 'later' }] })
  await rollback(1)
  t.same([await statusOf(kept), await statusOf(later)], [200, 200], 'also by a version that had no key')
})

t.test('a rollback makes no key good for longer than it is now', async (t) => {
  const made = await start(t)
  const key = 'gh_key_of_ian_0123456789'
  const put = async (more: object, origin: string) => {
    const auth = { keys: [{ name: 'ian', key, ...more }] }
    const body = { ...made.document, auth, origins: [origin] }
    const { status, text } = await made.call('PUT', '/v1/tenants/initech', { body, headers: any })
    t.equal(status, 200, text)
  }
  const statusOf = async (token: string) =>
    (await modernRequest(made.url('default', 'initech'), 'tools/list', {}, { token })).status
  const earlier = 'gh_key_of_before_0123456789'
  const previous = { previousSha256: sha256(earlier), previousUntil: '2999-01-01T00:00:00Z' }
  await put({ scopes: ['mcp', 'old'], ...previous }, 'https://old.example')
  t.same([await statusOf(key), await statusOf(earlier)], [200, 200])
  await put({ scopes: ['mcp'], expires: '2998-01-01T00:00:00Z' }, 'https://new.example')
  t.same([await statusOf(key), await statusOf(earlier)], [200, 401], 'the key before it was taken away')
  t.equal((await made.call('POST', '/v1/rollback', { body: { version: 2 } })).status, 200)
  t.match((await made.call('GET', '/v1/tenants/initech')).json, { origins: ['https://old.example'] })
  t.same([await statusOf(key), await statusOf(earlier)], [200, 401])
  t.match((await made.call('GET', '/v1/tenants/initech/keys')).json, {
    items: [{ name: 'ian', scopes: ['mcp', 'old'], expires: '2998-01-01T00:00:00.000Z' }]
  })
})

t.test('a plan says who gains and loses which tools, and apply does it, unless others were first', async (t) => {
  const made = await start(t)
  const { key } = (await newKey(made, 'ci')).json as { key: string }
  const client = await legacyClient(made.url('default', 'initech'), key)
  await until('its lists are known', async () => (await client.request('tools/list')).json.result?.tools?.length > 0)
  const { configuration } = (await made.call('GET', '/v1/tenants/initech')).json as { configuration: object }
  const wanted = {
    tenants: {
      initech: {
        ...configuration,
        endpoints: { default: { upstreams: ['up'], tools: { 'up/echo': { rename: 'say' } } } }
      }
    }
  }
  const plan = await made.call('POST', '/v1/plan', { body: wanted })
  t.equal(plan.status, 200, plan.text)
  t.match(plan.json, {
    version: 2,
    tenants: [
      {
        tenant: 'initech',
        change: 'changed',
        callersChange: false,
        endpoints: [
          {
            endpoint: 'default',
            gains: { count: 1, names: ['say'] },
            loses: { count: 1, names: ['up__echo'] },
            sessions: 1,
            toldSessions: [{ subject: 'ci', software: 'raw 1', revision: '2025-11-25' }],
            unknown: []
          }
        ],
        upstreams: []
      }
    ]
  })
  t.match((await made.call('GET', '/v1/versions')).json, { items: [{ version: 2 }, { version: 1 }] }, 'nothing is done')
  const unnamed = await made.call('POST', '/v1/apply', { body: wanted })
  t.match(unnamed, { status: 428, json: { type: /precondition_required/, detail: /is there already/ } })
  const stale = await made.call('POST', '/v1/apply', { body: { ...wanted, version: 1 } })
  t.equal(stale.status, 412)
  const applied = await made.call('POST', '/v1/apply', { body: { ...wanted, version: 2 } })
  t.match(applied.json, { version: 3, tenants: ['initech'] })
  const { json } = await client.request('tools/list')
  t.ok(json.result.tools.some(({ name }: { name: string }) => name === 'say'))
  const removal = await made.call('POST', '/v1/plan', { body: { tenants: { initech: null } } })
  t.match(removal.json, {
    tenants: [
      { change: 'removed', callersChange: true, upstreams: [{ upstream: 'up', change: 'removed', type: 'http' }] }
    ]
  })
  t.match((await made.call('POST', '/v1/plan', { body: wanted })).json, { tenants: [] }, 'it is so already')
  const broken = { tenants: { initech: { auth: {}, upstreams: { up: {} } }, other: { auth: {}, upstreams: {} } } }
  const refused = await made.call('POST', '/v1/apply', { body: broken, headers: { 'If-Match': '*' } })
  t.equal(refused.status, 422)
  t.match(refused.json, { errors: [{ path: /^initech\.upstreams\.up/ }] })
  t.equal((await made.call('POST', '/v1/plan', { body: broken })).status, 422)
  t.equal((await made.call('GET', '/v1/tenants/other')).status, 404, 'none of it is done')
  const foreign = await made.call('POST', '/v1/plan', { key: adminKeys.globex, body: { tenants: { initech: null } } })
  t.equal(foreign.status, 404)
})

t.test('what others change in their tenants refuses no planned change; what is changed in its own does', async (t) => {
  const admin = (name: 'acme' | 'globex', id: string) => ({
    ...{ name, role: 'tenant-admin', tenants: [id] },
    sha256: sha256(adminKeys[name])
  })
  const platform = { name: 'platform', role: 'platform-admin', sha256: sha256(adminKeys.platform) }
  const keys = [platform, admin('acme', 'initech'), admin('globex', 'umbrella')]
  const made = await adminGateway(t, { upstreams: {}, top: { admin: { listen: { port: 0 }, keys } } })
  const change = (id: string, origin: string, key: string) =>
    made.call('PATCH', `/v1/tenants/${id}`, { key, body: { origins: [`https://${origin}.example`] }, headers: any })
  const wish = (origin: string, ...ids: string[]) => ({
    tenants: Object.fromEntries(
      ids.map((id) => [id, { auth: {}, upstreams: {}, origins: [`https://${origin}.example`] }])
    )
  })
  const plan = async (key: string, wanted: object) => {
    const { json, headers } = await made.call('POST', '/v1/plan', { key, body: wanted })
    return { version: (json as { version: number }).version, etag: String(headers['etag']) }
  }
  const apply = (key: string, wanted: object, version: number) =>
    made.call('POST', '/v1/apply', { key, body: { ...wanted, version } })
  const { acme: one, globex: two } = adminKeys
  for (const id of ['initech', 'umbrella'])
    t.equal((await made.call('PUT', `/v1/tenants/${id}`, { body: { auth: {}, upstreams: {} } })).status, 201)

  const first = await plan(one, wish('one', 'initech'))
  t.same(first, { version: 1, etag: '"1"' }, 'of its own tenant, whatever others did since')
  for (const origin of ['x', 'y']) t.equal((await change('umbrella', origin, two)).status, 200)
  t.match(await apply(one, wish('one', 'initech'), first.version), { status: 200, json: { version: 5 } })
  const second = await plan(one, wish('two', 'initech'))
  t.match(second, { version: 5 })
  t.equal((await change('initech', 'meanwhile', adminKeys.platform)).status, 200)
  const stale = await apply(one, wish('two', 'initech'), second.version)
  t.match(stale, { status: 412, headers: { etag: '"6"' } }, 'somebody was first in this tenant')
  t.equal((await apply(one, wish('two', 'initech'), 99)).status, 412, 'there is no such version yet')

  const third = await plan(one, wish('three', 'initech'))
  t.equal((await made.call('PUT', '/v1/tenants/initech/kills/tenant')).status, 201)
  t.equal((await apply(one, wish('three', 'initech'), third.version)).status, 412, 'a kill switch changes what it does')
  const headers = { 'If-Match': (await plan(one, wish('three', 'initech'))).etag }
  t.equal((await change('umbrella', 'z', two)).status, 200)
  const conditional = await made.call('POST', '/v1/apply', { key: one, body: wish('three', 'initech'), headers })
  t.equal(conditional.status, 200, conditional.text)

  const both = wish('both', 'initech', 'umbrella')
  const planned = await plan(adminKeys.platform, both)
  t.equal((await made.call('PUT', '/v1/tenants/other', { body: { auth: {}, upstreams: {} } })).status, 201)
  t.equal((await change('umbrella', 'first', two)).status, 200)
  t.equal((await apply(adminKeys.platform, both, planned.version)).status, 412, 'one of the two was changed')
  const again = await plan(adminKeys.platform, both)
  t.equal((await made.call('DELETE', '/v1/tenants/other', { headers: any })).status, 204)
  t.equal((await apply(adminKeys.platform, both, again.version)).status, 200, 'another one')
})
