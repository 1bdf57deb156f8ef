// Attack: a token without a signature (alg "none"), or one signed by HMAC with the issuer's public key as its secret.

import { createHmac, createPublicKey } from 'node:crypto'
import t from 'tap'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { assemble, forgingIssuer } from '../kit/forging-issuer.ts'

const now = Date.now()
const seconds = Math.floor(now / 1000)
const claims = (iss: string) => ({
  iss,
  aud: resource,
  sub: 'ada',
  client_id: 'app',
  scope: 'mcp',
  iat: seconds,
  exp: seconds + 300
})

t.test('a token without a signature is refused, however it spells none', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(
    t,
    tenantWith({ issuers: [trust(idp.issuer, { algorithms: ['none', 'None', 'ES256'] })] })
  )
  const [, payload = '', signature = ''] = (await idp.sign()).split('.')
  for (const alg of ['none', 'None', 'nOnE', 'NONE', '', undefined, null, 7, ['ES256'], 'es256']) {
    for (const end of ['', signature, 'AA']) {
      t.equal(
        outcome(await auth.present(assemble({ alg, typ: 'at+jwt', kid: idp.key.kid }, claims(idp.issuer), end))),
        401,
        `${JSON.stringify(alg)} ${end.length}`
      )
    }
  }
  const head = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'at+jwt', kid: idp.key.kid })).toString('base64url')
  t.equal(outcome(await auth.present(`${head}.${payload}.`)), 401, 'empty signature')
  t.equal(outcome(await auth.present(`${head}.${payload}`)), 401, 'two parts')
  // ECDSA with r = s = 0, which a broken verifier takes for good.
  t.equal(
    outcome(await auth.present(`${head}.${payload}.${Buffer.alloc(64).toString('base64url')}`)),
    401,
    'zero signature'
  )
  t.equal(outcome(await auth.present(await idp.sign())), 'ada')
})

t.test('a public key is never the secret of an HMAC', async (t) => {
  const idp = await forgingIssuer(t, { resource, now, alg: 'RS256' })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer, { algorithms: ['RS256', 'HS256'] })] }))
  const key = createPublicKey({ key: idp.key.jwk, format: 'jwk' })
  const secrets = [
    key.export({ type: 'spki', format: 'pem' }),
    key.export({ type: 'spki', format: 'der' }),
    key.export({ type: 'pkcs1', format: 'pem' }),
    idp.key.jwk.n ?? '',
    Buffer.from(idp.key.jwk.n ?? '', 'base64url'),
    JSON.stringify(idp.key.jwk)
  ]
  const input = assemble({ alg: 'HS256', typ: 'at+jwt', kid: idp.key.kid }, claims(idp.issuer)).slice(0, -1)
  for (const secret of secrets) {
    t.equal(
      outcome(await auth.present(`${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`)),
      401
    )
  }
  t.equal(idp.requests.length, 0, 'refused before any key was fetched')
  t.equal(outcome(await auth.present(await idp.sign())), 'ada')
})

t.test('an algorithm that the operator does not list is refused although the key exists', async (t) => {
  const idp = await forgingIssuer(t, { resource, now, alg: 'PS256' })
  const strict = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const open = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer, { algorithms: ['PS256'] })] }))
  const token = await idp.sign()
  t.equal(outcome(await strict.present(token)), 401)
  t.equal(outcome(await open.present(token)), 'ada')
})
