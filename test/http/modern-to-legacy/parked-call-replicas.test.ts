// Two gateways on one Redis: a call that waits for input at one of them is taken up by a retry at the other, and ends
// with its process.

import t, { type Test } from 'tap'
import { keyOf } from '../../kit/acme-gateway.ts'
import { open } from '../../kit/client.ts'
import { gateway, type TestGateway } from '../../kit/gateway.ts'
import type { Json } from '../../kit/mcp-server.ts'
import { modernMessage } from '../../kit/modern-client.ts'
import {
  answersTo,
  serverRequests,
  replies,
  round,
  script,
  steps,
  textOf,
  type Round
} from '../../kit/parking-gateway.ts'
import { redis, type PrivateRedis } from '../../kit/redis.ts'
import { until } from '../../kit/until.ts'
import { startUpstream, type HttpUpstream } from '../../kit/upstream.ts'

interface Nodes {
  readonly one: TestGateway
  readonly two: TestGateway
  readonly upstream: HttpUpstream
  readonly store: PrivateRedis
  at(acme: TestGateway, params: Json, options?: Json): Promise<Round>
}

async function nodes(t: Test, drainMs = 500): Promise<Nodes> {
  const upstream = await startUpstream({ ...script, answers: 'sse' })
  t.teardown(() => upstream.close())
  const store = await redis(t)
  const options = {
    store: store.url,
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: {
      keys: [
        { name: 'ada', key: keyOf.ada },
        { name: 'bob', key: keyOf.bob }
      ]
    },
    limits: { drainMs }
  }
  return {
    one: await gateway(t, options),
    two: await gateway(t, options),
    upstream,
    store,
    at: (acme, params, more = {}) => round(acme.url(), 'tools/call', params, { token: keyOf.ada, ...more })
  }
}

const call = steps({ ask: [serverRequests.form] })
const withAnswers = ({ requestState, inputRequests }: Round, params: Json = call): Json => ({
  ...params,
  requestState,
  inputResponses: answersTo(inputRequests)
})
const refused = { result: undefined, error: { code: -32602, data: { reason: 'invalid_state' } } }

t.test('a retry at the other process finds the call, with its progress, its next round and its result', async (t) => {
  const { one, two, at } = await nodes(t)
  const long = steps(
    { progress: 1, ask: [serverRequests.form] },
    { progress: 2 },
    { progress: 3, ask: [serverRequests.sample, serverRequests.roots] },
    { progress: 4 }
  )
  const first = await at(one, long, { meta: { progressToken: 'a' } })
  const second = await at(two, withAnswers(first, long), { id: 2, meta: { progressToken: 'b' } })
  t.match(
    second.notifications.map(({ params }) => params),
    [
      { progressToken: 'b', progress: 2 },
      { progressToken: 'b', progress: 3 }
    ]
  )
  t.same(
    Object.values(second.inputRequests).map(({ method }) => method),
    ['sampling/createMessage', 'roots/list']
  )
  const third = await at(two, withAnswers(second, long), { id: 3, meta: { progressToken: 'c' } })
  t.match(
    third.notifications.map(({ params }) => params),
    [{ progressToken: 'c', progress: 4 }]
  )
  t.same(textOf(third.result), [replies.form, replies.sample, replies.roots])
  t.match(await at(one, withAnswers(second, long)), refused, 'used is used, at either')
  t.match(await at(two, withAnswers(second, long)), refused)
})

t.test('what is refused at the process of the call is refused at the other one', async (t) => {
  const { one, two, at, store } = await nodes(t)
  const parked = await at(one, call)
  const params = withAnswers(parked)
  t.match(await at(two, params, { token: keyOf.bob }), refused)
  t.match(await at(two, { ...params, arguments: { steps: [] } }), refused)
  t.match(await at(two, { ...params, requestState: `${parked.requestState}-TAMPERED` }), refused)
  const [key] = Object.keys(parked.inputRequests)
  t.match(await at(two, { ...params, inputResponses: { [String(key)]: { action: 'maybe' } } }), {
    error: { code: -32602, data: { reason: 'invalid_params' } }
  })
  t.match(
    (await at(two, { ...params, inputResponses: {} })).inputRequests,
    parked.inputRequests,
    'and what is missing is asked for again'
  )
  const again = await at(one, call)
  const both = await Promise.all([at(one, withAnswers(again)), at(two, withAnswers(again))])
  t.equal(both.filter(({ result }) => result !== undefined).length, 1, 'one of two at once')
  t.match(
    both.find(({ error }) => error !== undefined),
    refused
  )
  t.ok(store)
})

