import fc from 'fast-check'
import t from 'tap'
import { GatewayError } from '../../src/protocol/messages.ts'
import { outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { assemble, forgingIssuer } from '../kit/forging-issuer.ts'
import { runs } from '../kit/runs.ts'

const now = Date.now()
const seconds = Math.floor(now / 1000)
const oddities = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom({ toString: 1 }, { toJSON: 1, valueOf: 2 }, [[]], '', -0, 1e308)
)

t.test('whatever JSON a token is made of, it is refused with a reason and nothing else is thrown', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const setup = testAuthenticator(
    t,
    tenantWith({
      issuers: [trust(idp.issuer), trust(`${idp.issuer}/untyped`, { jwksUri: idp.jwksUri, requireTyp: false })]
    })
  )
  const goodHeader = { alg: 'ES256', typ: 'at+jwt', kid: idp.key.kid }
  const goodClaims = { iss: idp.issuer, aud: resource, sub: 'ada', client_id: 'app', iat: seconds, exp: seconds + 300 }
  const over = (keys: string[]) => fc.dictionary(fc.constantFrom(...keys), oddities, { maxKeys: 2 })
  await fc.assert(
    fc.asyncProperty(
      over(['alg', 'typ', 'kid', 'crit', 'cty', 'jwk', 'x5c', '__proto__']),
      over(['iss', 'aud', 'sub', 'exp', 'iat', 'nbf', 'scope', 'cnf', '__proto__']),
      fc.base64String(),
      async (header, claims, signature) => {
        const result = await setup.present(
          assemble({ ...goodHeader, ...header }, { ...goodClaims, ...claims }, signature.replace(/[^\w]/g, ''))
        )
        return result instanceof GatewayError && result.code === 'unauthenticated'
      }
    ),
    { numRuns: runs(500) }
  )
  t.equal(outcome(await setup.present(await idp.sign())), 'ada')
})

t.test('and so it is when the issuer itself signs it', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer, { requireTyp: false })] }))
  const claim = fc.constantFrom(
    'aud',
    'sub',
    'client_id',
    'azp',
    'exp',
    'iat',
    'nbf',
    'scope',
    'scp',
    'groups',
    'cnf',
    'nonce',
    'typ',
    'token_use'
  )
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(claim, oddities, { maxKeys: 3 }),
      fc.constantFrom('at+jwt', 'JWT', undefined),
      async (claims, typ) => {
        const result = await setup.present(await idp.sign(claims, { typ }))
        return result instanceof GatewayError
          ? result.code === 'unauthenticated'
          : result.subject.length > 0 &&
              result.clientId.length > 0 &&
              [...result.scopes, ...result.groups].every((one) => typeof one === 'string')
      }
    ),
    { numRuns: runs(300) }
  )
  t.equal(outcome(await setup.present(await idp.sign())), 'ada')
})
