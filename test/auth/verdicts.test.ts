import t from 'tap'
import { createVerdicts, digestOf } from '../../src/auth/verdicts.ts'
import { anonymousPrincipal } from '../../src/auth/principal.ts'
import type { Principal } from '../../src/auth/principal.ts'
import { tenantId } from '../../src/protocol/ids.ts'
import { clockAt, desk, outcome, resource, tenantWith, trust } from '../kit/desk.ts'
import { forge } from '../kit/forge.ts'

const until = (expiresAt: number | undefined): Principal => ({ ...anonymousPrincipal(tenantId('acme')), expiresAt })

t.test('a verdict lives a minute, and never past the end of its token', async (t) => {
  const clock = clockAt(1_000_000)
  const verdicts = createVerdicts({ clock })
  verdicts.set('long', until(undefined))
  verdicts.set('short', until(1_010_000))
  verdicts.set('over', until(1_000_000))
  t.ok(verdicts.get('long'))
  t.ok(verdicts.get('short'))
  t.equal(verdicts.get('over'), undefined, 'a token within its leeway is not remembered')
  clock.advance(9_999)
  t.ok(verdicts.get('short'))
  clock.advance(1)
  t.equal(verdicts.get('short'), undefined)
  t.ok(verdicts.get('long'))
  clock.advance(50_000)
  t.equal(verdicts.get('long'), undefined)
  t.equal(verdicts.size, 0)
})

t.test('a clock that is set back ends verdicts rather than lengthen them', async (t) => {
  const clock = clockAt(1_000_000)
  const verdicts = createVerdicts({ clock })
  verdicts.set('one', until(undefined))
  clock.advance(-1)
  t.equal(verdicts.get('one'), undefined)
})

t.test('there are never more than its limit, and the oldest go first', async (t) => {
  const clock = clockAt(0)
  const verdicts = createVerdicts({ clock, max: 3 })
  for (const digest of ['a', 'b', 'c', 'd']) verdicts.set(digest, until(undefined))
  t.same(['a', 'b', 'c', 'd'].map((digest) => verdicts.get(digest) !== undefined), [false, true, true, true])
  verdicts.set('b', until(undefined))
  verdicts.set('e', until(undefined))
  t.same(['b', 'c', 'd', 'e'].map((digest) => verdicts.get(digest) !== undefined), [true, false, true, true])
  clock.advance(60_000)
  verdicts.set('f', until(undefined))
  t.equal(verdicts.size, 1, 'dead ones make room')
})

t.test('resource and token cannot be shifted against each other', async (t) => {
  t.not(digestOf('https://a/b', 'c'), digestOf('https://a/', 'bc'))
  t.notMatch(digestOf('https://a', 'my-secret-token'), 'secret')
})

t.test('a remembered token needs neither its issuer nor a signature check, until it ends', async (t) => {
  const clock = clockAt(Date.UTC(2026, 0, 1))
  const idp = await forge(t, { resource, now: clock.now() })
  const room = desk(t, tenantWith({ issuers: [trust(idp.issuer)], leewaySeconds: 0 }), { clock })
  const token = await idp.sign({ exp: clock.now() / 1000 + 45 })
  const first = await room.present(token)
  t.equal(outcome(first), 'ada')
  t.equal(await room.present(token), first, 'the very same principal')
  clock.advance(44_999)
  t.equal(await room.present(token), first)
  clock.advance(1)
  t.equal(outcome(await room.present(token)), 401)
  t.same(room.reasons(), ['expired'])
})
