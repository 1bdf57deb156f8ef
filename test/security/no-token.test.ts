// Attack: a request without any credential.

import t from 'tap'
import { testAuthenticator, metadataUrl, outcome, tenantWith, trust } from '../kit/authenticator.ts'
import { hash } from 'node:crypto'

t.test('a request without a token is told where to get one, and no more', async (t) => {
  const auth = testAuthenticator(
    t,
    tenantWith({
      issuers: [trust('https://idp.example.com')],
      keys: [{ name: 'ci', sha256: hash('sha256', 'secret'), scopes: ['mcp'] }],
      requiredScopes: ['mcp']
    })
  )
  t.match(await auth.present(undefined), {
    code: 'unauthenticated',
    data: {},
    headers: { 'WWW-Authenticate': `Bearer resource_metadata="${metadataUrl}", scope="mcp"` }
  })
  t.equal(outcome(await auth.present('secret')), 'ci')
})
