// Attack: credentials are searched for in logs and in authentication errors.

import t from 'tap'
import { hash } from 'node:crypto'
import { GatewayError } from '../../src/protocol/messages.ts'
import { outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { forgedKey, forgingIssuer } from '../kit/forging-issuer.ts'

t.test('no credential is found in the log or in what the caller is told', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const auth = testAuthenticator(
    t,
    tenantWith({
      issuers: [trust(idp.issuer)],
      keys: [{ name: 'ci', sha256: hash('sha256', 'canary-key'), scopes: [] }],
      requiredScopes: ['mcp']
    })
  )
  const stranger = await forgedKey('ES256', idp.key.kid)
  const tokens = [
    await idp.sign(),
    await idp.sign({ exp: 1 }),
    await idp.sign({ aud: 'x' }),
    await idp.sign({ scope: '' }),
    await idp.sign({}, {}, stranger),
    await idp.sign({ iss: 'https://stranger.example' }),
    await idp.sign({}, { typ: 'JWT' }),
    'canary-key',
    'canary-unknown'
  ]
  const told: string[] = []
  for (const token of tokens) {
    const result = await auth.present(token)
    if (result instanceof GatewayError)
      told.push(JSON.stringify([result.message, result.data, result.headers, result.cause]))
  }
  const written = JSON.stringify(auth.lines) + told.join('')
  t.equal(auth.reasons().length, tokens.length - 1)
  for (const token of tokens) {
    for (const part of token.split('.')) t.notOk(written.includes(part), part.slice(0, 20))
  }
  t.ok(written.includes('https://stranger.example'), 'while what an operator needs is there')
  t.equal(outcome(await auth.present(tokens[0])), 'ada')
})
