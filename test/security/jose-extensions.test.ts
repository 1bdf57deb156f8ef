// Attack: nested, encrypted, detached and extended tokens (crit, b64, zip), and bytes before or behind a valid one.

import t from 'tap'
import { CompactEncrypt, generateKeyPair } from 'jose'
import { verifyToken } from '../../src/auth/token.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

const now = Date.now()

t.test('extensions of a token are refused, not ignored', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const token = await idp.sign()
  const [head = '', payload = '', signature = ''] = token.split('.')
  const headed = (more: Record<string, unknown>) =>
    `${Buffer.from(JSON.stringify({ alg: 'ES256', kid: idp.key.kid, typ: 'at+jwt', ...more })).toString('base64url')}.${payload}.${signature}`
  const { publicKey } = await generateKeyPair('ECDH-ES')
  const encrypted = await new CompactEncrypt(Buffer.from(token))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', cty: 'JWT' })
    .encrypt(publicKey)
  const bad: Record<string, string> = {
    'b64 false': headed({ b64: false, crit: ['b64'] }),
    'b64 true': headed({ b64: true, crit: ['b64'] }),
    'unknown crit': headed({ crit: ['exp'], exp: 1 }),
    'empty crit': headed({ crit: [] }),
    nested: headed({ cty: 'JWT' }),
    compressed: headed({ zip: 'DEF' }),
    encrypted,
    'six parts': `${token}.${token}`,
    'four parts': `${token}.AAAA`,
    'two parts': `${head}.${payload}`,
    'no payload': `${head}..${signature}`,
    'a JWS in JSON': Buffer.from(JSON.stringify({ payload, protected: head, signature })).toString('base64url'),
    'a header that is an array': `${Buffer.from('[]').toString('base64url')}.${payload}.${signature}`,
    'a header in broken UTF-8': `${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.${payload}.${signature}`,
    'claims that are null': `${head}.${Buffer.from('null').toString('base64url')}.${signature}`
  }
  for (const [name, attack] of Object.entries(bad)) t.equal(outcome(await auth.present(attack)), 401, name)
  for (const header of [
    { crit: ['b64'], b64: true },
    { b64: true },
    { cty: 'JWT' },
    { zip: 'DEF' },
    { enc: 'A256GCM' }
  ]) {
    t.equal(
      outcome(await auth.present(await idp.sign({}, header))),
      401,
      `also signed by the issuer itself: ${Object.keys(header).join()}`
    )
  }
  t.same(idp.requests, [], 'all before any key was fetched')
  t.equal(outcome(await auth.present(token)), 'ada')
})

t.test('bytes before or behind a valid token are refused', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const tenant = tenantWith({ issuers: [trust(idp.issuer)] })
  const auth = testAuthenticator(t, tenant)
  const token = await idp.sign()
  t.equal(outcome(await auth.present(token)), 'ada')
  for (const end of [' ', '=', '==', '\n', '\t', '.', '~', '+', '/', 'A', '\0', '%20'])
    t.equal(outcome(await auth.present(token + end)), 401, JSON.stringify(end))
  const options = {
    tenant: tenantId('acme'),
    issuers: new Map(),
    audiences: [resource] as const,
    leewaySeconds: 0,
    now
  }
  for (const bad of [`${token} `, ` ${token}`, `${token}=`, token.replace('.', '=.')])
    await t.rejects(verifyToken(bad, options), { cause: { reason: 'malformed' } })
  await t.rejects(
    verifyToken(token, options),
    { cause: { reason: 'issuer' } },
    'while the token itself gets past this point'
  )
})
