// Attack: a token of an issuer that the tenant does not trust, or of one that agrees with a trusted one in all but its
// name.

import t from 'tap'
import { GatewayError } from '../../src/protocol/messages.ts'
import { outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { forgedKey, forgingIssuer } from '../kit/forging-issuer.ts'

const now = Date.now()

t.test('iss is compared letter by letter, and no request is made for an unknown issuer', async (t) => {
  const idp = await forgingIssuer(t, { resource, now, path: '/realms/a' })
  const stranger = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const bad = [
    stranger.issuer,
    `${idp.issuer}/`,
    idp.issuer.toUpperCase(),
    idp.issuer.replace('127.0.0.1', 'localhost'),
    `${idp.issuer}?`,
    '',
    undefined,
    null,
    7,
    [idp.issuer],
    '__proto__',
    { toString: 1 },
    'urn:gatehouse:key',
    'urn:gatehouse:anonymous'
  ]
  for (const iss of bad) t.equal(outcome(await auth.present(await idp.sign({ iss }))), 401, JSON.stringify(iss))
  t.equal(outcome(await auth.present(await stranger.sign())), 401)
  t.same([idp.requests, stranger.requests], [[], []], 'nobody was asked')
  t.equal(outcome(await auth.present(await idp.sign())), 'ada')
})

t.test('the issuer names that the gateway uses for API keys cannot be configured for a tenant', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust('urn:gatehouse:key', { jwksUri: idp.jwksUri })] }))
  t.equal(outcome(await auth.present(await idp.sign({ iss: 'urn:gatehouse:key' }))), 401)
  const named = testAuthenticator(t, tenantWith({ issuers: [trust('urn:example:idp', { jwksUri: idp.jwksUri })] }))
  t.equal(outcome(await named.present(await idp.sign({ iss: 'urn:example:idp' }))), 'ada')
})

t.test('the issuer of another tenant is unknown here', async (t) => {
  const [a, b] = [await forgingIssuer(t, { resource, now }), await forgingIssuer(t, { resource, now })]
  const [acme, other] = [
    tenantWith({ issuers: [trust(a.issuer)] }),
    tenantWith({ issuers: [trust(b.issuer)] }, 'other')
  ]
  const auth = testAuthenticator(t, acme)
  t.equal(outcome(await auth.present(await a.sign(), other)), 401)
  t.equal(outcome(await auth.present(await b.sign(), acme)), 401)
  t.equal(outcome(await auth.present(await a.sign(), acme)), 'ada')
  t.equal(outcome(await auth.present(await b.sign(), other)), 'ada')
})

t.test('a cached token of one tenant is worth nothing at another', async (t) => {
  const idp = await forgingIssuer(t, { resource, now })
  const [acme, other] = [tenantWith({ issuers: [trust(idp.issuer)] }), tenantWith({}, 'other')]
  const auth = testAuthenticator(t, acme)
  const token = await idp.sign()
  t.equal(outcome(await auth.present(token, acme)), 'ada')
  t.equal(outcome(await auth.present(token, other)), 401)
})

t.test('the same kid and subject of two issuers are two keys and two people', async (t) => {
  const [a, b] = [await forgingIssuer(t, { resource, now }), await forgingIssuer(t, { resource, now })]
  const [keyA, keyB] = [await forgedKey('ES256', 'key-1'), await forgedKey('ES256', 'key-1')]
  a.published = [keyA.jwk]
  b.published = [keyB.jwk]
  const auth = testAuthenticator(t, tenantWith({ issuers: [trust(a.issuer), trust(b.issuer)] }))
  const [first, second] = [
    await auth.present(await a.sign({}, {}, keyA)),
    await auth.present(await b.sign({}, {}, keyB))
  ]
  t.same([outcome(first), outcome(second)], ['ada', 'ada'], 'both are known')
  t.not(first instanceof GatewayError ? '' : first.issuer, second instanceof GatewayError ? '' : second.issuer)
  t.equal(outcome(await auth.present(await a.sign({}, {}, keyB))), 401)
  t.equal(outcome(await auth.present(await b.sign({}, {}, keyA))), 401)
  t.same(auth.reasons(), ['signature', 'signature'], 'the key of the other issuer does not fit')
})
