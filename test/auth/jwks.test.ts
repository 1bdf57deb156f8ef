import t from 'tap'
import { outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { forgedKey, forgingIssuer } from '../kit/forging-issuer.ts'
import { issuer } from '../kit/issuer.ts'
import { GatewayError } from '../../src/protocol/messages.ts'

const minute = 60_000

t.test('known keys outlive an outage of their issuer by an hour, then it is unavailable', async (t) => {
  const idp = await issuer(t, { lifetimeSeconds: 36_000 })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.url)] }))
  const fresh = async () => await setup.present(await idp.token({ resource }))
  t.equal(outcome(await fresh()), 'robot')
  idp.setKeySet('down')
  setup.clock.advance(11 * minute)
  t.equal(outcome(await fresh()), 'robot', 'past the ordinary age')
  t.equal(
    setup.lines.filter((line) => line['msg'] === 'keys of an issuer cannot be fetched').length,
    1,
    'and the operator is told'
  )
  setup.clock.advance(58 * minute)
  t.equal(outcome(await fresh()), 'robot', 'just within the hour')
  setup.clock.advance(2 * minute)
  const late = await fresh()
  t.equal(outcome(late), 503)
  t.match(late, { code: 'unavailable', headers: { 'Retry-After': /^[1-9]\d?$/ } })
  idp.setKeySet('up')
  setup.clock.advance(minute)
  t.equal(outcome(await fresh()), 'robot', 'it heals by itself')
})

t.test('how long they do can be set', async (t) => {
  const idp = await issuer(t, { lifetimeSeconds: 36_000 })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.url, { staleSeconds: 120 })] }))
  const fresh = async () => outcome(await setup.present(await idp.token({ resource })))
  t.equal(await fresh(), 'robot')
  idp.setKeySet('down')
  setup.clock.advance(11.5 * minute)
  t.equal(await fresh(), 'robot')
  setup.clock.advance(minute)
  t.equal(await fresh(), 503)
})

t.test('an unknown key is refused also while its issuer is away', async (t) => {
  const idp = await issuer(t)
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.url)] }))
  const old = await idp.token({ resource })
  t.equal(outcome(await setup.present(old)), 'robot')
  await idp.rotate('published')
  idp.setKeySet('down')
  setup.clock.advance(minute)
  t.equal(outcome(await setup.present(await idp.token({ resource }))), 401)
  t.equal(outcome(await setup.present(old)), 'robot', 'the known one still counts')
})

t.test('a kid that is published late is found within a minute, also while others are invented', async (t) => {
  const now = Date.now()
  const idp = await forgingIssuer(t, { resource, now })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const [early, stranger] = [await forgedKey('ES256'), await forgedKey('ES256')]
  const use = async (key = idp.key) => outcome(await setup.present(await idp.sign({}, {}, key)))
  // Each time somebody who was not here before.
  let strangers = 0
  const useAnew = async (key: typeof idp.key) =>
    outcome(await setup.present(await idp.sign({ sub: `n${++strangers}` }, {}, key)))
  t.equal(await use(), 'ada')
  setup.clock.advance(minute)
  t.equal(await useAnew(early), 401)
  idp.published.push(early.jwk)
  t.equal(await useAnew(stranger), 401)
  t.equal(await useAnew(early), 'n3', 'looked up for another one')
  const next = await forgedKey('ES256')
  idp.published.push(next.jwk)
  t.equal(await useAnew(next), 401, 'twice within a minute, and no more')
  setup.clock.advance(minute - 1)
  t.equal(await useAnew(next), 401)
  t.equal(idp.keySetRequests(), 3)
  setup.clock.advance(1)
  t.equal(await useAnew(next), 'n6')
})

t.test('an issuer that was never reached is unavailable, and asked again after some seconds', async (t) => {
  const idp = await issuer(t)
  idp.setKeySet('down')
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.url)] }))
  const token = await idp.token({ resource })
  for (let attempt = 0; attempt < 20; attempt++) t.equal(outcome(await setup.present(token)), 503)
  t.equal(idp.keySetRequests(), 1)
  idp.setKeySet('up')
  setup.clock.advance(5000)
  t.equal(outcome(await setup.present(token)), 'robot')
})

t.test('a withdrawn key is refused after ten minutes at the latest', async (t) => {
  const idp = await issuer(t, { lifetimeSeconds: 3600 })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.url)] }))
  const early = await idp.token({ resource })
  const late = await idp.token({ resource })
  t.equal(outcome(await setup.present(early)), 'robot')
  await idp.rotate('withdrawn')
  setup.clock.advance(10 * minute)
  t.equal(outcome(await setup.present(late)), 401)
  t.equal(outcome(await setup.present(await idp.token({ resource }))), 'robot')
})

t.test('many first tokens at once make one request', async (t) => {
  const now = Date.now()
  const idp = await forgingIssuer(t, { resource, now })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  const tokens = await Promise.all(Array.from({ length: 100 }, async () => await idp.sign()))
  const results = await Promise.all(tokens.map(async (token) => outcome(await setup.present(token))))
  t.ok(results.every((result) => result === 'ada'))
  t.same(idp.requests, ['/.well-known/oauth-authorization-server', '/jwks'])
})

t.test('a token without kid is fine where only one key fits', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)] }))
  t.equal(outcome(await setup.present(await idp.sign({}, { kid: undefined }))), 'ada')
  idp.published.push((await forgedKey('ES256')).jwk)
  setup.clock.advance(11 * minute)
  const ambiguous = await setup.present(await idp.sign({ exp: Date.now() / 1000 + 3600 }, { kid: undefined }))
  t.equal(outcome(ambiguous), 401)
  t.equal(outcome(await setup.present(await idp.sign({ exp: Date.now() / 1000 + 3600 }))), 'ada')
})

t.test('closing gives up the request in flight', async (t) => {
  const idp = await forgingIssuer(t, { resource, now: Date.now() })
  idp.behaviour = 'hanging'
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer, { jwksUri: idp.jwksUri })] }))
  const waiting = setup.present(await idp.sign())
  while (idp.keySetRequests() === 0) await new Promise((resolve) => setImmediate(resolve))
  setup.authenticator.close()
  t.ok((await waiting) instanceof GatewayError)
})
