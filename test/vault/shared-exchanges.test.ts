// A session lives at one process, and the request with the token of its caller comes to another one, which exchanges
// the token. Whoever calls the upstream waits for that, and takes what came of it.

import { moveClock } from '../kit/moving-clock.ts'
import { randomBytes } from 'node:crypto'
import pino from 'pino'
import t, { type Test } from 'tap'
import { tenantId } from '../../src/protocol/messages.ts'
import { exchangeTurnKey } from '../../src/store/keys.ts'
import type { Store } from '../../src/store/port.ts'
import { createRedisStore } from '../../src/store/redis.ts'
import { steadyClock, wallClock } from '../../src/time/clock.ts'
import { createSharedExchanges } from '../../src/vault/oauth/shared-exchanges.ts'
import { createSealedValues } from '../../src/vault/sealed-values.ts'
import { createVaultKeys } from '../../src/vault/wrapping/vault-keys.ts'
import { legacyClient } from '../kit/client.ts'
import { gateway, type TestGatewayOptions } from '../kit/gateway.ts'
import { issuer } from '../kit/issuer.ts'
import { protectedUpstream } from '../kit/protected-upstream.ts'
import { redis } from '../kit/redis.ts'
import { until } from '../kit/until.ts'

const log = pino({ level: 'silent' })
const vault = { keys: [{ id: 'k1', key: randomBytes(32).toString('base64') }] }
const params = { name: 'up__echo', arguments: { text: 'hello' } }
const minutes = 60_000

