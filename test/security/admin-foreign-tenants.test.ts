// Attack: whoever administers one tenant names another one in a path, a query or a body, or sends members that the API
// does not know. Instead: another tenant is answered, by every route, byte for byte as one that there is not; and unknown
// members are refused by every route that takes a body, with nothing done.

import { hash } from 'node:crypto'
import t from 'tap'
import { adminRoutes } from '../../src/admin/table.ts'
import { adminGateway, adminKeys, adminSection, type AdminAnswer } from '../kit/admin.ts'
import { startUpstream } from '../kit/upstream.ts'

const names: Readonly<Record<string, string>> = {
  endpoint: 'default',
  upstream: 'up',
  key: 'test',
  tool: 'echo',
  issuer: 'https://idp.example.com',
  subject: 'ada',
  limit: 'steady',
  session: 'none'
}
const pathOf = (path: string, tenant: string): string =>
  path.replace(/\{(\w+)\}/g, (_all, name: string) =>
    encodeURIComponent(name === 'tenant' ? tenant : (names[name] ?? 'missing'))
  )

/** One key alone is soon slowed down: these take turns. */
const tenKeys = (whose: string): string[] =>
  Array.from({ length: 10 }, (_, at) => `gha_${hash('sha256', `${whose} ${at}`, 'base64url')}`)
const [platformKeys, globexKeys, viewerKeys] = [tenKeys('platform'), tenKeys('globex'), tenKeys('viewer')]
const takesTurns = (keys: readonly string[], turn: number): string => keys[turn % keys.length] ?? ''

/** Without what the request itself said. */
const told = ({ status, text }: AdminAnswer, tenant: string): string => `${status} ${text.replaceAll(tenant, 'X')}`

async function start(t: Parameters<typeof adminGateway>[0]) {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const up = { type: 'http', url: upstream.url }
  const named = (keys: readonly string[], name: string, role: string, tenants?: readonly string[]) =>
    keys.map((key, at) => ({ name: `${name}-${at}`, role, sha256: hash('sha256', key), ...(tenants && { tenants }) }))
  const more = [
    ...named(platformKeys, 'more', 'platform-admin'),
    ...named(globexKeys, 'globex', 'tenant-admin', ['globex']),
    ...named(viewerKeys, 'viewer-of-globex', 'viewer', ['globex'])
  ]
  const admin = { ...adminSection, keys: [...adminSection.keys, ...more] }
  return await adminGateway(t, { upstreams: { up }, top: { admin } })
}

t.test('by every route another tenant is as unknown as one that there is not', async (t) => {
  const { call } = await start(t)
  const routes = adminRoutes.filter(({ path }) => path.includes('{tenant}'))
  t.ok(routes.length > 30)
  for (const [turn, { method, path, body, roles }] of routes.entries()) {
    const key = takesTurns(roles.includes('tenant-admin') ? globexKeys : viewerKeys, turn)
    const headers = { 'If-Match': '*' }
    const options = { key, headers, ...(body !== undefined && { body: {} }) }
    const foreign = await call(method, pathOf(path, 'acme'), options)
    const missing = await call(method, pathOf(path, 'nowhere'), options)
    t.equal(told(foreign, 'acme'), told(missing, 'nowhere'), `${method} ${path}`)
    t.equal(foreign.status, roles.includes('tenant-admin') || roles.includes('viewer') ? 404 : 403, path)
  }
  t.equal((await call('GET', '/v1/tenants/globex', { key: adminKeys.globex })).status, 200, 'the control')
})

t.test('neither a query nor a body leads to another tenant', async (t) => {
  const { call } = await start(t)
  const as = (tenant: string) => ({
    key: adminKeys.globex,
    body: { tenants: { [tenant]: { auth: {}, upstreams: {} } } }
  })
  for (const path of ['/v1/plan', '/v1/apply']) {
    const foreign = await call('POST', path, as('acme'))
    t.equal(foreign.status, 404, path)
    t.equal(told(foreign, 'acme'), told(await call('POST', path, as('nowhere')), 'nowhere'), path)
    const removed = { key: adminKeys.globex, body: { tenants: { acme: null } } }
    t.equal((await call('POST', path, removed)).status, 404, path)
  }
  const query = (tenant: string) => call('GET', `/v1/versions?tenant=${tenant}`, { key: adminKeys.globex })
  t.equal(told(await query('acme'), 'acme'), told(await query('nowhere'), 'nowhere'))
  t.equal((await query('acme')).status, 404)
  t.equal((await query('globex')).status, 200)
  const rollback = { key: adminKeys.globex, body: { version: 1, tenant: 'acme' } }
  t.equal((await call('POST', '/v1/rollback', rollback)).status, 403)
  t.equal((await call('GET', '/v1/tenants/acme')).status, 200, 'nothing was removed')
})

t.test('members that the API does not know are refused by every route that takes a body', async (t) => {
  const { call } = await start(t)
  const bodies = ['role', 'tenantId', 'isAdmin', 'createdBy', 'secretHash', '__proto__', 'constructor'].map(
    (name) => `{"${name}":{"role":"platform-admin"}}`
  )
  const tenant = { auth: {}, upstreams: { up: { url: 'http://127.0.0.1:1' } } }
  t.equal((await call('PUT', '/v1/tenants/initech', { body: tenant })).status, 201)
  const routes = adminRoutes.filter(({ body }) => body !== undefined)
  let asked = 0
  t.ok(routes.length > 12)
  for (const { method, path } of routes)
    for (const body of bodies) {
      // It has neither an issuer nor a limit or a policy: these are new.
      const headers = /(?:issuer|limit)}$|policy$/.test(path) ? {} : { 'If-Match': '*' }
      const key = takesTurns(platformKeys, asked++)
      const { status, text } = await call(method, pathOf(path, 'initech'), { key, body, headers })
      t.ok([400, 404, 422].includes(status), `${method} ${path} ${body}: ${status} ${text}`)
    }
  t.match((await call('GET', '/v1/tenants/initech')).json, { version: 1, configuration: tenant }, 'nothing was done')
})
