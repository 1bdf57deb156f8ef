// Case 15: a kid that means something to a file system, a database or a prototype.

import t from 'tap'
import { desk, outcome, resource, tenantWith, trust } from '../kit/desk.ts'
import { forge } from '../kit/forge.ts'

t.test('a kid is compared with published ones and used for nothing else', async (t) => {
  const idp = await forge(t, { resource, now: Date.now() })
  const room = desk(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  for (const kid of ['../../etc/passwd', '\' OR 1=1', 'k'.repeat(5000), 'k'.repeat(100_000), '🔑', '__proto__', 'constructor', 'toString', '', '\0', null, 7, true, [idp.key.kid], { kid: idp.key.kid }]) {
    t.equal(outcome(await room.present(await idp.sign({}, { kid }))), 401, JSON.stringify(kid).slice(0, 40))
  }
  t.equal(Object.hasOwn(Object.prototype, 'polluted'), false)
  t.ok(idp.keySetRequests() <= 1)
  t.equal(outcome(await room.present(await idp.sign())), 'ada')
})
