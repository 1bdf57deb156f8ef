// Attack: a stolen token that is bound to its client's key (DPoP, mutual TLS), sent as a bearer token without the
// proof.

import t from 'tap'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

t.test('a bound token is no bearer token', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  for (const cnf of [{ jkt: 'abc' }, { 'x5t#S256': 'abc' }, { jwk: idp.key.jwk }, {}, null])
    t.equal(outcome(await auth.present(await idp.sign({ cnf }))), 401, JSON.stringify(cnf))
  t.equal(outcome(await auth.present(await idp.sign())), 'ada')
  t.same(auth.reasons(), ['bound', 'bound', 'bound', 'bound', 'bound'])
})
