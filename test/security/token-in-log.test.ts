// Case 36, for this room: neither log nor error ever holds a credential.

import { hash } from 'node:crypto'
import t from 'tap'
import { GatewayError } from '../../src/protocol/errors.ts'
import { desk, outcome, resource, tenantWith, trust } from '../kit/desk.ts'
import { forge, forgedKey } from '../kit/forge.ts'

t.test('no credential is found in the log or in what the caller is told', async (t) => {
  const idp = await forge(t, { resource, now: Date.now() })
  const room = desk(t, tenantWith({ issuers: [trust(idp.issuer)], keys: [{ name: 'ci', sha256: hash('sha256', 'canary-key'), scopes: [] }], requiredScopes: ['mcp'] }))
  const stranger = await forgedKey('ES256', idp.key.kid)
  const tokens = [await idp.sign(), await idp.sign({ exp: 1 }), await idp.sign({ aud: 'x' }), await idp.sign({ scope: '' }), await idp.sign({}, {}, stranger), await idp.sign({ iss: 'https://stranger.example' }),
    await idp.sign({}, { typ: 'JWT' }), 'canary-key', 'canary-unknown']
  const told: string[] = []
  for (const token of tokens) {
    const result = await room.present(token)
    if (result instanceof GatewayError) told.push(JSON.stringify([result.message, result.data, result.headers, result.cause]))
  }
  const written = JSON.stringify(room.lines) + told.join('')
  t.equal(room.reasons().length, tokens.length - 1)
  for (const token of tokens) {
    for (const part of token.split('.')) t.notOk(written.includes(part), part.slice(0, 20))
  }
  t.ok(written.includes('https://stranger.example'), 'while what an operator needs is there')
  t.equal(outcome(await room.present(tokens[0])), 'ada')
})
