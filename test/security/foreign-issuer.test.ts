// Cases 9 and 10: a token of somebody else's issuer, and two issuers that agree on everything but their name.

import t from 'tap'
import { GatewayError } from '../../src/protocol/errors.ts'
import { desk, outcome, resource, tenantWith, trust } from '../kit/desk.ts'
import { forge, forgedKey } from '../kit/forge.ts'

const now = Date.now()

t.test('iss is compared letter by letter, and nobody is asked about a stranger', async (t) => {
  const idp = await forge(t, { resource, now, path: '/realms/a' })
  const stranger = await forge(t, { resource, now })
  const room = desk(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const bad = [stranger.issuer, `${idp.issuer}/`, idp.issuer.toUpperCase(), idp.issuer.replace('127.0.0.1', 'localhost'), `${idp.issuer}?`, '', undefined, null, 7, [idp.issuer], '__proto__', { toString: 1 },
    'urn:gatehouse:key', 'urn:gatehouse:anonymous']
  for (const iss of bad) t.equal(outcome(await room.present(await idp.sign({ iss }))), 401, JSON.stringify(iss))
  t.equal(outcome(await room.present(await stranger.sign())), 401)
  t.same([idp.requests, stranger.requests], [[], []])
  t.equal(outcome(await room.present(await idp.sign())), 'ada')
})

t.test('our own issuer names cannot be configured into a tenant', async (t) => {
  const idp = await forge(t, { resource, now })
  const room = desk(t, tenantWith({ issuers: [trust('urn:gatehouse:key', { jwksUri: idp.jwksUri })] }))
  t.equal(outcome(await room.present(await idp.sign({ iss: 'urn:gatehouse:key' }))), 401)
  const named = desk(t, tenantWith({ issuers: [trust('urn:example:idp', { jwksUri: idp.jwksUri })] }))
  t.equal(outcome(await named.present(await idp.sign({ iss: 'urn:example:idp' }))), 'ada')
})

t.test('the issuer of another tenant is a stranger', async (t) => {
  const [a, b] = [await forge(t, { resource, now }), await forge(t, { resource, now })]
  const [acme, other] = [tenantWith({ issuers: [trust(a.issuer)] }), tenantWith({ issuers: [trust(b.issuer)] }, 'other')]
  const room = desk(t, acme)
  t.equal(outcome(await room.present(await a.sign(), other)), 401)
  t.equal(outcome(await room.present(await b.sign(), acme)), 401)
  t.equal(outcome(await room.present(await a.sign(), acme)), 'ada')
  t.equal(outcome(await room.present(await b.sign(), other)), 'ada')
})

t.test('a remembered token of one tenant is nothing to another', async (t) => {
  const idp = await forge(t, { resource, now })
  const [acme, other] = [tenantWith({ issuers: [trust(idp.issuer)] }), tenantWith({}, 'other')]
  const room = desk(t, acme)
  const token = await idp.sign()
  t.equal(outcome(await room.present(token, acme)), 'ada')
  t.equal(outcome(await room.present(token, other)), 401)
})

t.test('the same kid and subject of two issuers are two keys and two people', async (t) => {
  const [a, b] = [await forge(t, { resource, now }), await forge(t, { resource, now })]
  const [keyA, keyB] = [await forgedKey('ES256', 'key-1'), await forgedKey('ES256', 'key-1')]
  a.published = [keyA.jwk]
  b.published = [keyB.jwk]
  const room = desk(t, tenantWith({ issuers: [trust(a.issuer), trust(b.issuer)] }))
  const [first, second] = [await room.present(await a.sign({}, {}, keyA)), await room.present(await b.sign({}, {}, keyB))]
  t.same([outcome(first), outcome(second)], ['ada', 'ada'])
  t.not(first instanceof GatewayError ? '' : first.issuer, second instanceof GatewayError ? '' : second.issuer)
  t.equal(outcome(await room.present(await a.sign({}, {}, keyB))), 401)
  t.equal(outcome(await room.present(await b.sign({}, {}, keyA))), 401)
  t.same(room.reasons(), ['signature', 'signature'])
})
