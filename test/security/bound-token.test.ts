// Case 31: a token that is bound to its client's key, sent without the proof.

import t from 'tap'
import { desk, outcome, resource, tenantWith, trust } from '../kit/desk.ts'
import { forge } from '../kit/forge.ts'

t.test('a bound token is no bearer token', async (t) => {
  const idp = await forge(t, { resource, now: Date.now() })
  const room = desk(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  for (const cnf of [{ jkt: 'abc' }, { 'x5t#S256': 'abc' }, { jwk: idp.key.jwk }, {}, null]) t.equal(outcome(await room.present(await idp.sign({ cnf }))), 401, JSON.stringify(cnf))
  t.equal(outcome(await room.present(await idp.sign())), 'ada')
  t.same(room.reasons(), ['bound', 'bound', 'bound', 'bound', 'bound'])
})
