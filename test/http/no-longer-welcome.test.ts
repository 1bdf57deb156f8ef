// Calls that run while their caller's key is taken away or its token expires: they end, as a new request would be refused.

import pino from 'pino'
import t from 'tap'
import { GatewayError } from '../../src/protocol/errors.ts'
import { createKeepAlive } from '../../src/http/stream.ts'
import { createWelcome } from '../../src/http/welcome.ts'
import type { Guest } from '../../src/http/welcome.ts'
import { acme, keyOf } from '../kit/acme.ts'
import type { Acme } from '../kit/acme.ts'
import { legacyClient } from '../kit/client.ts'
import { listenEvents, postEvents } from '../kit/events.ts'
import { until } from '../kit/until.ts'

const options = { script: { answers: 'sse' }, limits: { drainMs: 100 }, overrides: { keepAliveMs: 50 } } as const
const slow = { name: 'slow', _meta: { progressToken: 's' } }
const progress = ({ method }: { method?: string }): boolean => method === 'notifications/progress'
const refused = { id: 'slow', error: { code: 401, data: { reason: 'unauthenticated', outcome: 'unknown' } } }

const takeAwayAda = (house: Acme): unknown => house.reload({
  listen: { host: '127.0.0.1', port: 0 },
  store: 'memory:',
  tenants: { acme: { auth: { keys: [{ name: 'bob', key: keyOf.bob }] }, upstreams: { up: { type: 'http', url: house.upstream.url } }, endpoints: { default: { upstreams: ['up'], prefix: '' } } } }
})
const cancelled = (house: Acme): number => house.upstream.server.received.filter(({ method }) => method === 'notifications/cancelled').length
/** Good for about three seconds more, with the leeway of 30 s. */
const shortToken = (house: Acme): Promise<string> => {
  const second = Math.floor(Date.now() / 1000)
  return house.bearer('JWT', 'ada', { iat: second - 60, exp: second - 27 })
}

t.test('a key that is taken away ends its running calls; those of others go on', async (t) => {
  const house = await acme(t, options)
  const [ada, bob] = [await legacyClient(house.url(), keyOf.ada), await legacyClient(house.url(), keyOf.bob)]
  await bob.request('tools/call', { name: 'echo' }) // To the upstream the ids of the two would be one.
  const [hers, his] = await Promise.all([ada, bob].map(async (client) => {
    const call = await postEvents(house.url(), client, 'slow', 'tools/call', slow)
    await call.next('the call to run', progress)
    return call
  }))
  takeAwayAda(house)
  await hers?.ended
  t.match(hers?.messages().at(-1), refused)
  await until('it is cancelled upstream', () => cancelled(house) === 1)
  house.upstream.server.release()
  await his?.ended
  t.match(his?.messages().at(-1), { id: 'slow', result: {} })
  t.equal((await ada.request('ping')).status, 401)
})

t.test('so does one whose answer would be a single JSON object', async (t) => {
  const house = await acme(t, options)
  const ada = await legacyClient(house.url(), keyOf.ada)
  const answer = ada.request('tools/call', { name: 'slow' }, { id: 'slow', headers: { accept: 'application/json' } })
  await until('the call runs', () => house.upstream.server.calls('slow') === 1)
  takeAwayAda(house)
  t.match((await answer).json, refused)
})

t.test('a stream that was come back for ends with the key, and its call with it', async (t) => {
  const house = await acme(t, options)
  const ada = await legacyClient(house.url(), keyOf.ada)
  const call = await postEvents(house.url(), ada, 'slow', 'tools/call', slow)
  await call.next('the call to run', progress)
  call.cut()
  const resumed = await listenEvents(house.url(), ada, call.lastId())
  takeAwayAda(house)
  await resumed.ended
  await until('it is cancelled upstream', () => cancelled(house) === 1)
  t.notOk(resumed.messages().some(({ result }) => result !== undefined))
})

t.test('a call ends when its token expires, at that time and with nothing after it', async (t) => {
  const house = await acme(t, { ...options, overrides: { keepAliveMs: 60_000 } })
  const ada = await legacyClient(house.url(), await shortToken(house))
  const call = await postEvents(house.url(), ada, 'slow', 'tools/call', slow)
  await call.next('the call to run', progress)
  await call.ended
  t.match(call.messages().at(-1), refused)
})

t.test('whoever comes back for a call with a newer token gets its answer', async (t) => {
  const house = await acme(t, options)
  const old = await shortToken(house)
  const ada = await legacyClient(house.url(), old)
  const call = await postEvents(house.url(), ada, 'slow', 'tools/call', slow)
  await call.next('the call to run', progress)
  call.cut()
  const fresh = { headers: { ...ada.headers, authorization: `Bearer ${await house.bearer('JWT', 'ada')}` } }
  const resumed = await listenEvents(house.url(), fresh, call.lastId())
  await until('the first token has expired', async () => (await ada.request('ping')).status === 401)
  t.notOk(resumed.closed)
  house.upstream.server.release()
  await resumed.ended
  t.match(resumed.messages().at(-1), { id: 'slow', result: {} })
})

t.test('a look at everybody does not wait for a beat, and ends nobody who cannot be checked', async (t) => {
  const keepAlive = createKeepAlive(60_000)
  t.teardown(() => keepAlive.close())
  const welcome = createWelcome({ keepAlive, clock: { now: Date.now }, log: pino({ level: 'silent' }) })
  const told: string[] = []
  const guest = (name: string, recheck: () => Promise<void>, alive = true): Guest => ({
    recheck,
    alive: async () => alive,
    validUntil: () => Infinity,
    beat () {},
    onWelcome: () => told.push(`${name} stays`),
    onUnwelcome: () => told.push(`${name} goes`)
  })
  welcome.attend(guest('ada', async () => {}))
  welcome.attend(guest('bob', () => Promise.reject(new GatewayError('unauthenticated', 'no'))))
  welcome.attend(guest('eve', async () => {}, false))
  welcome.attend(guest('dan', () => Promise.reject(new GatewayError('unavailable', 'the store is away'))))
  welcome.attend(guest('fay', () => Promise.reject(new GatewayError('unauthenticated', 'no'))))()
  welcome.recheckAll()
  await until('they were looked at', () => told.length === 3)
  t.same(told.toSorted(), ['ada stays', 'bob goes', 'eve goes'])
})

t.test('a newer token that came just before the old one expired holds until its own time, without a beat', async (t) => {
  const keepAlive = createKeepAlive(60_000)
  t.teardown(() => keepAlive.close())
  const welcome = createWelcome({ keepAlive, clock: { now: Date.now }, log: pino({ level: 'silent' }) })
  let validUntil = Date.now() + 20
  let wentAt = 0
  const stop = welcome.attend({
    recheck: async () => {},
    alive: async () => true,
    validUntil: () => validUntil,
    beat () {},
    onWelcome () {},
    onUnwelcome () { wentAt = Date.now() }
  })
  t.teardown(stop)
  validUntil += 200
  await until('it expires', () => wentAt > 0)
  t.ok(wentAt >= validUntil)
})
