// How long what a login front gives lasts: signing keys, clients that registered, refresh tokens.

import { moveClock } from '../kit/moving-clock.ts'
import { decodeProtectedHeader, type JWK } from 'jose'
import t from 'tap'
import { browser } from '../kit/browser.ts'
import { begin, loginGateway, logIn, redirectUri, refresh, register, use } from './kit.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

const kidOf = ({ access_token: token }: { readonly access_token: string }) => decodeProtectedHeader(token).kid

t.test('a new signing key is published before it signs, the old one until its last token has ended', async (t) => {
  const front = await loginGateway(t, { login: { refreshDays: 365, tokenSeconds: 600 } })
  t.teardown(() => moveClock(0))
  async function published(): Promise<unknown[]> {
    const { keys } = (await (await fetch(`${front.issuer}/jwks`)).json()) as { readonly keys: readonly JWK[] }
    for (const key of keys) t.notOk('d' in key, 'without its private half')
    return keys.map(({ kid }) => kid)
  }
  const first = await logIn(front, front.url())
  const old = kidOf(first.body)
  t.same(await published(), [old])

  const rotation = 31 * day
  moveClock(rotation)
  const [signing, next, ...more] = await published()
  t.same([signing, more], [old, []])
  t.type(next, 'string')
  moveClock(rotation + hour - minute)
  const last = await refresh(front, first)
  t.equal(kidOf(last.body), old, 'within the hour the old one signs')

  moveClock(rotation + hour + minute)
  const renewed = await refresh(front, { ...first, body: last.body })
  t.equal(kidOf(renewed.body), next)
  t.equal(await use(front.url(), renewed.body.access_token), 200)
  t.equal(await use(front.url(), last.body.access_token), 200, 'a token of the old one is good until its end')
  t.same(await published(), [next, old])

  moveClock(rotation + hour + day + 4 * minute)
  t.same(await published(), [next, old], 'clocks differ')
  moveClock(rotation + hour + day + 6 * minute)
  t.same(await published(), [next])
  const again = await refresh(front, { ...first, body: renewed.body })
  t.equal(await use(front.url(), again.body.access_token), 200)
  t.equal(await use(front.url(), last.body.access_token), 401)
})

t.test('a token holds until its end, also where tokenSeconds is lowered and the key replaced meanwhile', async (t) => {
  const front = await loginGateway(t, { login: { refreshDays: 365, tokenSeconds: 7_200 } })
  t.teardown(() => moveClock(0))
  const first = await logIn(front, front.url())
  const rotation = 31 * day
  moveClock(rotation)
  await fetch(`${front.issuer}/jwks`)
  moveClock(rotation + hour - minute)
  const long = await refresh(front, first)
  const lowered = structuredClone(front.config) as { tenants: { acme: { auth: { login: Record<string, unknown> } } } }
  lowered.tenants.acme.auth.login['tokenSeconds'] = 60
  front.reload(lowered)
  moveClock(rotation + hour + 10 * minute)
  const short = await refresh(front, { ...first, body: long.body })
  t.not(kidOf(short.body), kidOf(long.body))
  t.equal(await use(front.url(), short.body.access_token), 200)
  t.equal(await use(front.url(), long.body.access_token), 200)
  moveClock(rotation + hour + 20 * minute)
  t.equal(await use(front.url(), short.body.access_token), 401, 'what is issued now is as short as it says')
  t.equal(await use(front.url(), long.body.access_token), 200)
  moveClock(rotation + 3 * hour + minute)
  t.equal(await use(front.url(), long.body.access_token), 401)
})

t.test('a client that registered and never got a token is gone a day later, one that is used stays', async (t) => {
  const front = await loginGateway(t)
  t.teardown(() => moveClock(0))
  const { clientId: unused } = await register(front)
  let used = await logIn(front, front.url())
  const statusOf = async (client: string) => (await browser().go(begin(front, client), redirectUri)).status
  moveClock(23 * hour)
  t.equal(await statusOf(unused), 200)
  moveClock(25 * hour)
  t.equal(await statusOf(unused), 400)
  t.equal(await statusOf(used.clientId), 200)
  for (let days = 25; days <= 100; days += 25) {
    moveClock(days * day)
    const { status, body } = await refresh(front, used)
    t.equal(status, 200, `day ${days}`)
    used = { ...used, body }
  }
  t.equal(await statusOf(used.clientId), 200)
  moveClock(191 * day)
  t.equal(await statusOf(used.clientId), 400, '90 days after its last token')
})

t.test('a host that comes back within refreshDays goes on, later the person is asked', async (t) => {
  const front = await loginGateway(t, { login: { refreshDays: 2 } })
  t.teardown(() => moveClock(0))
  const first = await logIn(front, front.url())
  moveClock(2 * day - minute)
  const second = await refresh(front, first)
  t.equal(second.status, 200)
  moveClock(4 * day - 2 * minute)
  const third = await refresh(front, { ...first, body: second.body })
  t.equal(third.status, 200, 'the time begins anew with each use')
  moveClock(6 * day)
  t.match(await refresh(front, { ...first, body: third.body }), { status: 400, body: { error: 'invalid_grant' } })
})

t.test(
  'the hosts of one person refresh so often in an hour, and a spent token ends its grant all the same',
  async (t) => {
    const front = await loginGateway(t, { login: { tokenSeconds: 3_600 } })
    t.teardown(() => moveClock(0))
    const ada = await logIn(front, front.url())
    const other = await logIn(front, front.url())
    front.provider.person = 'bob'
    const bob = await logIn(front, front.url())
    let last = ada
    for (let n = 0; n < 60; n++) {
      const { status, body } = await refresh(front, last)
      if (status !== 200) t.fail(`the refresh ${n + 1} was answered with ${status}`)
      last = { ...ada, body }
    }
    const refused = await refresh(front, last)
    t.match(refused, { status: 429, body: { error: 'temporarily_unavailable' } })
    const seconds = Number(refused.headers.get('retry-after'))
    t.ok(seconds > 60 && seconds <= 3_600)
    t.equal((await refresh(front, other)).status, 429, 'the same person')
    t.equal((await refresh(front, bob)).status, 200, 'somebody else')
    moveClock(hour)
    const next = await refresh(front, last)
    t.equal(next.status, 200, 'nothing was used up')
    let more = other
    for (let n = 0; n < 59; n++) more = { ...other, body: (await refresh(front, more)).body }
    t.equal((await refresh(front, more)).status, 429)
    t.match(await refresh(front, ada), { status: 400, body: { error: 'invalid_grant' } })
    t.match(await refresh(front, { ...ada, body: next.body }), { status: 400, body: { error: 'invalid_grant' } })
  }
)
