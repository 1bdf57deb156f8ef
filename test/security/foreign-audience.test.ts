// Attack: a token for another deployment or another endpoint, or for several resources at once.

import t from 'tap'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

const elsewhere = 'https://mcp.other.example/t/acme/mcp'

t.test('the audience is the URL of the endpoint, letter by letter', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const bad = [
    elsewhere,
    `${resource}/`,
    `${resource}#`,
    `${resource}?`,
    resource.toUpperCase(),
    resource.replace('https', 'http'),
    resource.replace('.com', '.com:443'),
    'mcp',
    'acme',
    '',
    undefined,
    null,
    7,
    {},
    [],
    [[resource]],
    { 0: resource }
  ]
  for (const aud of bad) t.equal(outcome(await auth.present(await idp.sign({ aud }))), 401, JSON.stringify(aud))
  t.equal(outcome(await auth.present(await idp.sign({ aud: resource }))), 'ada')
  t.equal(outcome(await auth.present(await idp.sign({ aud: [resource] }))), 'ada')
})

t.test('a token for this resource and others is refused, unless the operator names the others', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const strict = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const lenient = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer, { audiences: ['account'] })] }))
  const both = await idp.sign({ aud: [resource, 'account'] })
  t.equal(outcome(await strict.present(both)), 401)
  t.equal(outcome(await lenient.present(both)), 'ada')
  t.equal(outcome(await lenient.present(await idp.sign({ aud: [resource, 'account', elsewhere] }))), 401)
  t.equal(outcome(await lenient.present(await idp.sign({ aud: [resource, 7] }))), 401)
})

t.test('a token that was good at one endpoint is judged anew at the next', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const tenant = tenantWith({ issuers: [trust(idp.issuer)] })
  const auth = testAuthenticator(t, tenant)
  const token = await idp.sign()
  t.equal(outcome(await auth.present(token)), 'ada')
  t.equal(outcome(await auth.present(token, tenant, elsewhere)), 401)
  t.equal(outcome(await auth.present(token, tenant, `${resource}\n`)), 401)
  t.equal(outcome(await auth.present(token)), 'ada')
})
