// The RPC client on a clock that stands still: timeouts, floods, and messages that belong to no call.

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { noClient } from '../../src/protocol/seams.ts'
import { callOf, never, recordingClient } from '../kit/connector.ts'
import { serverRequest, testRpcClient } from '../kit/rpc-client.ts'
import { until } from '../kit/until.ts'

const progress = (progressToken: unknown, n: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken, progress: n }
})

t.test('silence ends a call after its timeout, whatever the server sends for other calls', async (t) => {
  const { clock, rpc, sent, dropped, call } = testRpcClient()
  const quiet = call()
  const talkative = recordingClient()
  const lively = call(talkative, { progressToken: 'x' })
  const timedOut = t.rejects(quiet, { code: 'upstream_timeout', data: { outcome: 'unknown', upstream: 'files' } })
  clock.advance(40_000)
  rpc.receive(progress(2, 1))
  clock.advance(40_000)
  await timedOut
  t.match(sent.at(-1), { method: 'notifications/cancelled', params: { requestId: 1 } })
  t.same(dropped, [1])
  rpc.receive({ jsonrpc: '2.0', id: 2, result: { ok: true } })
  t.same(await lively, { ok: true })
  t.same(talkative.notified, [{ method: 'notifications/progress', params: { progressToken: 'x', progress: 1 } }])
})

t.test('a call ends after its longest time, whatever the server sends for it', async (t) => {
  const { clock, rpc, sent, call } = testRpcClient()
  const client = recordingClient()
  const lively = call(client, { progressToken: 'x' })
  for (let n = 1; n <= 61; n++) {
    clock.advance(59_000)
    rpc.receive(progress(1, n))
  }
  const later = call(recordingClient(), { progressToken: 'y' })
  rpc.receive(progress(2, 1))
  const ended = t.rejects(lively, { code: 'upstream_timeout', message: 'maxTimeoutMs', data: { outcome: 'unknown' } })
  clock.advance(59_000)
  rpc.receive(progress(1, 62))
  rpc.receive(progress(2, 2))
  await ended
  t.match(sent.at(-1), { method: 'notifications/cancelled', params: { requestId: 1 } })
  rpc.receive(progress(1, 63))
  t.equal(client.notified.length, 62, 'nothing comes after the end')
  rpc.receive({ jsonrpc: '2.0', id: 2, result: { ok: true } })
  t.same(await later, { ok: true }, 'each call has a time of its own')
})

t.test('a call whose server asks its client all the time ends after its longest time, too', async (t) => {
  const { clock, rpc, call } = testRpcClient()
  const asked = recordingClient(() => new Promise(() => {}))
  const ended = t.rejects(call(asked), { code: 'upstream_timeout', message: 'maxTimeoutMs' })
  rpc.receive(serverRequest('s'))
  clock.advance(3_599_000)
  const later = call()
  clock.advance(61_000)
  await ended
  await t.rejects(later, { code: 'upstream_timeout', message: 'sent nothing for 60 s' }, 'the control')
})

t.test('a long request that is given up while it is written is neither sent nor cancelled at the server', async (t) => {
  const { rpc, sent, dropped } = testRpcClient()
  const request = callOf('any', { text: '"'.repeat(1_000_000) })
  const caller = new AbortController()
  const givenUp = rpc.request(request, recordingClient(), caller.signal)
  caller.abort()
  await t.rejects(givenUp, { code: 'cancelled' })
  const waitedFor = rpc.request(request, recordingClient(), never)
  await until('the next one is sent', () => sent.length > 0)
  t.same([sent.map(({ id }) => id), dropped], [[2], []])
  rpc.receive({ jsonrpc: '2.0', id: 2, result: { ok: true } })
  t.same(await waitedFor, { ok: true })
})

