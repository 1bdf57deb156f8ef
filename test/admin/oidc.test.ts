// Administrators who come with a token of an identity provider: of the right issuer, for the admin API and nothing else,
// with what their groups and roles say; and what such a token does not open.

import t from 'tap'
import { compileConfig } from '../../src/config/load.ts'
import { adminGateway, adminKeys, adminSection, globexKey } from '../kit/admin.ts'
import { adminEvents } from '../kit/admin-events.ts'
import { send } from '../kit/client.ts'
import { forgingIssuer, forgedKey } from '../kit/forging-issuer.ts'
import { configOf, key as apiKey } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'

const audience = 'https://admin.gatehouse.example'
const access = [
  { role: 'platform-admin', groups: ['platform'] },
  { role: 'tenant-admin', tenants: ['acme'], groups: ['acme-admins'], roles: ['admin'] },
  { role: 'viewer', subjects: ['vera'] }
]

async function start(t: Parameters<typeof adminGateway>[0]) {
  const idp = await forgingIssuer(t, { resource: audience, now: Date.now() })
  const oidc = { audience, issuers: [{ issuer: idp.issuer }], access }
  const trusted = { keys: [{ name: 'test', key: apiKey }], issuers: [{ issuer: idp.issuer }] }
  const options = { upstreams: {}, auth: trusted, top: { admin: { ...adminSection, oidc }, audit: {} } }
  const made = await adminGateway(t, options)
  let at = 0
  /** Each from an address of its own: wrong tokens are counted by it. */
  const as = (token: string, method = 'GET', path = '/v1/tenants', body?: unknown) =>
    made.call(method, path, { key: token, body, from: `127.0.3.${(at++ % 250) + 1}` })
  return { ...made, idp, oidc, options, as }
}

t.test('a token lets in with the role of its groups, and for its tenants only', async (t) => {
  const { as, idp, log } = await start(t)
  const platform = await idp.sign({ sub: 'pia', groups: ['platform', 'others'] })
  const acme = await idp.sign({ sub: 'ada', groups: ['acme-admins'], roles: ['admin'] })
  const half = await idp.sign({ sub: 'hal', groups: ['acme-admins'], roles: [] })
  const vera = await idp.sign({ sub: 'vera' })
  t.match((await as(platform)).json, { items: [{ id: 'acme' }, { id: 'globex' }] })
  t.same(
    ((await as(acme)).json as { items: Array<{ id: string }> }).items.map(({ id }) => id),
    ['acme']
  )
  t.equal((await as(acme, 'GET', '/v1/tenants/globex')).status, 404)
  t.equal((await as(acme, 'DELETE', '/v1/tenants/acme')).status, 403)
  t.equal((await as(vera)).status, 200)
  t.equal((await as(vera, 'POST', '/v1/plan', { tenants: {} })).status, 403)
  t.match((await as(half)).json, { status: 403, detail: /names nobody/, remedy: /admin\.oidc\.access/ })
  const key = { body: { auth: {}, upstreams: {} }, key: platform }
  t.equal((await as(platform, 'PUT', '/v1/tenants/initech', key.body)).status, 201)
  const [entry] = ((await as(platform, 'GET', '/v1/versions')).json as { items: Array<{ actor: string }> }).items
  t.equal(entry?.actor, `pia (${idp.issuer})`, 'changes name who made them')
  t.ok(log.some(({ msg }) => msg === 'an administrator made a change'))
  t.notMatch(JSON.stringify(log), platform.split('.')[2])
})

t.test('a token that is not of the issuer, not for the admin API, or not good any more is refused', async (t) => {
  const { as, idp, oidc } = await start(t)
  const groups = ['platform']
  t.equal((await as(await idp.sign({ sub: 'pia', groups }))).status, 200, 'the control')
  const stranger = await forgedKey('ES256', 'stranger')
  const past = Math.floor(Date.now() / 1000) - 3_600
  const bad = {
    'another key': await idp.sign({ groups }, {}, stranger),
    'another issuer': await idp.sign({ groups, iss: 'https://evil.example' }),
    'for an endpoint': await idp.sign({ groups, aud: 'http://127.0.0.1/t/acme/mcp' }),
    'for others, too': await idp.sign({ groups, aud: [oidc.audience, 'https://other.example'] }),
    expired: await idp.sign({ groups, exp: past, iat: past - 60 }),
    'bound to a key': await idp.sign({ groups, cnf: { jkt: 'x'.repeat(43) } }),
    'an ID token': await idp.sign({ groups, nonce: 'n' }, { typ: 'JWT' }),
    unsigned: `${(await idp.sign({ groups })).split('.').slice(0, 2).join('.')}.AAAA`,
    'no JWT': 'not-a-token'
  }
  for (const [what, token] of Object.entries(bad)) {
    const { status, headers } = await as(token)
    t.equal(status, 401, what)
    t.match(headers['www-authenticate'], /^Bearer realm="admin"/, what)
  }
})

