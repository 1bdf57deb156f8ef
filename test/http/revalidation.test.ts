// Calls that run while their caller's key is taken away or its token expires: they end, as a new request would be
// refused.

import pino from 'pino'
import t from 'tap'
import { moveClock } from '../kit/moving-clock.ts'
import { GatewayError } from '../../src/protocol/messages.ts'
import { createRevalidator, type RevalidationTarget } from '../../src/http/revalidation.ts'
import { acmeGateway, keyOf, type AcmeGateway } from '../kit/acme-gateway.ts'
import { legacyClient } from '../kit/client.ts'
import { listenEvents, postEvents } from '../kit/events.ts'
import { until } from '../kit/until.ts'

const options = { script: { answers: 'sse' }, limits: { drainMs: 100 }, overrides: { keepAliveMs: 50 } } as const
const slow = { name: 'slow', _meta: { progressToken: 's' } }
const progress = ({ method }: { method?: string }): boolean => method === 'notifications/progress'
const refused = { id: 'slow', error: { code: 401, data: { reason: 'unauthenticated', outcome: 'unknown' } } }

const takeAwayAda = (acme: AcmeGateway): unknown =>
  acme.reload({
    listen: { host: '127.0.0.1', port: 0 },
    store: 'memory:',
    tenants: {
      acme: {
        auth: { keys: [{ name: 'bob', key: keyOf.bob }] },
        upstreams: { up: { type: 'http', url: acme.upstream.url } },
        endpoints: { default: { upstreams: ['up'], prefix: '' } }
      }
    }
  })
const cancelled = (acme: AcmeGateway): number =>
  acme.upstream.server.received.filter(({ method }) => method === 'notifications/cancelled').length

t.test('a key that is taken away ends its running calls; those of others go on', async (t) => {
  const acme = await acmeGateway(t, options)
  const [ada, bob] = [await legacyClient(acme.url(), keyOf.ada), await legacyClient(acme.url(), keyOf.bob)]
  await bob.request('tools/call', { name: 'echo' }) // To the upstream the ids of the two would be one.
  const [hers, his] = await Promise.all(
    [ada, bob].map(async (client) => {
      const call = await postEvents(acme.url(), client, 'slow', 'tools/call', slow)
      await call.next('the call to run', progress)
      return call
    })
  )
  takeAwayAda(acme)
  await hers?.ended
  t.match(hers?.messages().at(-1), refused)
  await until('it is cancelled upstream', () => cancelled(acme) === 1)
  acme.upstream.server.release()
  await his?.ended
  t.match(his?.messages().at(-1), { id: 'slow', result: {} })
  t.equal((await ada.request('ping')).status, 401)
})

t.test('so does one whose answer would be a single JSON object', async (t) => {
  const acme = await acmeGateway(t, options)
  const ada = await legacyClient(acme.url(), keyOf.ada)
  const answer = ada.request('tools/call', { name: 'slow' }, { id: 'slow', headers: { accept: 'application/json' } })
  await until('the call runs', () => acme.upstream.server.calls('slow') === 1)
  takeAwayAda(acme)
  t.match((await answer).json, refused)
})

t.test('a stream that was come back for ends with the key, and its call with it', async (t) => {
  const acme = await acmeGateway(t, options)
  const ada = await legacyClient(acme.url(), keyOf.ada)
  const call = await postEvents(acme.url(), ada, 'slow', 'tools/call', slow)
  await call.next('the call to run', progress)
  call.cut()
  const resumed = await listenEvents(acme.url(), ada, call.lastId())
  takeAwayAda(acme)
  await resumed.ended
  await until('it is cancelled upstream', () => cancelled(acme) === 1)
  t.notOk(resumed.messages().some(({ result }) => result !== undefined))
})

t.test('a call ends when its token expires, at that time and with nothing after it', async (t) => {
  const acme = await acmeGateway(t, { ...options, overrides: { keepAliveMs: 60_000 } })
  const second = Math.floor(Date.now() / 1000)
  // With the leeway of 30 s it is good for about twelve seconds more.
  const token = await acme.bearer('JWT', 'ada', { iat: second - 60, exp: second - 18 })
  const ada = await legacyClient(acme.url(), token)
  const call = await postEvents(acme.url(), ada, 'slow', 'tools/call', slow)
  await call.next('the call to run', progress)
  await call.ended
  t.match(call.messages().at(-1), refused)
})