t.test('a client that leaves the other process while a round runs cancels it where it runs', async (t) => {
  const { one, two, at, upstream } = await nodes(t)
  const walk = steps({ ask: [serverRequests.form] }, { ask: [{ method: 'ping' }], progress: 1 }, { wait: true })
  const parked = await at(one, walk)
  const stop = new AbortController()
  const response = await open(two.url(), {
    method: 'POST',
    signal: stop.signal,
    ...modernMessage('tools/call', withAnswers(parked, walk), {
      token: keyOf.ada,
      meta: { progressToken: 1 },
      capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
    })
  })
  response.on('error', () => {})
  response.resume()
  await until('the round runs', () =>
    [...upstream.server.answers.values()].some(({ result }) => JSON.stringify(result) === '{}')
  )
  stop.abort()
  await until('the cancel', () => upstream.server.received.some(({ method }) => method === 'notifications/cancelled'))
  t.match(await at(two, withAnswers(parked, walk)), refused)
})

t.test(
  'a process that stops waits for clients whose calls are parked there, for as long as calls may take',
  async (t) => {
    const { one, two, at } = await nodes(t, 600_000)
    const [first, second] = [await at(one, call), await at(one, call)]
    const closed = one.close()
    const isClosed = (): Promise<boolean> =>
      round(one.url(), 'tools/list', {}).then(
        ({ status }) => status === 503,
        () => true
      )
    await until('it takes no requests any more', isClosed)
    t.same(textOf((await at(two, withAnswers(first))).result), [replies.form])
    t.same(textOf((await at(two, withAnswers(second))).result), [replies.form])
    await closed
  }
)

t.test('a process that is gone takes its calls with it, and the other one says so', async (t) => {
  const { one, two, at, upstream } = await nodes(t)
  const parked = await at(one, call)
  await one.close()
  await until(
    'the upstream was told',
    () =>
      upstream.server.received.some(({ method }) => method === 'notifications/cancelled') ||
      upstream.server.answers.size > 0
  )
  t.match(await at(two, withAnswers(parked)), {
    ...refused,
    error: { ...refused.error, message: /gone/, data: { outcome: 'unknown' } }
  })
  t.same(
    textOf((await at(two, withAnswers(await at(two, call)))).result),
    [replies.form],
    'it serves the same request anew'
  )
})

t.test(
  'while the store is away a call can be taken up where it waits, and elsewhere it can be tried again later',
  async (t) => {
    const { one, two, at, store } = await nodes(t)
    const here = await at(one, call)
    const there = await at(two, call)
    store.pause()
    t.same(textOf((await at(one, withAnswers(here))).result), [replies.form])
    t.match(await at(one, withAnswers(there)), { status: 503, error: { data: { reason: 'unavailable' } } })
    store.resume()
    const result = await until('the store is back', async () => {
      const { result, error } = await at(one, withAnswers(there))
      return error?.data['reason'] === 'unavailable' ? undefined : result
    })
    t.same(textOf(result), [replies.form])
  }
)

t.test('a gateway that was started again on its file knows its states, and that their calls are gone', async (t) => {
  const upstream = await startUpstream({ ...script, answers: 'sse' })
  t.teardown(() => upstream.close())
  const options = {
    store: `file:${t.testdir()}/gatehouse.db`,
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } }
  }
  const before = await gateway(t, options)
  const parked = await round(before.url(), 'tools/call', call)
  await before.close()
  const after = await gateway(t, options)
  t.match(await round(after.url(), 'tools/call', withAnswers(parked)), {
    ...refused,
    error: { ...refused.error, message: /gone/ }
  })
  t.match(await round(after.url(), 'tools/call', { ...withAnswers(parked), requestState: `${parked.requestState}x` }), {
    ...refused,
    error: { ...refused.error, message: /not one that was given/ }
  })
})