t.test('a token for the admin API opens no endpoint, and one of an endpoint no admin API', async (t) => {
  const { as, idp, url, publicUrl } = await start(t)
  const admin = await idp.sign({ sub: 'pia', groups: ['platform'] })
  const forEndpoint = await idp.sign({ sub: 'pia', groups: ['platform'], aud: `${publicUrl}/t/acme/mcp` })
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
  })
  const open = (token: string) =>
    send(url(), { headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, body })
  t.equal((await open(admin)).status, 401)
  t.equal((await open(forEndpoint)).status, 200)
  t.equal((await as(forEndpoint)).status, 401)
  t.equal((await as(admin)).status, 200)
})

t.test(
  'many bad tokens are slowed down, an issuer that is away is told, and keys are let in all the while',
  async (t) => {
    const { call, idp } = await start(t)
    const from = '127.0.4.1'
    const past = Math.floor(Date.now() / 1000) - 3_600
    const expired = await idp.sign({ groups: ['platform'], exp: past, iat: past - 60 })
    const answers: number[] = []
    for (let at = 0; at < 12; at++) answers.push((await call('GET', '/v1/tenants', { key: expired, from })).status)
    t.equal(answers[0], 401)
    // One more is let through every 6 s.
    t.ok(answers.slice(10).includes(429))
    t.equal((await call('GET', '/v1/tenants', { from })).status, 200)
    idp.behaviour = 'down'
    const away = await call('GET', '/v1/tenants', { key: await idp.sign({ groups: ['platform'] }), from: '127.0.4.2' })
    t.match(away.json, { status: 503 }, away.text)
    t.equal((await call('GET', '/v1/tenants', { key: adminKeys.viewer })).status, 200)
  }
)

t.test('whoever has a good token and no role here is slowed down as well, and nobody else with them', async (t) => {
  const { as, idp } = await start(t)
  const eve = await idp.sign({ sub: 'eve', groups: ['nobody'] })
  t.equal((await as(eve)).status, 403)
  await until('some are refused', async () => {
    const answers = await Promise.all(Array.from({ length: 120 }, () => as(eve)))
    return answers.some(({ status }) => status === 429)
  })
  t.equal((await as(await idp.sign({ sub: 'pia', groups: ['platform'] }))).status, 200)
})

t.test('who is not in the configuration any more is out at once, streams included', async (t) => {
  const { as, idp, options, oidc, reload, adminUrl } = await start(t)
  const vera = await idp.sign({ sub: 'vera' })
  const stream = await adminEvents(t, adminUrl, '/v1/calls', vera)
  t.equal(stream.status, 200)
  const tenants = { globex: { auth: { keys: [{ name: 'gus', key: globexKey }] }, upstreams: {} } }
  const without = { ...oidc, access: access.slice(0, 2) }
  reload(configOf({ ...options, tenants, top: { ...options.top, admin: { ...adminSection, oidc: without } } }))
  t.equal((await as(vera)).status, 403)
  t.match(await stream.next('it ends', ({ event }) => event === 'end'), { data: { reason: 'access' } })
  await until('it is closed', () => stream.ended)
  reload(configOf({ ...options, tenants, top: { ...options.top, admin: adminSection } }))
  t.equal((await as(await idp.sign({ sub: 'pia', groups: ['platform'] }))).status, 401)
})

t.test('a configuration that would let in too many is refused by its places', (t) => {
  const problemsOf = (oidc: object, tenant: object = {}): string => {
    const top = { admin: { ...adminSection, oidc } }
    const auth = { keys: [{ name: 'gus', key: globexKey }] }
    const given = configOf({ upstreams: {}, tenants: { globex: { auth, upstreams: {}, ...tenant } }, top })
    try {
      compileConfig(JSON.stringify(given), { path: 'x', env: {} })
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  const issuer = { issuer: 'https://idp.example.com' }
  const good = { audience, issuers: [issuer], access }
  t.equal(problemsOf(good), '')
  t.match(problemsOf({ ...good, access: [{ role: 'viewer' }] }), /access\[0\].*lets in whoever has a token/)
  t.match(problemsOf({ ...good, access: [{ role: 'tenant-admin', groups: ['a'] }] }), /names no tenants/)
  t.match(
    problemsOf({ ...good, access: [{ role: 'platform-admin', tenants: ['a'], groups: ['a'] }] }),
    /for all tenants/
  )
  t.match(problemsOf({ ...good, issuers: [issuer, { issuer: 'https://b.example' }] }), /names no issuer/)
  t.match(problemsOf({ ...good, audience: 'https://gw.example/t/acme/mcp' }), /URL of an endpoint/)
  const accepting = { auth: { issuers: [{ ...issuer, audiences: [audience] }] } }
  t.match(problemsOf(good, accepting), /tenants\.globex.*accepts tokens that are for the admin API/)
  t.end()
})
