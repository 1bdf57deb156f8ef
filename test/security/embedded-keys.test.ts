// Attack: a token whose header brings its own key (jwk, x5c), or names an address to fetch one from (jku, x5u).

import { createServer } from 'node:http'
import t from 'tap'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { forgingIssuer, forgedKey } from '../kit/forging-issuer.ts'
import { listen } from '../kit/listen.ts'

t.test('keys and addresses in a header are never used', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const attacker = await forgedKey('ES256', idp.key.kid)
  let visits = 0
  const trap = await listen(
    t,
    createServer((_, response) => {
      visits += 1
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [attacker.jwk] }))
    })
  )
  const headers = [
    { jwk: attacker.jwk },
    { x5c: ['MIIB'] },
    { jku: `${trap}/jwks` },
    { x5u: `${trap}/cert` },
    { jwk: attacker.jwk, jku: `${trap}/jwks`, kid: undefined }
  ]
  for (const header of headers) {
    t.equal(outcome(await auth.present(await idp.sign({}, header, attacker))), 401, Object.keys(header).join())
    t.equal(
      outcome(await auth.present(await idp.sign({}, header))),
      'ada',
      'the same header on a good token does no harm'
    )
  }
  t.equal(visits, 0)
  t.same(
    auth.reasons(),
    Array.from(headers, () => 'signature')
  )
})
