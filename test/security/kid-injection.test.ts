// Attack: a kid that is a path, a query or the name of a prototype member. It is compared with the published ones and
// used for nothing else.

import t from 'tap'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

t.test('a kid is compared with published ones and used for nothing else', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  for (const kid of [
    '../../etc/passwd',
    "' OR 1=1",
    'k'.repeat(5000),
    'k'.repeat(100_000),
    '🔑',
    '__proto__',
    'constructor',
    'toString',
    '',
    '\0',
    null,
    7,
    true,
    [idp.key.kid],
    { kid: idp.key.kid }
  ]) {
    t.equal(outcome(await auth.present(await idp.sign({}, { kid }))), 401, JSON.stringify(kid).slice(0, 40))
  }
  t.equal(Object.hasOwn(Object.prototype, 'polluted'), false)
  t.ok(idp.keySetRequests() <= 2, 'once for the keys, and once for what is not among them')
  t.equal(outcome(await auth.present(await idp.sign())), 'ada')
})
