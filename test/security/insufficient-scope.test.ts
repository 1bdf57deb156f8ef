// Attack: a valid token without the required scope, or with scopes in shapes that might be taken for more than they
// are.

import t from 'tap'
import { testAuthenticator, metadataUrl, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

const now = Date.now()

t.test('a token without a needed scope is forbidden, and told all that is needed', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)], requiredScopes: ['mcp', 'files:read'] }))
  for (const scope of [
    'mcp',
    'files:read',
    'other',
    '',
    undefined,
    'MCP files:read',
    'mcpfiles:read',
    'mcp,files:read'
  ]) {
    const answer = await auth.present(await idp.sign({ scope }))
    t.equal(outcome(answer), 403, String(scope))
    t.match(answer, {
      code: 'insufficient_scope',
      headers: { 'WWW-Authenticate': `resource_metadata="${metadataUrl}", scope="mcp files:read"` }
    })
    t.match(answer, { headers: { 'WWW-Authenticate': /^Bearer error="insufficient_scope", / } })
  }
  const token = await idp.sign({ scope: 'files:read extra mcp' })
  t.equal(outcome(await auth.present(token)), 'ada')
  const poor = await idp.sign({ scope: 'mcp' })
  t.same([outcome(await auth.present(poor)), outcome(await auth.present(poor))], [403, 403], 'also the second time')
})

t.test('scopes of a wrong shape grant nothing', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)], requiredScopes: ['mcp'] }))
  const bad = [
    { scope: ['mcp'] },
    { scope: 7 },
    { scope: { mcp: true } },
    { scope: '*' },
    { scope: 'mcp\n' },
    { scope: 'mcp\tx' },
    { scope: 'mcp "x"' },
    { scope: 'mcp \0' },
    { scope: 'mcp ä' },
    { scope: null },
    { scope: undefined, scp: { mcp: true } },
    { scope: undefined, scp: ['mcp', 7] },
    { scope: undefined, scp: ['mcp x'] },
    { scope: ['x'], scp: 'mcp' }
  ]
  for (const claims of bad) t.equal(outcome(await auth.present(await idp.sign(claims))), 403, JSON.stringify(claims))
  for (const claims of [
    { scope: 'mcp' },
    { scope: 'mcp mcp' },
    { scope: '* mcp' },
    { scope: undefined, scp: ['mcp'] },
    { scope: undefined, scp: 'mcp x' }
  ]) {
    t.equal(outcome(await auth.present(await idp.sign(claims))), 'ada', JSON.stringify(claims))
  }
})
