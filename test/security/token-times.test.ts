// Attack: a token that is expired, not yet valid, or valid for ever.

import t from 'tap'
import { clockAt, testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

const now = Date.UTC(2026, 0, 1)
const seconds = now / 1000

t.test('a token counts from nbf and iat to exp, give or take the leeway', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(
    t,
    tenantWith({ issuers: [trust(idp.issuer, { maxLifetimeSeconds: 3600 })], leewaySeconds: 30 }),
    { clock: clockAt(now) }
  )
  const bad = [
    { iat: seconds - 300, exp: seconds - 31 },
    { iat: seconds - 300, exp: seconds - 30 },
    { exp: 0 },
    { exp: -1 },
    { nbf: seconds + 31 },
    { iat: seconds + 31, exp: seconds + 60 },
    { exp: seconds + 3601 },
    { iat: seconds - 3000, exp: seconds + 601 },
    { exp: undefined },
    { exp: null },
    { exp: String(seconds + 300) },
    { exp: [seconds + 300] },
    { iat: undefined },
    { iat: String(seconds) },
    { nbf: 'never' },
    { nbf: null }
  ]
  for (const claims of bad) t.equal(outcome(await auth.present(await idp.sign(claims))), 401, JSON.stringify(claims))
  t.equal(idp.requests.length, 0, 'none of them cost a signature check or a request')
  const good = [
    {},
    { iat: seconds - 300, exp: seconds - 29 },
    { nbf: seconds + 30 },
    { iat: seconds + 30, exp: seconds + 60 },
    { exp: seconds + 3600 },
    { exp: seconds + 0.5 }
  ]
  for (const claims of good) t.equal(outcome(await auth.present(await idp.sign(claims))), 'ada', JSON.stringify(claims))
})

t.test('a number that is too large is no time', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer, { maxLifetimeSeconds: Infinity })] }), {
    clock: clockAt(now)
  })
  const [head = '', payload = ''] = (await idp.sign({ exp: 123456 })).split('.')
  const endless = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('123456', '1e400')).toString(
    'base64url'
  )
  t.equal(outcome(await auth.present(`${head}.${endless}.AAAA`)), 401)
  t.same(auth.reasons(), ['claims'])
  t.equal(outcome(await auth.present(await idp.sign({ exp: seconds + 1e9 }))), 'ada')
})