t.test('a flood of progress loses its middle, never its end, and other calls nothing', async (t) => {
  const { rpc, call, logged } = testRpcClient()
  const flooded = recordingClient()
  const other = recordingClient()
  const result = call(flooded, { progressToken: 'f' })
  void call(other, { progressToken: 'o' })
  for (let n = 1; n <= 100_000; n++) rpc.receive(progress(1, n))
  rpc.receive(progress(2, 1))
  rpc.receive({ jsonrpc: '2.0', id: 1, result: {} })
  await result
  t.equal(flooded.notified.length, 2_001)
  t.equal(flooded.notified.at(-1)?.params?.['progress'], 100_000)
  t.equal(other.notified.length, 1)
  t.equal(logged.filter(({ msg }) => msg.includes('floods')).length, 1)
})

t.test('log messages on the stream of a finished call are dropped', async (t) => {
  const { rpc, call, events } = testRpcClient()
  const line = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'late' } }
  const client = recordingClient()
  const first = call(client)
  rpc.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
  await first
  rpc.receive(line, 1)
  t.same([client.notified, events.notifications], [[], []])
  rpc.receive(line)
  t.equal(events.notifications.length, 1, "on the connection's own stream it is the owner's")
})

t.test("resource updates are the owner's, even with a call in flight", async (t) => {
  const { rpc, call, events } = testRpcClient()
  const client = recordingClient()
  void call(client)
  rpc.receive({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:b' } })
  t.same(client.notified, [])
  t.same(events.notifications, [{ method: 'notifications/resources/updated', params: { uri: 'a:b' } }])
})

t.test('whatever comes in, receive does not throw', async (t) => {
  const { rpc, call } = testRpcClient()
  const answered = t.rejects(call(), { code: 'upstream_protocol' }, 'an answer without a result ends its call')
  for (const odd of [
    null,
    1,
    'x',
    true,
    [],
    [[]],
    {},
    { id: 1 },
    { id: {}, result: {} },
    { id: null, method: 'ping' },
    { id: 1.5, method: 'ping' },
    { method: 5 },
    { method: 'notifications/progress' },
    { method: 'notifications/cancelled', params: { requestId: {} } },
    { id: 5, error: 'x' },
    { method: '__proto__', params: [] }
  ])
    rpc.receive(odd)
  await answered
})

t.test('an abandoned call is remembered until the server answers it or the connection ends', async (t) => {
  const { clock, rpc, call } = testRpcClient()
  const given = async (): Promise<void> => {
    const stop = new AbortController()
    const result = call(undefined, undefined, stop.signal)
    stop.abort()
    await t.rejects(result, { code: 'cancelled' })
  }
  const answered = call()
  rpc.receive({ jsonrpc: '2.0', id: 1, result: {} })
  await answered
  t.equal(rpc.abandonedCalls(), undefined, 'an answered call was not abandoned')
  await given()
  const slow = call()
  clock.advance(60_000)
  await t.rejects(slow, { code: 'upstream_timeout' })
  let drained = false
  void rpc.abandonedCalls()?.then(() => {
    drained = true
  })
  rpc.receive({ jsonrpc: '2.0', id: 2, result: {} })
  await setImmediate()
  t.notOk(drained, 'one is left')
  rpc.receive({ jsonrpc: '2.0', id: 3, error: { code: 1, message: 'late' } })
  await setImmediate()
  t.ok(drained)
  t.equal(rpc.abandonedCalls(), undefined)
  await given()
  const left = rpc.abandonedCalls()
  t.ok(left)
  rpc.end(new Error('gone'))
  await left
  t.equal(rpc.abandonedCalls(), undefined)
})

t.test('initialize is never cancelled at the server', async (t) => {
  const { rpc, sent } = testRpcClient()
  const stop = new AbortController()
  const result = rpc.request({ method: 'initialize', params: {} }, noClient, stop.signal)
  stop.abort()
  await t.rejects(result, { code: 'cancelled' })
  t.equal(sent.length, 1)
})

t.test('the handshake does not end by the timeout of calls', async (t) => {
  const { clock, rpc } = testRpcClient()
  const result = rpc.request({ method: 'initialize', params: {} }, noClient, never)
  clock.advance(600_000)
  rpc.receive({ jsonrpc: '2.0', id: 1, result: { late: true } })
  t.same(await result, { late: true })
})
