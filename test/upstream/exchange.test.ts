// The exchange on a clock that stands still: time limits, floods, and what belongs to nobody.

import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { nobody } from '../../src/upstream/exchange.ts'
import { recordingClient } from '../kit/connection.ts'
import { stillExchange } from '../kit/exchange.ts'

const never = new AbortController().signal

const progress = (progressToken: unknown, n: number) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: n } })

t.test('silence ends a call after its time, whatever others hear', async (t) => {
  const { clock, exchange, sent, dropped, call } = stillExchange()
  const quiet = call()
  const talkative = recordingClient()
  const lively = call(talkative, { progressToken: 'x' })
  const timedOut = t.rejects(quiet, { code: 'upstream_timeout', data: { outcome: 'unknown', upstream: 'files' } })
  clock.advance(40_000)
  exchange.receive(progress(2, 1))
  clock.advance(40_000)
  await timedOut
  t.match(sent.at(-1), { method: 'notifications/cancelled', params: { requestId: 1 } })
  t.same(dropped, [1])
  exchange.receive({ jsonrpc: '2.0', id: 2, result: { ok: true } })
  t.same(await lively, { ok: true })
  t.same(talkative.notified, [{ method: 'notifications/progress', params: { progressToken: 'x', progress: 1 } }])
})

t.test('a flood of progress loses its middle, never its end, and other calls nothing', async (t) => {
  const { exchange, call, logged } = stillExchange()
  const flooded = recordingClient()
  const other = recordingClient()
  const result = call(flooded, { progressToken: 'f' })
  void call(other, { progressToken: 'o' })
  for (let n = 1; n <= 100_000; n++) exchange.receive(progress(1, n))
  exchange.receive(progress(2, 1))
  exchange.receive({ jsonrpc: '2.0', id: 1, result: {} })
  await result
  t.equal(flooded.notified.length, 2_001)
  t.equal(flooded.notified.at(-1)?.params?.['progress'], 100_000)
  t.equal(other.notified.length, 1)
  t.equal(logged.filter(({ msg }) => msg.includes('floods')).length, 1)
})

t.test('log messages on the stream of a finished call belong to nobody', async (t) => {
  const { exchange, call, events } = stillExchange()
  const line = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'late' } }
  const client = recordingClient()
  const first = call(client)
  exchange.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
  await first
  exchange.receive(line, 1)
  t.same([client.notified, events.notifications], [[], []])
  exchange.receive(line)
  t.equal(events.notifications.length, 1, 'on the connection\'s own stream it is the owner\'s')
})

t.test('resource updates are the owner\'s, even with a call in flight', async (t) => {
  const { exchange, call, events } = stillExchange()
  const client = recordingClient()
  void call(client)
  exchange.receive({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:b' } })
  t.same(client.notified, [])
  t.same(events.notifications, [{ method: 'notifications/resources/updated', params: { uri: 'a:b' } }])
})

t.test('whatever comes in, receive does not throw', async (t) => {
  const { exchange, call } = stillExchange()
  const answered = t.rejects(call(), { code: 'upstream_protocol' }, 'an answer without a result ends its call')
  for (const odd of [null, 1, 'x', true, [], [[]], {}, { id: 1 }, { id: {}, result: {} }, { id: null, method: 'ping' }, { id: 1.5, method: 'ping' }, { method: 5 }, { method: 'notifications/progress' }, { method: 'notifications/cancelled', params: { requestId: {} } }, { id: 5, error: 'x' }, { method: '__proto__', params: [] }]) exchange.receive(odd)
  await answered
})

t.test('what was given up is owed until the server answers it, or is gone', async (t) => {
  const { clock, exchange, call } = stillExchange()
  const given = async (): Promise<void> => {
    const stop = new AbortController()
    const result = call(undefined, undefined, stop.signal)
    stop.abort()
    await t.rejects(result, { code: 'cancelled' })
  }
  const answered = call()
  exchange.receive({ jsonrpc: '2.0', id: 1, result: {} })
  await answered
  t.equal(exchange.owed(), undefined, 'nothing is owed for what was answered')
  await given()
  const slow = call()
  clock.advance(60_000)
  await t.rejects(slow, { code: 'upstream_timeout' })
  let paid = false
  void exchange.owed()?.then(() => { paid = true })
  exchange.receive({ jsonrpc: '2.0', id: 2, result: {} })
  await setImmediate()
  t.notOk(paid, 'one is left')
  exchange.receive({ jsonrpc: '2.0', id: 3, error: { code: 1, message: 'late' } })
  await setImmediate()
  t.ok(paid)
  t.equal(exchange.owed(), undefined)
  await given()
  const left = exchange.owed()
  t.ok(left)
  exchange.end(new Error('gone'))
  await left
  t.equal(exchange.owed(), undefined)
})

t.test('initialize is never cancelled at the server', async (t) => {
  const { exchange, sent } = stillExchange()
  const stop = new AbortController()
  const result = exchange.request({ method: 'initialize', params: {} }, nobody, stop.signal)
  stop.abort()
  await t.rejects(result, { code: 'cancelled' })
  t.equal(sent.length, 1)
})

t.test('the handshake is not a call that may be too slow: it has a limit of its own', async (t) => {
  const { clock, exchange } = stillExchange()
  const result = exchange.request({ method: 'initialize', params: {} }, nobody, never)
  clock.advance(600_000)
  exchange.receive({ jsonrpc: '2.0', id: 1, result: { late: true } })
  t.same(await result, { late: true })
})