/** A session at one of two processes, of a caller whose next request comes to the other one. */
async function setup(t: Test) {
  const idp = await issuer(t, { clients: ['ada'] })
  const up = await protectedUpstream(t, idp)
  const url = (await redis(t)).url
  const opened = await createRedisStore({ url, clock: wallClock, log })
  t.teardown(() => opened.close())
  const state = { looks: 0 }
  const watched: Store = Object.create(opened, {
    get: {
      value(key: string) {
        if (key.startsWith('exchange-turn:')) state.looks++
        return opened.get(key)
      }
    }
  }) as Store
  const publicUrl = 'https://gateway.example'
  const options: TestGatewayOptions = {
    upstreams: {
      up: { type: 'http', url: up.url, auth: { type: 'tokenExchange', issuer: idp.url, ...idp.exchanger } }
    },
    auth: { issuers: [{ issuer: idp.url }] },
    store: url,
    top: { vault, publicUrl }
  }
  const home = await gateway(t, { ...options, overrides: { store: watched } })
  const other = await gateway(t, options)
  const token = () => idp.token({ clientId: 'ada', resource: `${publicUrl}/t/acme/mcp` })
  const client = await legacyClient(`${home.listening}/t/acme/mcp`, await token())
  t.ok((await client.request('tools/call', params)).json.result)
  async function callAtOther() {
    const response = await fetch(`${other.listening}/t/acme/mcp`, {
      method: 'POST',
      headers: { ...(client.headers as Record<string, string>), authorization: `Bearer ${await token()}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 'at the other', method: 'tools/call', params })
    })
    const text = await response.text()
    return JSON.parse(text.replace(/^[\s\S]*^data: /m, '')) as { result?: unknown; error?: { message: string } }
  }
  t.teardown(() => moveClock(0))
  return { idp, up, state, callAtOther }
}

t.test('a call waits for the process that exchanges, longer than a request waits to be let in', async (t) => {
  const { idp, up, state, callAtOther } = await setup(t)
  // What the session had is over by now.
  moveClock(11 * minutes)
  let release: () => void = () => {}
  idp.beforeExchange = () =>
    new Promise((resolve) => {
      release = resolve
    })
  const looks = state.looks
  let isAnswered = false
  const answer = callAtOther().finally(() => {
    isAnswered = true
  })
  await until('the process of the session looks for it', () => isAnswered || state.looks > looks + 3)
  t.equal(isAnswered, false)
  release()
  t.match(await answer, { result: { content: [] } })
  t.equal(idp.exchanges.length, 2, 'once for each token')
  t.equal(up.admitted.at(-1)?.aud, up.url)

  idp.beforeExchange = undefined
  idp.exchangeRefused = true
  moveClock(22 * minutes)
  t.match((await callAtOther()).error?.message, /its identity provider answers invalid_grant/, 'a failure is told, too')
  idp.exchangeRefused = false
  moveClock(22 * minutes + 6_000)
  t.match(await callAtOther(), { result: { content: [] } }, 'and is over soon')
})

/** What two processes of one store share, and the places where a test can watch or hold the second. */
async function twoProcesses(t: Test) {
  const store = await createRedisStore({ url: (await redis(t)).url, clock: wallClock, log })
  t.teardown(() => store.close())
  const epochs = { epochOf: () => Promise.resolve(0), isCurrentEpoch: () => true }
  const keys = createVaultKeys({ store, snapshot: () => ({ vault }), epochs, clock: steadyClock, log })
  const values = createSealedValues(store, keys, log)
  const state = { looks: 0, reads: 0, held: Promise.resolve() }
  const here = createSharedExchanges({ store, values, hasKeys: () => true, clock: steadyClock })
  const there = createSharedExchanges({
    store: {
      get: (key) => {
        state.looks++
        return store.get(key)
      },
      set: store.set,
      delete: store.delete
    },
    values: {
      ...values,
      read: async (tenant, key) => {
        state.reads++
        await state.held
        return await values.read(tenant, key)
      }
    },
    hasKeys: () => true,
    clock: steadyClock
  })
  return { store, here, there, state }
}

t.test('many calls that wait for one exchange ask the store as one', async (t) => {
  const { here, there, state } = await twoProcesses(t)
  const definition = { tenant: tenantId('acme'), hash: 'h..many' } as never
  const end = await here.begin(definition)
  const { signal } = new AbortController()
  const waiting = Array.from({ length: 200 }, () => there.find(definition, () => true, signal))
  await until('they look again and again', () => state.looks > 4)
  t.ok(state.looks < 50, `${state.looks}`)
  const exchanged = { tokens: { accessToken: 'of ada' }, since: Date.now() }
  await here.keep(definition, exchanged)
  await end()
  t.ok((await Promise.all(waiting)).every((each) => each !== undefined && 'tokens' in each))

  // Whoever comes while another call has looked already waits for what was begun since.
  const later = { tenant: tenantId('acme'), hash: 'h..later' } as never
  const { promise, resolve } = Promise.withResolvers<void>()
  state.held = promise
  const reads = state.reads
  const first = there.find(later, () => true, signal)
  await until('it has looked', () => state.reads > reads)
  const endLater = await here.begin(later)
  const second = there.find(later, () => true, signal)
  resolve()
  t.equal(await first, undefined, 'nobody was at it')
  await here.keep(later, exchanged)
  await endLater()
  t.same(await second, exchanged)
})

t.test('nobody waits for a process that has ended in the middle, nor longer than the call itself', async (t) => {
  const { store, here, there } = await twoProcesses(t)
  const definition = { tenant: tenantId('acme'), hash: 'h..c' } as never
  const { signal } = new AbortController()
  const find = (own = signal) => there.find(definition, () => true, own)
  t.equal(await find(), undefined, 'nobody is at it')

  const end = await here.begin(definition)
  const controller = new AbortController()
  const cancelled = find(controller.signal)
  const waiting = find()
  controller.abort()
  t.equal(await cancelled, undefined)
  const exchanged = { tokens: { accessToken: 'of ada' }, since: Date.now() }
  await here.keep(definition, exchanged)
  await end()
  t.same(await waiting, exchanged)
  t.equal(await there.find({ tenant: tenantId('acme'), hash: 'h..another' } as never, () => true, signal), undefined)

  const ended = { tenant: tenantId('acme'), hash: 'h..ended' } as never
  await store.set(exchangeTurnKey('acme', 'h..ended'), 'of a process that was killed', { ttlMs: 300 })
  t.equal(await there.find(ended, () => true, signal), undefined)
})
