// Attack: an ID token, or another kind of token of the right issuer, in place of an access token.

import t from 'tap'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

const now = Date.now()

t.test('only at+jwt is an access token, in any case and with or without application/', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  for (const typ of [
    'JWT',
    'jwt',
    undefined,
    null,
    '',
    'at+jwt ',
    'at jwt',
    'id+jwt',
    'logout+jwt',
    'dpop+jwt',
    'text/at+jwt',
    ['at+jwt'],
    7
  ]) {
    t.equal(outcome(await auth.present(await idp.sign({}, { typ }))), 401, JSON.stringify(typ))
  }
  for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/At+Jwt']) {
    t.equal(outcome(await auth.present(await idp.sign({}, { typ }))), 'ada', typ)
  }
})

t.test('where the operator allows tokens without typ, an ID token is still none', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer, { requireTyp: false })] }))
  const bad = [
    { nonce: 'n' },
    { at_hash: 'h' },
    { c_hash: 'h' },
    { s_hash: 'h' },
    { events: {} },
    { typ: 'ID' },
    { typ: 'Refresh' },
    { token_use: 'id' },
    { scope: undefined },
    { client_id: undefined }
  ]
  for (const claims of bad) {
    t.equal(outcome(await auth.present(await idp.sign(claims, { typ: 'JWT' }))), 401, JSON.stringify(claims))
    t.equal(outcome(await auth.present(await idp.sign(claims, { typ: undefined }))), 401, JSON.stringify(claims))
  }
  t.equal(outcome(await auth.present(await idp.sign({}, { typ: 'logout+jwt' }))), 401)
  for (const claims of [
    {},
    { typ: 'Bearer' },
    { token_use: 'access' },
    { scope: undefined, scp: ['mcp'] },
    { client_id: undefined, azp: 'app' }
  ]) {
    t.equal(outcome(await auth.present(await idp.sign(claims, { typ: 'JWT' }))), 'ada', JSON.stringify(claims))
    t.equal(outcome(await auth.present(await idp.sign(claims, { typ: undefined }))), 'ada', JSON.stringify(claims))
  }
  t.equal(auth.lines.filter((line) => line['level'] === 40).length, 1, 'and the operator is warned of it')
})