t.test('a client that comes back for a call with a newer token gets its answer', async (t) => {
  t.teardown(() => moveClock(0))
  const acme = await acmeGateway(t, options)
  const second = Math.floor(Date.now() / 1000)
  const [old, newer] = [
    await acme.bearer('JWT', 'ada', { exp: second + 600 }),
    await acme.bearer('JWT', 'ada', { exp: second + 3_600 })
  ]
  const ada = await legacyClient(acme.url(), old)
  const call = await postEvents(acme.url(), ada, 'slow', 'tools/call', slow)
  await call.next('the call to run', progress)
  call.cut()
  const fresh = { headers: { ...ada.headers, authorization: `Bearer ${newer}` } }
  const resumed = await listenEvents(acme.url(), fresh, call.lastId())
  moveClock(631_000)
  t.equal((await ada.request('ping')).status, 401, 'the first token has expired')
  const beats = (): number => resumed.text().split(': keep-alive\n\n').length
  const before = beats()
  await until('it stays, with its heartbeats', () => resumed.closed || beats() > before + 2)
  t.notOk(resumed.closed)
  acme.upstream.server.release()
  await resumed.ended
  t.match(resumed.messages().at(-1), { id: 'slow', result: {} })
})

const log = pino({ level: 'silent' })
const clock = { now: Date.now, timer: (ms: number, run: () => void) => setTimeout(run, ms) }

t.test('a check of every caller does not wait for a heartbeat, and ends none that cannot be checked', async (t) => {
  const revalidator = createRevalidator(clock, 60_000, log)
  t.teardown(() => revalidator.close())
  const seen: string[] = []
  const target = (name: string, revalidate: () => Promise<void>, sessionExists = true): RevalidationTarget => ({
    credential: { revalidate, validUntil: Infinity },
    sessionExists: async () => sessionExists,
    beat() {},
    onValid: () => seen.push(`${name} stays`),
    onInvalid: () => seen.push(`${name} goes`)
  })
  revalidator.watch(target('ada', async () => {}))
  revalidator.watch(target('bob', () => Promise.reject(new GatewayError('unauthenticated', 'no'))))
  revalidator.watch(target('eve', async () => {}, false))
  revalidator.watch(target('dan', () => Promise.reject(new GatewayError('unavailable', 'the store is away'))))
  revalidator.watch(target('fay', () => Promise.reject(new GatewayError('unauthenticated', 'no'))))()
  await revalidator.revalidateAll()
  await until('they were checked', () => seen.length === 3)
  t.same(seen.toSorted(), ['ada stays', 'bob goes', 'eve goes'])
})

t.test('a newer token just before the old one expires counts until its own expiry, without a heartbeat', async (t) => {
  const revalidator = createRevalidator(clock, 60_000, log)
  t.teardown(() => revalidator.close())
  const credential = { revalidate: async () => {}, validUntil: Date.now() + 20 }
  let endedAt = 0
  const onInvalid = (): void => {
    endedAt = Date.now()
  }
  t.teardown(revalidator.watch({ credential, beat() {}, onInvalid }))
  credential.validUntil += 200
  await until('it expires', () => endedAt > 0)
  t.ok(endedAt >= credential.validUntil)
})

t.test('one timer beats for all until each has stopped', async (t) => {
  const revalidator = createRevalidator(clock, 5, log)
  t.teardown(() => revalidator.close())
  const beats = { one: 0, two: 0 }
  const target = (name: 'one' | 'two'): RevalidationTarget => ({
    credential: { revalidate: async () => {}, validUntil: Infinity },
    beat: () => beats[name]++,
    onInvalid() {}
  })
  const stop = revalidator.watch(target('one'))
  revalidator.watch(target('two'))
  await until('both have beaten', () => beats.one > 1 && beats.two > 1)
  stop()
  const { one, two } = beats
  await until('the other one goes on', () => beats.two > two + 1)
  t.equal(beats.one, one)
})
