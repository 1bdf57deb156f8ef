// References of documents to variables and files of the gateway: nobody but a platform-admin makes any, in whatever
// form or place, no answer tells what they would stand for, and no default of one is shown.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { keepsReferences } from '../../src/control/document/draft.ts'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'
import { configOf } from '../kit/gateway.ts'

const path = '/v1/tenants/initech'
const plain = { name: 'ci', key: 'gh_key_of_a_tenant_made_by_api' }

async function start(t: Tap) {
  const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['initech'] } : each))
  return await adminGateway(t, { upstreams: {}, top: { admin: { ...adminSection, keys } } })
}
type Tap = Parameters<typeof adminGateway>[0]

t.test('a reference of a tenant-admin is refused before it is looked up, whatever stands beside it', async (t) => {
  const made = await start(t)
  const file = join(t.testdir(), 'secret')
  writeFileSync(file, 'SuperSecretToken42')
  t.equal((await made.call('PUT', path, { body: { auth: { keys: [plain] }, upstreams: {} } })).status, 201)
  const kept = { name: 'ci', sha256: { secret: true } }
  const documents = (reference: string) => [
    { auth: { keys: [{ name: 'ci', key: reference }, kept] } },
    { auth: { keys: { a: reference } } },
    { auth: { keys: [kept], issuers: { a: reference } } },
    { auth: { keys: [kept], issuers: [{ issuer: reference }, { issuer: 'https://a.example' }] } },
    { auth: { keys: [kept] }, 'key ci': reference }
  ]
  const [there, missing] = [documents(`\${file:${file}}`), documents('${file:/nowhere/at/all}')]
  for (const [at, body] of there.entries()) {
    for (const [method, target, wrap] of [
      ['PUT', path, (each: object) => each],
      ['POST', '/v1/plan', (each: object) => ({ tenants: { initech: each } })]
    ] as const) {
      const options = { key: adminKeys.globex, headers: { 'If-Match': '*' } }
      const answer = await made.call(method, target, { ...options, body: wrap({ upstreams: {}, ...body }) })
      const other = await made.call(method, target, { ...options, body: wrap({ upstreams: {}, ...missing[at] }) })
      t.equal(answer.status, 403, `${method} ${JSON.stringify(body)}: ${answer.text}`)
      t.equal(answer.text, other.text, 'it does not tell whether there is such a file')
    }
  }
  const own = { body: { origins: ['https://mine.example'] }, key: adminKeys.globex, headers: { 'If-Match': '*' } }
  const changed = await made.call('PATCH', path, own)
  t.equal(changed.status, 200, `a change without any is made: ${changed.text}`)
})

t.test('an API key that is a reference shows no default of it', async (t) => {
  const made = await start(t)
  const key = '${NOPE:-gh_literal_secret_0123456789}'
  const created = await made.call('PUT', path, { body: { auth: { keys: [{ name: 'ci', key }] }, upstreams: {} } })
  t.equal(created.status, 201, created.text)
  const shown = await made.call('GET', path)
  t.notMatch(shown.text, /gh_literal/)
  t.match(shown.json, { configuration: { auth: { keys: [{ name: 'ci', key: { secret: true } }] } } })
  const { configuration } = shown.json as { configuration: object }
  const again = await made.call('PUT', path, { body: { ...configuration }, headers: { 'If-Match': '*' } })
  t.ok(again.status < 300, `what is shown can be put back, and keeps it: ${again.text}`)
})

t.test('beside references of a platform-admin a tenant-admin gets none of its own in', async (t) => {
  const made = await start(t)
  const theirs = {
    auth: { keys: [plain] },
    upstreams: {},
    policy: { default: 'allow', rules: [{ name: 'r', effect: 'deny', who: { subjects: ['${HOME:-x}'] } }] }
  }
  t.equal((await made.call('PUT', path, { body: theirs })).status, 201)
  const shown = (await made.call('GET', path)).json as { configuration: Record<string, unknown> }
  const tries = [
    { origins: ['${HOME}'] },
    { origins: ['https://a.example'], policy: { ...theirs.policy, default: '${HOME}' } },
    {
      auth: {
        keys: [
          { name: 'ci', sha256: { secret: true } },
          { name: 'b', key: '${HOME}' }
        ]
      }
    },
    { endpoints: { a: { upstreams: [], instructions: '${HOME}' } } },
    { audit: { redact: ['${HOME:-x}'] } }
  ]
  const as = { key: adminKeys.globex, headers: { 'If-Match': '*' } }
  for (const part of tries) {
    const answer = await made.call('PUT', path, { ...as, body: { ...shown.configuration, ...part } })
    t.equal(answer.status, 403, `${JSON.stringify(part)}: ${answer.text}`)
  }
  const changed = await made.call('PUT', path, { ...as, body: { ...shown.configuration, origins: [] } })
  t.equal(changed.status, 200, `the control, with what was there: ${changed.text}`)
})

