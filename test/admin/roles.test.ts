// Who may use which route: generated from the table of routes, so that no route is left out.

import t from 'tap'
import { adminRoutes } from '../../src/admin/table.ts'
import { adminGateway, adminKeys, adminSection, globexKey } from '../kit/admin.ts'
import { configOf, key as apiKey } from '../kit/gateway.ts'
import { startUpstream } from '../kit/upstream.ts'

const nameOf = ({ method, path }: { readonly method: string; readonly path: string }): string => `${method} ${path}`

/** A body for each route that takes one. */
const bodies: Readonly<Record<string, unknown>> = {
  'POST /v1/tenants/{tenant}/endpoints/{endpoint}/catalog/diff': { from: {}, to: {} },
  'POST /v1/tenants/{tenant}/endpoints/{endpoint}/try': { tool: 'up__echo' },
  'POST /v1/tenants/{tenant}/endpoints/{endpoint}/doctor': {},
  'POST /v1/tenants/{tenant}/endpoints/{endpoint}/catalog': {},
  'POST /v1/tenants/{tenant}/keys': { name: 'new' },
  'POST /v1/tenants/{tenant}/connections/revoke': { all: true },
  'POST /v1/plan': { tenants: {} },
  'POST /v1/apply': { tenants: {} },
  'POST /v1/rollback': { version: 1 },
  'PUT /v1/tenants/{tenant}': {},
  'PATCH /v1/tenants/{tenant}': {},
  'PUT /v1/tenants/{tenant}/upstreams/{upstream}': {},
  'PATCH /v1/tenants/{tenant}/upstreams/{upstream}': {},
  'PUT /v1/tenants/{tenant}/endpoints/{endpoint}': {},
  'PATCH /v1/tenants/{tenant}/endpoints/{endpoint}': {},
  'PUT /v1/tenants/{tenant}/issuers/{issuer}': {},
  'PATCH /v1/tenants/{tenant}/issuers/{issuer}': {},
  'PUT /v1/tenants/{tenant}/limits/{limit}': {},
  'PATCH /v1/tenants/{tenant}/limits/{limit}': {},
  'PUT /v1/tenants/{tenant}/policy': {},
  'PATCH /v1/tenants/{tenant}/policy': {},
  'POST /v1/tenants/{tenant}/upstreams/{upstream}/reconnect': {},
  'POST /v1/tenants/{tenant}/upstreams/{upstream}/discover': {},
  'POST /v1/tenants/{tenant}/endpoints/{endpoint}/explain': { name: 'up/echo' }
}

/** What names something of acme. A session is another one for each request. */
const params: Readonly<Record<string, string>> = {
  tenant: 'acme',
  endpoint: 'default',
  upstream: 'up',
  key: 'test',
  tool: 'echo',
  issuer: 'https://idp.example.com',
  subject: 'ada',
  limit: 'steady',
  session: 'none',
  version: '1',
  trail: 'acme'
}
const pathOf = (path: string): string =>
  path.replace(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(params[name] ?? 'missing'))

/** Keys, their roles, and whether they are for acme; by role undefined: it is no admin key. */
const callers = [
  ['no key', null, undefined, false],
  ['an API key of acme', apiKey, undefined, false],
  ['an API key of globex', globexKey, undefined, false],
  ['an unknown admin key', `gha_${'x'.repeat(43)}`, undefined, false],
  ['the viewer of globex', adminKeys.globexViewer, 'viewer', false],
  ['the tenant admin of globex', adminKeys.globex, 'tenant-admin', false],
  ['the tenant admin of acme', adminKeys.acme, 'tenant-admin', true],
  ['a viewer', adminKeys.viewer, 'viewer', true],
  ['a Prometheus', adminKeys.metrics, 'metrics', true],
  ['an auditor', adminKeys.auditor, 'auditor', true],
  ['the platform admin', adminKeys.platform, 'platform-admin', true]
] as const

