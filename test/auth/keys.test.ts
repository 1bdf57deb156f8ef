import { hash } from 'node:crypto'
import t from 'tap'
import { testAuthenticator, metadataUrl, outcome, resource, tenantWith } from '../kit/authenticator.ts'
import { createKeyring } from '../../src/auth/authenticate.ts'

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
  await t.rejects(bearer.authenticator.authenticate(tenantWith({}), resource, metadataUrl, []), {
    code: 'unauthenticated'
  })
})
