// References of documents to variables and files of the gateway: nobody but a platform-admin makes any, in whatever
// form or place, no answer tells what they would stand for, and no default of one is shown.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { adminGateway, adminKeys, adminSection } from '../kit/admin.ts'

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