t.test('every route lets in exactly the roles of the table, and nobody else', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const { call } = await adminGateway(t, { upstreams: { up: { type: 'http', url: upstream.url } } })
  let address = 1
  for (const route of adminRoutes) {
    t.ok(route.roles.length > 0, `${nameOf(route)} has roles`)
    t.equal(route.body !== undefined, nameOf(route) in bodies, `${nameOf(route)} has a body for this test`)
    // Nobody has called here yet, and no tool is known.
    const isKill = route.method === 'PUT' && route.path.includes('/kills/')
    const path = pathOf(route.path) + (isKill ? '?force=true' : '')
    t.notMatch(path, 'missing', `${nameOf(route)} has values for this test`)
    for (const [who, key, role, isForAcme] of callers) {
      // Wrong keys are counted by address.
      const from = `127.0.1.${address++ % 250}`
      const { status, json } = await call(route.method, path, { key, body: bodies[nameOf(route)], from })
      const name = `${nameOf(route)} by ${who}`
      if (role === undefined) t.equal(status, 401, name)
      else if (!route.roles.includes(role)) t.equal(status, 403, name)
      else if (route.path.includes('{tenant}') && !isForAcme) t.match(json, { status: 404, detail: /tenant/ }, name)
      // There is no such session: whoever gets so far was let in.
      else if (route.path.includes('{session}')) t.match(json, { status: 404, detail: /session/ }, name)
      // Each is put, and taken back once, by the platform admin, whose it is.
      else if (route.path.includes('/kills/')) {
        const done = isKill ? (isForAcme && role === 'tenant-admin' ? 201 : 200) : 204
        t.ok(status === done || (!isKill && /kill switch/.test(JSON.stringify(json))), name)
      }
      // Nothing was changed yet.
      else if (route.path === '/v1/rollback') t.match(json, { status: 404, detail: /version/ }, name)
      // acme has neither an issuer nor a limit or a policy, and the file has it.
      else if (/(?:issuer|limit|version)}$|policy$/.test(route.path) && route.method === 'GET')
        t.match(json, { status: 404 }, name)
      // A stream has to be asked for, and there is neither an audit log nor a Prometheus.
      else if (route.path.endsWith('/calls')) t.equal(status, 406, name)
      else if (/\/audit(?:\/|$)|\/series\/long$/.test(route.path)) t.equal(status, 409, name)
      // Of all tenants.
      else if (route.path === '/metrics') t.equal(status, isForAcme ? 200 : 403, name)
      // The tenant is the file's: whoever gets so far was let in.
      else if (route.tenantMayBeMissing && route.method !== 'GET') t.match(json, { status: 409 }, name)
      else t.equal(status, 200, name)
    }
  }
})

t.test('what the table does not have is refused like everything else, first for the key', async (t) => {
  const { call } = await adminGateway(t, { upstreams: {} })
  for (const path of [
    '/',
    '/v1',
    '/v1/tenants/',
    '/v1/nothing',
    '/health/live',
    '/t/acme/mcp',
    '/v1/tenants/%E0%A4%A'
  ]) {
    const stranger = await call('GET', path, { key: null })
    // What is no path at all is refused before anybody is asked.
    t.equal(stranger.status, path.includes('%E0') ? 404 : 401, path)
    t.equal((await call('GET', path)).status, 404, path)
  }
  for (const method of ['HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'POST']) {
    t.equal((await call(method, '/v1/tenants', { key: null })).status, 401, method)
    const known = await call(method, '/v1/tenants')
    t.equal(known.status, 405, method)
    t.equal(known.headers['allow'], 'GET')
  }
  t.equal((await call('GET', '/v1/tenants')).status, 200)
})

t.test('a key that a reload takes away is refused at once, and a new one is let in', async (t) => {
  const made = await adminGateway(t, { upstreams: {} })
  const [first, second] = [adminKeys.viewer, adminKeys.auditor]
  const withOnly = (name: string) =>
    configOf({
      upstreams: {},
      tenants: { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: {} } },
      top: { admin: { ...adminSection, keys: adminSection.keys.filter((key) => key.name === name) } }
    })
  made.reload(withOnly('viewer'))
  t.equal((await made.call('GET', '/v1/limits', { key: first })).status, 200)
  t.equal((await made.call('GET', '/v1/limits', { key: second })).status, 401)
  made.reload(withOnly('auditor'))
  t.equal((await made.call('GET', '/v1/limits', { key: first })).status, 401)
  t.equal((await made.call('GET', '/v1/limits', { key: second })).status, 200)
})
