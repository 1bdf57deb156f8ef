// Attack: an issuer publishes keys that are too short, of another curve, or not for signatures.

import t from 'tap'
import { createSign, generateKeyPairSync } from 'node:crypto'
import { readKeySet } from '../../src/auth/key-set.ts'
import { outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { assemble, forgedKey, forgingIssuer } from '../kit/forging-issuer.ts'

const now = Date.now()

t.test('an RSA key of 1024 bits is ignored, and the operator is told', async (t) => {
  const idp = await forgingIssuer(t, { resource, now, alg: 'RS256' })
  const weak = generateKeyPairSync('rsa', { modulusLength: 1024 })
  idp.published.push({ ...weak.publicKey.export({ format: 'jwk' }), kty: 'RSA', alg: 'RS256', kid: 'weak' })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const seconds = Math.floor(now / 1000)
  const input = assemble(
    { alg: 'RS256', typ: 'at+jwt', kid: 'weak' },
    { iss: idp.issuer, aud: resource, sub: 'ada', client_id: 'app', iat: seconds, exp: seconds + 300 }
  ).slice(0, -1)
  t.equal(
    outcome(await auth.present(`${input}.${createSign('sha256').update(input).sign(weak.privateKey, 'base64url')}`)),
    401
  )
  t.match(
    auth.lines.find((line) => line['msg'] === 'keys of an issuer are not used'),
    { ignored: ['an RSA key of 1024 bits: 2048 are needed'] }
  )
  t.equal(outcome(await auth.present(await idp.sign())), 'ada')
})

t.test('a key of another curve does not verify ES256', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const other = await forgedKey('ES384', 'other')
  const { alg: _, ...jwk } = other.jwk
  idp.published.push(jwk)
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer, { algorithms: ['ES256', 'ES384'] })] }))
  const [, payload, signature] = (await idp.sign({}, {}, other)).split('.')
  const lying = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'at+jwt', kid: 'other' })).toString('base64url')
  t.equal(outcome(await auth.present(`${lying}.${payload}.${signature}`)), 401)
  t.equal(outcome(await auth.present(await idp.sign({}, {}, other))), 'ada')
})

t.test('only public keys for signatures are taken, and RSA keys only of a sane size', async (t) => {
  const { jwk } = await forgedKey('RS256', 'good')
  const bits = (count: number) => Buffer.alloc(count / 8, 0xff).toString('base64url')
  t.equal(readKeySet({ keys: [jwk] }).size, 1)
  t.equal(readKeySet({ keys: [{ ...jwk, n: bits(4096) }] }).size, 1)
  const bad = [
    { ...jwk, use: 'enc' },
    { ...jwk, d: 'AQAB' },
    { kty: 'oct', k: 'AAAA' },
    { ...jwk, n: bits(2040) },
    { ...jwk, n: `${'A'.repeat(400)}${bits(1024)}` },
    { ...jwk, n: bits(16_384) },
    { ...jwk, e: bits(2048) },
    { ...jwk, n: undefined },
    { kty: 'RSA' },
    {}
  ]
  for (const key of bad) t.equal(readKeySet({ keys: [key] }).size, 0, JSON.stringify(key).slice(0, 60))
})
