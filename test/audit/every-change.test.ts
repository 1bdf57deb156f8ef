// Every route of the admin API that changes something leaves one record, written before its answer: who, as what, from
// where, what, and digests of before and after. Taken from the table of routes, so that none is left out.

import { join } from 'node:path'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { adminRoutes } from '../../src/admin/table.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { startUpstream } from '../kit/upstream.ts'
import { recordsIn, report } from './kit.ts'

/** They only tell, or there is nothing here that they could end (test/admin/connections.test.ts). */
const exempt = new Set([
  'POST /v1/plan',
  'POST /v1/tenants/{tenant}/endpoints/{endpoint}/catalog',
  'POST /v1/tenants/{tenant}/endpoints/{endpoint}/catalog/diff',
  'POST /v1/tenants/{tenant}/endpoints/{endpoint}/explain',
  'POST /v1/tenants/{tenant}/endpoints/{endpoint}/doctor',
  'POST /v1/tenants/{tenant}/connections/revoke'
])

const apiKey = 'gh_key_of_ian_0123456789'
const issuer = 'https://idp.example.com'
const params: Readonly<Record<string, string>> = {
  tenant: 'initech',
  upstream: 'up',
  endpoint: 'files',
  tool: 'echo',
  limit: 'day',
  key: 'ci',
  issuer,
  subject: 'ada'
}

/** In an order in which each finds what it changes. */
const steps = (url: string): ReadonlyArray<readonly [route: string, body?: unknown, more?: Record<string, string>]> => [
  ['PUT /v1/tenants/{tenant}', { auth: { keys: [{ name: 'ci', key: apiKey }] }, upstreams: { up: { url } } }],
  ['PATCH /v1/tenants/{tenant}', { origins: ['https://a.example'] }],
  ['PUT /v1/tenants/{tenant}/endpoints/{endpoint}', { upstreams: ['up'] }, { endpoint: 'default' }],
  ['PUT /v1/tenants/{tenant}/endpoints/{endpoint}', { upstreams: ['up'], prefix: '' }],
  ['PATCH /v1/tenants/{tenant}/endpoints/{endpoint}', { maxTools: 5 }],
  ['POST /v1/tenants/{tenant}/endpoints/{endpoint}/try', { tool: 'echo', credential: apiKey }],
  ['DELETE /v1/tenants/{tenant}/endpoints/{endpoint}'],
  ['PUT /v1/tenants/{tenant}/upstreams/{upstream}', { url }, { upstream: 'two' }],
  ['PATCH /v1/tenants/{tenant}/upstreams/{upstream}', { maxCalls: 3 }, { upstream: 'two' }],
  ['DELETE /v1/tenants/{tenant}/upstreams/{upstream}', undefined, { upstream: 'two' }],
  ['POST /v1/tenants/{tenant}/upstreams/{upstream}/reconnect', {}],
  ['POST /v1/tenants/{tenant}/upstreams/{upstream}/discover', { url }],
  ['PUT /v1/tenants/{tenant}/issuers/{issuer}', {}],
  ['PATCH /v1/tenants/{tenant}/issuers/{issuer}', { requireTyp: false }],
  ...['PUT', 'DELETE'].map((verb) => [`${verb} /v1/tenants/{tenant}/kills/principals/{issuer}/{subject}`] as const),
  ['DELETE /v1/tenants/{tenant}/issuers/{issuer}'],
  ['PUT /v1/tenants/{tenant}/limits/{limit}', { perDay: 500 }],
  ['PATCH /v1/tenants/{tenant}/limits/{limit}', { perDay: 600 }],
  ['DELETE /v1/tenants/{tenant}/limits/{limit}'],
  ['PUT /v1/tenants/{tenant}/policy', { default: 'allow', rules: [] }],
  ['PATCH /v1/tenants/{tenant}/policy', { default: 'deny' }],
  ['DELETE /v1/tenants/{tenant}/policy'],
  ['POST /v1/tenants/{tenant}/keys', { name: 'new' }],
  ['DELETE /v1/tenants/{tenant}/keys/{key}', undefined, { key: 'new' }],
  ['DELETE /v1/tenants/{tenant}/sessions/{session}'],
  ...['/tools/{upstream}/{tool}', '/upstreams/{upstream}', '/keys/{key}', '/tenant'].flatMap((what) =>
    ['PUT', 'DELETE'].map((verb) => [`${verb} /v1/tenants/{tenant}/kills${what}`] as const)
  ),
  ['POST /v1/apply', { tenants: { initech: { auth: {}, upstreams: {} } } }],
  ['POST /v1/rollback', { version: 1, tenant: 'initech' }],
  ['DELETE /v1/tenants/{tenant}']
]

