// How calls end that legacy upstreams have parked: with their hour, with what they wait at, or with an accident. Nobody
// is told to send again what may have been done.

import t from 'tap'
import { type JsonObject, type Request, type Result, RpcError } from '../../src/protocol/messages.ts'
import type { Client } from '../../src/protocol/seams.ts'
import { until } from '../kit/until.ts'
import { type Asking, modernSetup } from './modern-kit.ts'
import { able, aborted, accepted, answersTo, atRest, called, elicit, next, old, params, single } from './parking-kit.ts'

const unknown = { code: 'invalid_state', data: { outcome: 'unknown' } }
const minute = 60_000

/** Asks for ever, and says how it ended. */
function endless(): {
  readonly told: unknown[]
  answer(request: Request, client: Client, signal: AbortSignal): Promise<Result>
} {
  const told: unknown[] = []
  return {
    told,
    async answer(_request, client, signal) {
      for (;;) {
        const { action } = (await elicit(client)) as JsonObject
        told.push(action)
        if (action !== 'accept') break
      }
      await aborted(signal)
      told.push('cancelled')
      throw new Error('cancelled')
    }
  }
}

t.test('however often it is answered, a call that asks for ever is given up after an hour', async (t) => {
  const server = endless()
  const setup = await modernSetup(t, { one: old(server.answer) }, single)
  let asked = await called(setup, setup.call('tools/call', params, able))
  for (let n = 0; n < 6; n++) {
    setup.later(9 * minute)
    asked = await next(setup, asked)
  }
  t.same(
    server.told,
    Array.from({ length: 6 }, () => 'accept')
  )
  setup.later(6 * minute)
  await until('the cancel', () => {
    setup.clock.move(1)
    return server.told.includes('cancelled')
  })
  t.same(server.told.slice(6), ['cancel', 'cancelled'])
  await t.rejects(next(setup, asked), { ...unknown, message: /for an hour/ })
  t.match(
    await called(setup, setup.call('tools/call', params, able)),
    { resultType: 'input_required' },
    'and its connection is free'
  )
})

/** Asks, and after each answer waits until it may go on. */
function gated(): { readonly go: Array<() => void>; answer(request: Request, client: Client): Promise<Result> } {
  const go: Array<() => void> = []
  return {
    go,
    async answer(_request, client) {
      const got: unknown[] = []
      for (let n = 0; n < 2; n++) {
        got.push(await elicit(client))
        await new Promise<void>((resolve) => {
          go.push(resolve)
        })
      }
      return { got }
    }
  }
}

t.test('also while its client waits for it', async (t) => {
  const signals: AbortSignal[] = []
  const answer = async (_request: Request, client: Client, signal: AbortSignal): Promise<Result> => {
    signals.push(signal)
    await elicit(client)
    await aborted(signal)
    throw new Error('cancelled')
  }
  const setup = await modernSetup(t, { one: old(answer) }, single)
  const asked = await called(setup, setup.call('tools/call', params, able))
  const running = setup.call(
    'tools/call',
    { ...params, requestState: asked['requestState'], inputResponses: answersTo(asked) },
    able
  )
  running.catch(() => {}) // Looked at below.
  await atRest()
  setup.later(59 * minute)
  t.equal(signals[0]?.aborted, false)
  setup.later(minute)
  await t.rejects(running, { ...unknown, message: /for an hour/ })
  setup.clock.move(1)
  t.equal(signals[0]?.aborted, true)
})

t.test('what waits for a client that a reload has shut out is given up, and what waits elsewhere is not', async (t) => {
  const server = endless()
  const setup = await modernSetup(
    t,
    { one: old(server.answer) },
    { endpoints: { ...single.endpoints, other: single.endpoints.default } }
  )
  const there: Asking = { ...able, endpoint: 'other' }
  const [here, elsewhere] = [
    await called(setup, setup.call('tools/call', params, able)),
    await called(setup, setup.call('tools/call', params, there))
  ]
  setup.takeAway()
  setup.clock.move(1)
  await until('the cancel', () => server.told.length === 2)
  t.same(server.told, ['cancel', 'cancelled'])
  await t.rejects(next(setup, here), { ...unknown, message: /taken away or replaced/ })
  t.match(await next(setup, elsewhere, undefined, there), { resultType: 'input_required' })
})

t.test('what runs at that time comes to its end, and asks nobody any more', async (t) => {
  const { go, answer } = gated()
  const setup = await modernSetup(t, { one: old(answer) }, single)
  const asked = await called(setup, setup.call('tools/call', params, able))
  const running = setup.call(
    'tools/call',
    { ...params, requestState: asked['requestState'], inputResponses: answersTo(asked) },
    able
  )
  const gathered = setup.call('tools/call', { name: 'x', arguments: {} }, able)
  await until('the first one runs', () => go.length === 1)
  await atRest()
  setup.takeAway()
  go.shift()?.()
  setup.clock.move(100)
  await until('both have been turned away', () => go.length === 2)
  for (const on of go.splice(0)) on()
  t.match(await running, { resultType: 'complete', got: [accepted, { action: 'cancel' }] })
  await until('the other one goes on', () => go.length === 1)
  go.shift()?.()
  t.match(await gathered, { resultType: 'complete', got: [{ action: 'cancel' }, { action: 'cancel' }] })
})

t.test('an outcome that cannot be kept or told ends its call, and nothing else', async (t) => {
  let settle: (result: Result) => void = () => {}
  const answer = (_request: Request, client: Client): Promise<Result> => {
    elicit(client).catch(() => {})
    return new Promise((resolve) => {
      settle = resolve
    })
  }
  const setup = await modernSetup(t, { one: old(answer) }, single)
  const asked = await called(setup, setup.call('tools/call', params, able))
  settle({ content: [1n] })
  await atRest()
  await t.rejects(next(setup, asked), unknown)
  const again = await called(setup, setup.call('tools/call', params, able))
  settle({ content: ['done'] })
  await atRest()
  t.match(await next(setup, again), { content: ['done'] })
})

t.test('an error of the upstream is an answer too, and counts as one', async (t) => {
  let settle: (error: unknown) => void = () => {}
  const answer = (_request: Request, client: Client): Promise<Result> => {
    elicit(client).catch(() => {})
    return new Promise((_resolve, reject) => {
      settle = reject
    })
  }
  const setup = await modernSetup(t, { one: old(answer) }, single)
  const small = { code: -1, message: 'no', data: { why: [1, 'x'] } }
  for (const [error, expected] of [
    [small, { name: 'RpcError', error: small }],
    [{ ...small, data: 'x'.repeat(1024 * 1024) }, unknown],
    [small, { name: 'RpcError' }]
  ] as const) {
    const asked = await called(setup, setup.call('tools/call', params, able))
    settle(new RpcError(error))
    await atRest()
    await t.rejects(next(setup, asked), expected)
  }
})
