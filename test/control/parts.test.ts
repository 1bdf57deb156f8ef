// The parts of a tenant that have routes of their own: issuers and the policy, made, changed and removed one by one, as
// versions of the same document.

import t from 'tap'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { legacyClient } from '../kit/client.ts'
import { until } from '../kit/until.ts'
import { startUpstream } from '../kit/upstream.ts'

const path = '/v1/tenants/initech'
const apiKey = 'gh_key_of_a_tenant_made_by_api'
const any = { 'If-Match': '*' }

async function start(t: Parameters<typeof adminGateway>[0]) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['initech'] } : each))
  const admin = { ...adminSection, keys, allowedHosts: ['127.0.0.1', '*.example.com'] }
  const made = await adminGateway(t, { upstreams: {}, top: { admin } })
  const body = {
    auth: { keys: [{ name: 'ci', key: apiKey }] },
    upstreams: { up: { type: 'http', url: upstream.url } }
  }
  const { status, text } = await made.call('PUT', path, { body })
  if (status !== 201) throw new Error(text)
  return made
}

t.test('an issuer is put, shown, changed and removed by its name', async (t) => {
  const { call } = await start(t)
  const issuer = 'https://idp.example.com/realms/a'
  const place = `${path}/issuers/${encodeURIComponent(issuer)}`
  t.equal((await call('GET', place)).status, 404)
  const made = await call('PUT', place, { body: { requireTyp: false } })
  t.match(made.json, { issuer, requireTyp: false, version: 2, configuration: { issuer } }, made.text)
  t.equal(made.status, 201)
  t.equal(made.headers['etag'], '"2"')
  t.match((await call('GET', path)).json, { issuers: [issuer], keys: [{ name: 'ci' }] }, 'keys stay')
  t.match((await call('GET', `${path}/issuers`, { key: adminKeys.viewer })).json, { items: [{ issuer }] })
  t.match((await call('GET', place, { key: adminKeys.viewer })).json, { issuer, configuration: null })
  t.equal((await call('PATCH', place, { body: { requireTyp: null } })).status, 428)
  const changed = await call('PATCH', place, { body: { requireTyp: null }, headers: { 'If-Match': '"2"' } })
  t.match(changed.json, { requireTyp: true, version: 3 }, changed.text)
  const other = { body: { issuer: 'https://evil.example' }, headers: any }
  t.match((await call('PUT', place, other)).json, { status: 400, detail: /another issuer than the path/ })
  const foreign = `${path}/issuers/${encodeURIComponent('https://internal.corp')}`
  t.equal((await call('PUT', foreign, { key: adminKeys.globex, body: {} })).status, 403, 'a host that is not allowed')
  t.equal((await call('DELETE', place, { key: adminKeys.globex, headers: any })).status, 204)
  t.equal((await call('GET', place)).status, 404)
  t.match((await call('GET', path)).json, { issuers: [] })
  t.equal((await call('PUT', `/v1/tenants/acme/issuers/x`, { body: {} })).status, 409, 'the tenant is the file’s')
})

t.test('a policy is put, is in force for lists and calls, and is removed', async (t) => {
  const { call, url } = await start(t)
  const place = `${path}/policy`
  t.equal((await call('GET', place)).status, 404)
  const client = await legacyClient(url('default', 'initech'), apiKey)
  const lists = async (): Promise<boolean> => {
    const { json } = await client.request('tools/list')
    return json.result.tools.some(({ name }: { name: string }) => name === 'up__echo')
  }
  await until('the tool is listed', lists)
  const rule = { name: 'no-echo', effect: 'deny', what: { names: ['echo'] } }
  const made = await call('PUT', place, { key: adminKeys.globex, body: { default: 'allow', rules: [rule] } })
  t.match(made.json, { default: 'allow', rules: [rule], version: 2, configuration: { rules: [rule] } }, made.text)
  t.equal(made.status, 201)
  t.notOk(await lists())
  const called = await client.request('tools/call', { name: 'up__echo', arguments: {} })
  t.match(called.json, { error: { code: -32602 } })
  t.equal((await call('GET', place, { key: adminKeys.viewer })).status, 403)
  t.match((await call('GET', place, { key: adminKeys.auditor })).json, { rules: [rule], configuration: null })
  const bad = await call('PATCH', place, { body: { rules: [{ ...rule, when: 'args.x ==' }] }, headers: any })
  t.match(bad.json, { status: 422, errors: [{ path: 'policy.rules[0].when' }] }, bad.text)
  t.equal((await call('DELETE', place, { headers: any })).status, 204)
  t.ok(await lists())
})

