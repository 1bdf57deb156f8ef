import t from 'tap'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { issuer } from '../kit/issuer.ts'

t.test('a token of a real authorization server becomes its principal', async (t) => {
  const idp = await issuer(t, { scopes: ['mcp', 'files:read'] })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.url)], requiredScopes: ['mcp'] }))
  for (const alg of ['ES256', 'RS256'] as const) {
    const principal = await setup.present(await idp.token({ resource, alg }))
    t.match(
      principal,
      { kind: 'token', tenant: 'acme', issuer: idp.url, subject: 'robot', clientId: 'robot', groups: [], roles: [] },
      alg
    )
    t.same('scopes' in principal ? [...principal.scopes] : principal, ['mcp', 'files:read'], alg)
  }
  t.equal(idp.keySetRequests(), 1, 'the keys were fetched once')
})

t.test('a token that the same server made for another resource is refused', async (t) => {
  const idp = await issuer(t)
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.url)] }))
  t.equal(outcome(await setup.present(await idp.token({ resource: 'https://mcp.example.com/t/other/mcp' }))), 401)
  t.equal(outcome(await setup.present(await idp.token({ resource: `${resource}/` }))), 401)
  t.equal(outcome(await setup.present(await idp.token({ resource }))), 'robot')
  t.same(setup.reasons(), ['audience', 'audience'])
})

t.test('new keys are found at the first token that is signed with them', async (t) => {
  const idp = await issuer(t)
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.url)] }))
  t.equal(outcome(await setup.present(await idp.token({ resource }))), 'robot')
  const before = await idp.token({ resource })
  await idp.rotate('withdrawn')
  t.equal(outcome(await setup.present(await idp.token({ resource }))), 'robot')
  t.equal(outcome(await setup.present(before)), 401, 'and the withdrawn ones are gone')
  t.equal(idp.keySetRequests(), 2, 'nor is one of these looked for at once, who were there a moment ago')
  t.same(setup.reasons(), ['kid'])
})