t.test('only texts of before are resolved for a tenant-admin, wherever they stand now', (t) => {
  const before = { a: ['${A}', 'x'], b: { c: 'Bearer ${B}' } }
  t.ok(keepsReferences(before, { z: 'Bearer ${B}', y: ['new'] }))
  for (const text of ['${C}', '${A} ', 'x${B}']) t.notOk(keepsReferences(before, { ...before, d: [{ e: text }] }), text)
  t.ok(keepsReferences(before, { d: '$${C}' }), 'that is no reference')
  t.end()
})

t.test('whoever may not read a document hears that it cannot be used, and nothing of what it refers to', async (t) => {
  const made = await start(t)
  const variable = 'GATEHOUSE_TEST_GOES_AWAY'
  process.env[variable] = 'x'
  const body = {
    auth: { keys: [plain] },
    upstreams: { up: { url: 'http://127.0.0.1:1', headers: { A: `\${${variable}}` } } }
  }
  t.equal((await made.call('PUT', path, { body })).status, 201)
  delete process.env[variable]
  made.reload(configOf({ upstreams: {}, top: { admin: adminSection } }))
  const told = await made.call('GET', path)
  t.match(told.json, { problems: [{ path: 'upstreams.up.headers.A', message: new RegExp(variable) }] }, 'the control')
  for (const key of [adminKeys.viewer, adminKeys.auditor]) {
    const { json, text } = await made.call('GET', path, { key })
    t.match(json, { problems: [{ path: '', message: 'cannot be used at the process that answers' }] })
    t.notMatch(text, variable)
  }
})

t.test('the secret of a login front can be written and never read, and goes nowhere else', async (t) => {
  const made = await adminGateway(t, { upstreams: {}, top: { admin: adminSection, publicUrl: 'http://127.0.0.1:1' } })
  const secret = 'secret-of-the-client-0123456789'
  const login = (provider: object) => ({ auth: { login: { provider } }, upstreams: {} })
  const provider = { issuer: 'https://idp.example.com', clientId: 'gatehouse', clientSecret: secret }
  t.equal((await made.call('PUT', path, { body: login(provider) })).status, 201)
  const shown = await made.call('GET', path)
  t.notMatch(shown.text, secret)
  const hidden = { ...provider, clientSecret: { secret: true } }
  t.match(shown.json, { configuration: login(hidden) })
  const put = (to: object) => made.call('PUT', path, { body: login(to), headers: { 'If-Match': '*' } })
  t.equal((await put(hidden)).status, 200, 'what is shown can be put back')
  const moved = await put({ ...hidden, issuer: 'https://evil.example' })
  t.match(moved.json, { status: 422, errors: [{ message: /leads elsewhere now/ }] }, moved.text)

  // The same of the provider where people sign in to the page of their connections.
  const signIn = (of: object) => ({ auth: { issuers: [{ issuer: provider.issuer }], signIn: of }, upstreams: {} })
  const change = (to: object) => made.call('PUT', path, { body: signIn(to), headers: { 'If-Match': '*' } })
  t.equal((await change(provider)).status, 200)
  const pages = await made.call('GET', path)
  t.notMatch(pages.text, secret)
  t.match(pages.json, { configuration: signIn(hidden) })
  t.equal((await change(hidden)).status, 200, 'what is shown can be put back')
  t.equal((await change({ ...hidden, clientId: 'another' })).status, 422)
})

t.test('a tenant-admin names no provider of a login front at a host that is not allowed', async (t) => {
  const keys = adminSection.keys.map((each) => (each.name === 'globex' ? { ...each, tenants: ['initech'] } : each))
  const admin = { ...adminSection, keys, allowedHosts: ['*.example.com'] }
  const made = await adminGateway(t, { upstreams: {}, top: { admin, publicUrl: 'http://127.0.0.1:1' } })
  t.equal((await made.call('PUT', path, { body: { auth: { keys: [plain] }, upstreams: {} } })).status, 201)
  const patch = (issuer: string) => {
    const body = { auth: { login: { provider: { issuer, clientId: 'g', clientSecret: 'x' } } } }
    return made.call('PATCH', path, { body, key: adminKeys.globex, headers: { 'If-Match': '*' } })
  }
  const refused = await patch('https://metadata.internal')
  t.match(refused.json, { status: 403, errors: [{ path: 'auth.login.provider.issuer' }] }, refused.text)
  t.equal((await patch('https://idp.example.com')).status, 200)
  const pages = { issuer: 'https://metadata.internal', clientId: 'g', clientSecret: 'x' }
  const body = { auth: { signIn: pages } }
  const other = await made.call('PATCH', path, { body, key: adminKeys.globex, headers: { 'If-Match': '*' } })
  t.match(other.json, { status: 403, errors: [{ path: 'auth.signIn.issuer' }] }, other.text)
})