t.test('a limit of calls is put, holds for calls, is shown by name, and is removed', async (t) => {
  const { call, url } = await start(t)
  const place = `${path}/limits/steady`
  t.equal((await call('GET', place)).status, 404)
  const client = await legacyClient(url('default', 'initech'), apiKey)
  const echo = async () => await client.request('tools/call', { name: 'up__echo', arguments: {} })
  await until('it is called', async () => (await echo()).json.result !== undefined)
  const made = await call('PUT', place, { key: adminKeys.globex, body: { perDay: 1 } })
  t.match(made.json, { name: 'steady', perDay: 1, per: [], version: 2, configuration: { perDay: 1 } }, made.text)
  t.equal(made.status, 201)
  t.match((await echo()).json, { result: {} })
  t.match((await echo()).json, { error: { data: { limit: 'steady', reason: 'quota_exceeded' } } })
  t.match((await call('GET', `${path}/limits`, { key: adminKeys.viewer })).json, { items: [{ name: 'steady' }] })
  t.match((await call('GET', place, { key: adminKeys.viewer })).json, { perDay: 1, configuration: null })
  t.equal((await call('PATCH', place, { body: { perDay: 0 }, headers: any })).status, 422)
  t.equal((await call('DELETE', place, { headers: any })).status, 204)
  t.match((await echo()).json, { result: {} })
})

t.test('what a platform-admin has reserved no tenant-admin changes, removes or frees', async (t) => {
  const { call } = await start(t)
  const key = adminKeys.globex
  const everybody = { perDay: 100 }
  const policy = { default: 'allow', rules: [{ name: 'no-pid', effect: 'deny', what: { names: ['pid'] } }] }
  const reserved = ['limits/everybody', 'policy', 'audit']
  const put = await call('PATCH', path, { body: { limits: { everybody }, policy, reserved }, headers: any })
  t.equal(put.status, 200, put.text)
  const { configuration } = put.json as { configuration: Record<string, unknown> }
  const { reserved: _freed, ...freed } = configuration
  const attempts: ReadonlyArray<readonly [method: string, place: string, body?: unknown]> = [
    ['DELETE', `${path}/limits/everybody`],
    ['PUT', `${path}/limits/everybody`, { perDay: 1_000_000 }],
    ['PATCH', `${path}/limits/everybody`, { per: ['principal'] }],
    ['DELETE', `${path}/policy`],
    ['PUT', `${path}/policy`, { default: 'allow' }],
    ['PATCH', path, { audit: { arguments: true } }],
    ['PATCH', path, { limits: null }],
    ['PATCH', path, { reserved: null }],
    ['PATCH', path, { reserved: [] }],
    ['PUT', path, freed],
    ['POST', '/v1/apply', { tenants: { initech: freed } }],
    ['POST', '/v1/plan', { tenants: { initech: freed } }]
  ]
  for (const [method, place, body] of attempts) {
    const { status, text } = await call(method, place, { key, body, headers: any })
    t.equal(status, 403, `${method} ${place}: ${text}`)
    t.match(text, /reserved for platform-admins/)
  }
  // What is not reserved is the tenant's own, limits beside the reserved one with it.
  const own = { key, body: { perSecond: 5 } }
  t.equal((await call('PUT', `${path}/limits/own`, own)).status, 201)
  t.equal((await call('PATCH', path, { key, body: { origins: ['https://a.example'] }, headers: any })).status, 200)
  t.match((await call('GET', path)).json, { configuration: { limits: { everybody }, reserved } })
  t.equal((await call('DELETE', `${path}/limits/everybody`, { headers: any })).status, 204, 'a platform-admin may')
})
