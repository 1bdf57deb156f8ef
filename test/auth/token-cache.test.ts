import t from 'tap'
import { createTokenCache, digestOf, type Verified } from '../../src/auth/token-cache.ts'
import { anonymousPrincipal } from '../../src/auth/principal.ts'
import { tenantId } from '../../src/protocol/messages.ts'
import { clockAt, outcome, resource, tenantWith, testAuthenticator, trust } from '../kit/authenticator.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'

const until = (expiresAt: number | undefined): Verified => ({
  principal: { ...anonymousPrincipal(tenantId('acme')), expiresAt }
})

t.test('a token is remembered for a minute, and never past its end', async (t) => {
  const clock = clockAt(1_000_000)
  const cache = createTokenCache(clock)
  cache.set('long', until(undefined))
  cache.set('short', until(1_010_000))
  cache.set('over', until(1_000_000))
  t.ok(cache.get('long'))
  t.ok(cache.get('short'))
  t.equal(cache.get('over'), undefined, 'a token within its leeway is not remembered')
  clock.advance(9_999)
  t.ok(cache.get('short'))
  clock.advance(1)
  t.equal(cache.get('short'), undefined)
  t.ok(cache.get('long'))
  clock.advance(50_000)
  t.equal(cache.get('long'), undefined)
  t.equal(cache.size, 0)
})

t.test('a clock that is set back ends entries rather than prolong them', async (t) => {
  const clock = clockAt(1_000_000)
  const cache = createTokenCache(clock)
  cache.set('one', until(undefined))
  clock.advance(-1)
  t.equal(cache.get('one'), undefined)
})

t.test('there are never more entries than the limit, and the oldest are dropped first', async (t) => {
  const clock = clockAt(0)
  const cache = createTokenCache(clock, 3)
  for (const digest of ['a', 'b', 'c', 'd']) cache.set(digest, until(undefined))
  t.same(
    ['a', 'b', 'c', 'd'].map((digest) => cache.get(digest) !== undefined),
    [false, true, true, true]
  )
  cache.set('b', until(undefined))
  cache.set('e', until(undefined))
  t.same(
    ['b', 'c', 'd', 'e'].map((digest) => cache.get(digest) !== undefined),
    [true, false, true, true]
  )
  clock.advance(60_000)
  cache.set('f', until(undefined))
  t.equal(cache.size, 1, 'expired entries are dropped first')
})

t.test('resource and token are kept apart in the digest', async (t) => {
  t.not(digestOf('https://a/b', 'c'), digestOf('https://a/', 'bc'))
  t.notMatch(digestOf('https://a', 'my-secret-token'), 'secret')
})

t.test('a remembered token needs neither its issuer nor a signature check, until it ends', async (t) => {
  const clock = clockAt(Date.UTC(2026, 0, 1))
  const idp = await forgingIssuer(t, { resource, now: clock.now() })
  const setup = testAuthenticator(t, tenantWith({ issuers: [trust(idp.issuer)], leewaySeconds: 0 }), { clock })
  const token = await idp.sign({ exp: clock.now() / 1000 + 45 })
  const first = await setup.present(token)
  t.equal(outcome(first), 'ada')
  t.equal(await setup.present(token), first, 'the very same principal')
  clock.advance(44_999)
  t.equal(await setup.present(token), first)
  clock.advance(1)
  t.equal(outcome(await setup.present(token)), 401)
  t.same(setup.reasons(), ['expired'])
})
