// Attack: secrets that were put into the configuration are read back: from any answer of the API, from problems, plans,
// versions, audit records, events or the log. Instead: they are written and never read, and digests tell nothing either.

import { generateKeyPairSync, hash } from 'node:crypto'
import t from 'tap'
import { adminRoutes } from '../../src/admin/table.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { adminEvents } from '../kit/admin-events.ts'
import { startUpstream } from '../kit/upstream.ts'

const canary = 'CANARYq7Xw2Zr9Lk4Vb8Nt6'
const issuer = 'https://as.example.com'
const apiKey = `gh_${canary}_of_a_tenant`
const pem = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  .privateKey.export({ format: 'pem', type: 'pkcs8' })
  .toString()
const [, pemLine = ''] = pem.split('\n')
const previous = hash('sha256', `${apiKey}_before`)
/** As they are, and as digests of them would be told. */
const forms = [
  canary,
  pemLine,
  previous,
  hash('sha256', apiKey),
  hash('sha256', canary),
  hash('sha256', apiKey, 'base64url')
]

t.test('no route, event or line of the log tells a secret that was put, in any form', async (t) => {
  const upstream = await startUpstream()
  t.teardown(() => upstream.close())
  const admin = { ...adminSection, allowedCommands: [process.execPath] }
  const vault = { keys: [{ id: '1', key: Buffer.alloc(32, 7).toString('base64') }] }
  const made = await adminGateway(t, {
    upstreams: {},
    top: { admin, audit: {}, vault, publicUrl: 'http://127.0.0.1:1' }
  })
  const seen: string[] = []
  const call: typeof made.call = async (...given) => {
    const answer = await made.call(...given)
    seen.push(`${given[0]} ${given[1]}: ${answer.text} ${JSON.stringify(answer.headers)}`)
    return answer
  }
  const document = {
    auth: {
      keys: [{ name: 'ci', key: apiKey, previousSha256: previous, previousUntil: '2999-01-01T00:00:00Z' }],
      issuers: [{ issuer, introspection: { clientId: 'gw', clientSecret: canary } }],
      login: { provider: { issuer: 'https://idp.example.com', clientId: 'gw', clientSecret: canary } }
    },
    upstreams: {
      up: { type: 'http', url: `${upstream.url}?token=x`, headers: { Authorization: `Bearer ${canary}` } },
      robot: { url: upstream.url, auth: { type: 'clientCredentials', clientId: 'robot', clientSecret: canary } },
      known: {
        url: upstream.url,
        auth: {
          type: 'tokenExchange',
          issuer,
          clientId: 'gw',
          clientSecret: canary,
          identityAssertion: { clientId: 'gw', clientSecret: canary }
        }
      },
      signed: { url: upstream.url, auth: { type: 'clientCredentials', issuer, clientId: 'robot', privateKey: pem } },
      account: { url: upstream.url, auth: { type: 'user', clientId: 'gw', clientSecret: canary } },
      child: { command: process.execPath, args: ['-e', ''], env: { TOKEN: canary } }
    }
  }
  const any = { 'If-Match': '*' }
  const path = '/v1/tenants/initech'
  const events = await adminEvents(t, made.adminUrl, '/v1/calls')
  const put = await call('PUT', path, { body: document })
  t.equal(put.status, 201, put.text)
  t.equal((await call('PATCH', path, { body: { origins: ['https://a.example'] }, headers: any })).status, 200)
  const changed = { ...document.upstreams.up, headers: { 'X-Other': canary } }
  t.equal((await call('PUT', `${path}/upstreams/up`, { body: changed, headers: any })).status, 200)
  await call('POST', '/v1/plan', { body: { tenants: { initech: document } } })
  await call('POST', '/v1/apply', { body: { tenants: { initech: document } } })
  // What is wrong beside a secret, and a secret in a place where it is wrong.
  await call('PUT', path, { body: { ...document, comand: canary }, headers: any })
  await call('PUT', path, {
    body: { ...document, auth: { keys: [{ name: 'ci', key: canary.slice(0, 8) }] } },
    headers: any
  })
  await call('PUT', `${path}/upstreams/up`, { body: { ...changed, type: canary }, headers: any })
  await call('POST', `${path}/keys`, { body: { name: canary, scopes: ['a b'] } })
  t.match((await call('GET', `${path}/upstreams/known`)).json, {
    configuration: { auth: { identityAssertion: { clientId: 'gw', clientSecret: { secret: true } } } }
  })
  t.match((await call('GET', `${path}/issuers/${encodeURIComponent(issuer)}`)).json, {
    configuration: { introspection: { clientSecret: { secret: true } } }
  })
  // Wherever a secret stands, at each depth, a reader gets a mark; and so does who changes what is beside it.
  const hiddenIn = (value: unknown, at = ''): string[] => {
    if (typeof value !== 'object' || value === null) return []
    if ((value as { secret?: unknown }).secret === true) return [at]
    return Object.entries(value).flatMap(([name, each]) => hiddenIn(each, `${at}.${name}`))
  }
  const answers = [
    await call('GET', path),
    await call('PATCH', path, { body: { origins: ['https://b.example'] }, headers: any })
  ]
  for (const { json } of answers)
    t.same(hiddenIn((json as { configuration: unknown }).configuration).toSorted(), [
      '.auth.issuers.0.introspection.clientSecret',
      '.auth.keys.0.previousSha256',
      '.auth.keys.0.sha256',
      '.auth.login.provider.clientSecret',
      '.upstreams.account.auth.clientSecret',
      '.upstreams.child.env.TOKEN',
      '.upstreams.known.auth.clientSecret',
      '.upstreams.known.auth.identityAssertion.clientSecret',
      '.upstreams.robot.auth.clientSecret',
      '.upstreams.signed.auth.privateKey',
      '.upstreams.up.headers.X-Other'
    ])
  for (const [name, where] of [
    ['known', 'auth'],
    ['account', 'auth'],
    ['signed', 'auth'],
    ['child', 'env']
  ] as const) {
    const body = { description: 'Nothing of it changes.' }
    const { json, text } = await call('PATCH', `${path}/upstreams/${name}`, { body, headers: any })
    const { configuration } = json as { configuration?: Record<string, unknown> }
    t.ok(hiddenIn(configuration?.[where]).length > 0, `${name}: ${text}`)
  }
  const signIn = { issuer, clientId: 'gw', clientSecret: canary }
  const patched = await call('PATCH', path, { body: { auth: { login: null, signIn } }, headers: any })
  const { configuration } = patched.json as { configuration?: unknown }
  t.ok(hiddenIn(configuration).includes('.auth.signIn.clientSecret'), patched.text)
  const names: Readonly<Record<string, string>> = { tenant: 'initech', upstream: 'up', endpoint: 'default' }
  for (const key of [adminKeys.platform, adminKeys.auditor, adminKeys.viewer])
    for (const route of adminRoutes.filter(({ method }) => method === 'GET')) {
      const at = route.path.replace(/\{(\w+)\}/g, (_all, name: string) => names[name] ?? 'ci')
      await call('GET', at, { key })
    }
  const told = [...seen, events.text, ...made.log.map((line) => JSON.stringify(line))]
  const guilty = told.filter((text) => forms.some((form) => text.includes(form)))
  // The one answer to whoever chose it as the name of a key.
  t.same(
    guilty.filter((text) => !text.startsWith('POST /v1/tenants/initech/keys')),
    []
  )
  t.ok(seen.length > 50)
  t.ok(
    seen.some((text) => text.includes('{"secret":true}')),
    'the control: they are there'
  )
})