t.test('each change is one record, on the disk when it is answered', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const made = await adminGateway(t, { upstreams: {}, top: { audit: { store: false, file } } })
  const changes = async () => (await recordsIn(file)).filter(({ kind }) => kind === 'change')
  const all = steps(upstream.url)
  for (const { method, path } of adminRoutes)
    if (method !== 'GET' && !exempt.has(`${method} ${path}`))
      t.ok(
        all.some(([route]) => route === `${method} ${path}`),
        `${method} ${path} is tried`
      )
  let known = 0
  for (const [route, body, more = {}] of all) {
    const [method = '', template = ''] = route.split(' ')
    let session = ''
    if (template.includes('{session}')) {
      await legacyClient(made.url('default', 'initech'), apiKey)
      const { items } = (await made.call('GET', '/v1/tenants/initech/sessions')).json as {
        items: Array<{ id: string }>
      }
      session = items[0]?.id ?? ''
    }
    const path = template.replace(/\{(\w+)\}/g, (_all, name: string) =>
      encodeURIComponent({ ...params, session, ...more }[name] ?? '')
    )
    // Ada has never called.
    const query = method === 'PUT' && path.includes('/principals/') ? '?force=true' : ''
    const isConditional =
      method === 'PATCH' || method === 'DELETE' || path === '/v1/apply' || more['endpoint'] === 'default'
    const headers: Record<string, string> = isConditional && !path.includes('/kills/') ? { 'If-Match': '*' } : {}
    const { status, text } = await made.call(method, path + query, { body, headers })
    t.ok(status < 300, `${method} ${path}: ${status} ${text}`)
    const found = await changes()
    t.equal(found.length, ++known, `${method} ${path} is recorded before its answer`)
    const by = { kind: 'admin', name: 'platform', role: 'platform-admin' }
    t.match(found.at(-1), {
      by,
      from: '127.0.0.1',
      action: /^[a-z]+(?:\.[a-z]+)?$/,
      target: String,
      chain: /^initech\//
    })
    const { before, after, action }: Partial<Record<string, unknown>> = found.at(-1) ?? {}
    const isDigest = (value: unknown): boolean => /^[0-9a-f]{64}$/.test(String(value))
    if (!['tool.try', 'upstream.discover'].includes(String(action)))
      t.ok(isDigest(before) || isDigest(after), `${String(action)} has a digest of what was or is there`)
  }
  await made.close()
  t.match(await report(await readFile(file, 'utf8'), Date.now()), { problems: [] })
})

t.test('no tenant-admin switches the record of changes off', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['initech'] } : each))
  const made = await adminGateway(t, {
    upstreams: {},
    top: { audit: { store: false, file }, admin: { ...adminSection, keys } }
  })
  const at = '/v1/tenants/initech'
  await made.call('PUT', at, { body: { auth: {}, upstreams: {} } })
  const patch = (body: object) => made.call('PATCH', at, { key: adminKeys.globex, body, headers: { 'If-Match': '*' } })
  for (const audit of ['none', false, { enabled: false }, { changes: false }])
    t.equal((await patch({ audit })).status, 422, JSON.stringify(audit))
  for (const audit of [{ required: true }, null]) {
    t.equal((await patch({ audit })).status, 200)
    const by = { name: 'globex', role: 'tenant-admin' }
    t.match((await recordsIn(file)).at(-1), { kind: 'change', action: 'tenant.patch', by })
  }
})

t.test('a change of several tenants is in the record of each, which names no other', async (t) => {
  const file = join(t.testdir(), 'audit.jsonl')
  const made = await adminGateway(t, { upstreams: {}, top: { audit: { store: false, file } } })
  const tenant = { auth: {}, upstreams: {} }
  const apply = (tenants: object, key: string = adminKeys.platform) =>
    made.call('POST', '/v1/apply', { key, body: { tenants }, headers: { 'If-Match': '*' } })
  t.equal((await apply({ initech: tenant, hooli: tenant })).status, 200)
  const changes = async () => (await recordsIn(file)).filter(({ kind }) => kind === 'change')
  t.match(await changes(), [
    { chain: /^initech\//, action: 'apply', target: 'initech' },
    { chain: /^hooli\//, action: 'apply', target: 'hooli' }
  ])
  t.equal((await apply({ initech: null }, adminKeys.globex)).status, 404, 'another tenant is unknown')
  await made.close()
  const refused = (await recordsIn(file)).find(({ kind }) => kind === 'refused')
  t.match(refused, { action: 'apply', target: 'initech', outcome: 'not_found', by: { name: 'globex' } })
  t.notMatch(refused, { chain: /^initech\// }, 'in the record of the gateway')
})
