import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import t from 'tap'
import { clockAt, testAuthenticator, outcome, placeAt, resource, tenantWith } from '../kit/authenticator.ts'
import { createKeyring, newApiKey } from '../../src/auth/keyring.ts'

const key = (name: string, secret: string, ...scopes: string[]) => ({ name, sha256: hash('sha256', secret), scopes })

t.test('a key is found by what it is, not by its hash or a part of it', async (t) => {
  const keyring = createKeyring([key('ci', 'secret-1'), key('ops', 'secret-2')])
  t.equal(keyring.find('secret-1')?.name, 'ci')
  t.equal(keyring.find('secret-2')?.name, 'ops')
  for (const wrong of ['', 'secret-', 'secret-11', 'SECRET-1', 'ci', hash('sha256', 'secret-1')])
    t.equal(keyring.find(wrong), undefined, wrong)
  t.equal(createKeyring([]).find('secret-1'), undefined)
  t.equal(
    createKeyring([{ name: 'broken', sha256: '', scopes: [] }]).find(''),
    undefined,
    'an entry without a digest matches nothing'
  )
})

t.test('an API key is a principal of its own issuer, with the scopes of its entry', async (t) => {
  const tenant = tenantWith({
    keys: [key('ci', 'secret-1', 'mcp'), key('dotted', 'a.b.c', 'mcp'), key('weak', 'secret-3')],
    requiredScopes: ['mcp']
  })
  const setup = testAuthenticator(t, tenant)
  t.match(await setup.present('secret-1'), {
    kind: 'key',
    tenant: 'acme',
    issuer: 'urn:gatehouse:key',
    subject: 'ci',
    clientId: 'ci',
    groups: [],
    roles: [],
    expiresAt: undefined
  })
  t.equal(outcome(await setup.present('a.b.c')), 'dotted', 'a key may look like a JWT')
  t.equal(outcome(await setup.present('secret-2')), 401)
  t.equal(outcome(await setup.present('secret-3')), 403)
  t.same(setup.reasons(), ['unknown_key', 'scope'])
})

t.test('a key of one tenant is nothing to another', async (t) => {
  const acme = tenantWith({ keys: [key('ci', 'secret-1')] })
  const other = tenantWith({ keys: [key('ci', 'secret-2')] }, 'other')
  const setup = testAuthenticator(t, acme)
  t.equal(outcome(await setup.present('secret-1', acme)), 'ci')
  t.equal(outcome(await setup.present('secret-1', other)), 401)
  t.match(await setup.present('secret-2', other), { tenant: 'other', subject: 'ci' })
})

t.test('a removed key is refused after a reload', async (t) => {
  const before = tenantWith({ keys: [key('ci', 'secret-1'), key('ops', 'secret-2')] })
  const after = tenantWith({ keys: [key('ops', 'secret-2')] })
  const setup = testAuthenticator(t, before)
  t.equal(outcome(await setup.present('secret-1', before)), 'ci')
  setup.authenticator.reload([after])
  t.equal(outcome(await setup.present('secret-1', after)), 401)
  t.equal(outcome(await setup.present('secret-2', after)), 'ops')
})

t.test('without authentication everybody is anonymous, whatever they present', async (t) => {
  const setup = testAuthenticator(t, tenantWith({ mode: 'none', requiredScopes: ['mcp'] }))
  for (const token of [undefined, 'whatever']) {
    t.match(await setup.present(token), {
      kind: 'anonymous',
      issuer: 'urn:gatehouse:anonymous',
      tenant: 'acme',
      expiresAt: undefined
    })
  }
  const bearer = testAuthenticator(t, tenantWith({}))
  await t.rejects(
    bearer.authenticator.authenticate(tenantWith({}), placeAt(resource), { rawHeaders: [], method: 'POST' }),
    {
      code: 'unauthenticated'
    }
  )
})

t.test('a key ends with its day, and is for its endpoints only', async (t) => {
  const clock = clockAt(Date.UTC(2026, 0, 1))
  const expires = clock.now() + 60_000
  const tenant = tenantWith({
    keys: [
      { ...key('ci', 'secret-1'), expires },
      { ...key('support', 'secret-2'), endpoints: ['support'] },
      { ...key('ops', 'secret-3'), endpoints: ['default', 'support'] }
    ]
  })
  const setup = testAuthenticator(t, tenant, { clock })
  t.match(await setup.present('secret-1'), { subject: 'ci', expiresAt: expires }, 'open streams end with it, too')
  t.equal(outcome(await setup.present('secret-2')), 401)
  t.equal(outcome(await setup.present('secret-3')), 'ops')
  clock.advance(59_999)
  t.equal(outcome(await setup.present('secret-1')), 'ci')
  clock.advance(1)
  t.equal(outcome(await setup.present('secret-1')), 401)
  t.equal(outcome(await setup.present('secret-3')), 'ops')
  t.same(setup.reasons(), ['endpoint', 'expired'])
})

t.test(
  'a key that takes the place of another is the same caller, and the one before is good for a while',
  async (t) => {
    const clock = clockAt(Date.UTC(2026, 0, 1))
    const previous = { sha256: hash('sha256', 'before'), until: clock.now() + 60_000 }
    const setup = testAuthenticator(t, tenantWith({ keys: [{ ...key('ci', 'after'), previous }] }), { clock })
    const now = await setup.present('after')
    t.match(now, { subject: 'ci', expiresAt: undefined })
    t.match(await setup.present('before'), { subject: 'ci', expiresAt: previous.until })
    clock.advance(60_000)
    t.equal(outcome(await setup.present('before')), 401)
    t.equal(outcome(await setup.present('after')), 'ci')
  }
)

t.test('a new key has a form that scanners know, with a checksum', async (t) => {
  const made = Array.from({ length: 100 }, newApiKey)
  t.equal(new Set(made).size, 100)
  for (const each of made) {
    const [, secret = '', sum] = /^gatehouse_([A-Za-z0-9_-]{43})([0-9a-f]{8})$/.exec(each) ?? []
    t.equal(sum, crc32(secret).toString(16).padStart(8, '0'))
  }
})
