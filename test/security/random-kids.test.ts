// Attack: tokens with invented kids, each of which could cause a request to the issuer's key set.

import { moveClock, stopClock } from '../kit/moving-clock.ts'
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { acmeGateway, initializeBody } from '../kit/acme-gateway.ts'
import { testAuthenticator, outcome, resource, tenantWith, trust } from '../kit/authenticator.ts'
import { assemble, forgedKey, forgingIssuer } from '../kit/forging-issuer.ts'

// Of what is asked once in five seconds, none pass by themselves.
stopClock()

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

t.test('a host that keeps a token of a withdrawn key keeps no new key waiting', async (t) => {
  const acme = await acmeGateway(t)
  const idp = acme.issuer
  const use = async (token: string): Promise<number> =>
    (await acme.exchange(acme.post(initializeBody()).replace(/Bearer [^\r]+/, `Bearer ${token}`))).status
  const tokenOf = async (key = idp.key) => await idp.sign({ aud: acme.url(), sub: 'ada', client_id: 'app' }, {}, key)
  const withdrawn = await tokenOf(await forgedKey('ES256'))
  t.equal(await use(await tokenOf()), 200)
  t.teardown(() => moveClock(0))
  moveClock(60_000)
  for (let again = 0; again < 20; again++) t.equal(await use(withdrawn), 401)
  t.equal(idp.keySetRequests(), 2, 'once for it')
  const next = await forgedKey('ES256')
  idp.published.push(next.jwk)
  t.equal(await use(await tokenOf(next)), 200)
})

/** A gateway, its issuer, and whoever begins a session with a token of it: the status of the answer. */
async function start(t: Test) {
  const acme = await acmeGateway(t)
  const idp = acme.issuer
  t.teardown(() => moveClock(0))
  const use = async (sub: string, key = idp.key): Promise<number> => {
    const token = await idp.sign({ aud: acme.url(), sub, client_id: 'app' }, {}, key)
    return (await acme.exchange(acme.post(initializeBody()).replace(/Bearer [^\r]+/, `Bearer ${token}`))).status
  }
  return { idp, use }
}

t.test('strangers who invent kids keep no new key from whoever was let in before', async (t) => {
  const { idp, use } = await start(t)
  const flood = async (sub: string): Promise<void> => {
    const key = await forgedKey('ES256')
    for (let n = 0; n < 20; n++) t.equal(await use(sub, { ...key, kid: randomUUID() }), 401)
  }
  for (const person of ['ada', 'bob']) t.equal(await use(person), 200)
  moveClock(60_000)
  await flood('nobody')
  t.equal(idp.keySetRequests(), 3, 'two for all that strangers bring')
  const next = await forgedKey('ES256')
  idp.published.push(next.jwk)
  t.equal(await use('ada', next), 401, 'not at once after another one')
  moveClock(65_000)
  await flood('nobody')
  t.equal(await use('carol', next), 401, 'the control: who was never let in is a stranger')
  t.equal(await use('ada', next), 200)
  t.equal(await use('carol', next), 200, 'the key is known now')
  t.equal(idp.keySetRequests(), 4)
  moveClock(68_000)
  await flood('ada')
  t.equal(idp.keySetRequests(), 4, 'whoever writes their names causes one within five seconds')
  moveClock(70_000)
  await flood('ada')
  t.equal(idp.keySetRequests(), 5)
  const third = await forgedKey('ES256')
  idp.published.push(third.jwk)
  await flood('bob')
  t.equal(await use('ada', third), 401, 'not at once after another one')
  moveClock(75_000)
  t.equal(await use('ada', third), 200, 'and keeps no key from them')
  t.equal(idp.keySetRequests(), 6)
})

t.test('whoever guesses the kid of a new key keeps it from nobody who was let in before', async (t) => {
  const { idp, use } = await start(t)
  t.equal(await use('ada'), 200)
  moveClock(60_000)
  const next = await forgedKey('ES256', 'key-2')
  t.equal(await use('nobody', { ...(await forgedKey('ES256')), kid: 'key-2' }), 401)
  idp.published.push(next.jwk)
  moveClock(65_000)
  t.equal(await use('carol', next), 401, 'the control: it was looked for already')
  t.equal(await use('ada', next), 200)
})

t.test('what was fetched as for anybody leaves callers who were let in before their own', async (t) => {
  const { idp, use } = await start(t)
  t.equal(await use('ada'), 200)
  moveClock(60_000)
  const [withdrawn, next, after] = [await forgedKey('ES256'), await forgedKey('ES256'), await forgedKey('ES256')]
  t.equal(await use('ada', withdrawn), 401)
  idp.published.push(next.jwk)
  moveClock(65_000)
  t.equal(await use('ada', next), 200)
  idp.published.push(after.jwk)
  moveClock(70_000)
  t.equal(await use('carol', after), 401, 'the control: twice within a minute')
  t.equal(await use('ada', after), 200)
})
