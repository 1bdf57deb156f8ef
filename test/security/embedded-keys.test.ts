// Case 5: a token that brings its own key, or says where to get one.

import { createServer } from 'node:http'
import t from 'tap'
import { desk, outcome, resource, tenantWith, trust } from '../kit/desk.ts'
import { forge, forgedKey } from '../kit/forge.ts'
import { listen } from '../kit/listen.ts'

t.test('keys and addresses in a header are never used', async (t) => {
  const idp = await forge(t, { resource, now: Date.now() })
  const room = desk(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const attacker = await forgedKey('ES256', idp.key.kid)
  let visits = 0
  const trap = await listen(t, createServer((_, response) => {
    visits += 1
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ keys: [attacker.jwk] }))
  }))
  const headers = [{ jwk: attacker.jwk }, { x5c: ['MIIB'] }, { jku: `${trap}/jwks` }, { x5u: `${trap}/cert` }, { jwk: attacker.jwk, jku: `${trap}/jwks`, kid: undefined }]
  for (const header of headers) {
    t.equal(outcome(await room.present(await idp.sign({}, header, attacker))), 401, Object.keys(header).join())
    t.equal(outcome(await room.present(await idp.sign({}, header))), 'ada', 'the same header on a good token does no harm')
  }
  t.equal(visits, 0)
  t.same(room.reasons(), Array.from(headers, () => 'signature'))
})
