// Attack: tokens with invented kids, each of which could cause a request to the issuer's key set.

import { randomUUID } from 'node:crypto'
import t from 'tap'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { assemble, forgingIssuer } from '../kit/forging-issuer.ts'

t.test('ten thousand random kids within a minute cost two requests at most, and hurt no other tenant', async (t) => {
  const now = Date.now()
  const idp = await forgingIssuer(t, { resource, now })
  const [acme, other] = [
    tenantWith({ issuers: [trust(idp.issuer)] }),
    tenantWith({ issuers: [trust(idp.issuer)] }, 'other')
  ]
  const auth = testAuthenticator(t, acme)
  const seconds = Math.floor(now / 1000)
  const claims = { iss: idp.issuer, aud: resource, sub: 'ada', client_id: 'app', iat: seconds, exp: seconds + 300 }
  const results = new Map<string | number, number>()
  for (let batch = 0; batch < 100; batch++) {
    const answers = await Promise.all(
      Array.from({ length: 100 }, async () =>
        outcome(await auth.present(assemble({ alg: 'ES256', typ: 'at+jwt', kid: randomUUID() }, claims, 'AAAA')))
      )
    )
    for (const answer of answers) results.set(answer, (results.get(answer) ?? 0) + 1)
    auth.clock.advance(599)
  }
  t.same([...results], [[401, 10_000]])
  t.ok(idp.keySetRequests() <= 2, `${idp.keySetRequests()} requests`)
  const before = idp.keySetRequests()
  t.equal(outcome(await auth.present(await idp.sign(), other)), 'ada', 'the other tenant has its own cooldown')
  t.equal(idp.keySetRequests(), before + 1)
  t.equal(outcome(await auth.present(await idp.sign(), acme)), 'ada')
})
