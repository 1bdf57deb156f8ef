// The exchange on a clock that stands still: time limits, floods, and questions that nobody can answer.

import t from 'tap'
import { createExchange, nobody } from '../../src/upstream/exchange.ts'
import { callOf, handClock, recordingClient, recordingEvents, until, workshop } from '../kit/connection.ts'
import { upstreamName } from '../../src/protocol/ids.ts'
import type { ClientCapabilities, JsonObject } from '../../src/protocol/messages.ts'
import type { Client } from '../../src/protocol/seams.ts'

const never = new AbortController().signal

function build (declared: ClientCapabilities = { elicitation: {} }) {
  const clock = handClock()
  const events = recordingEvents()
  const sent: JsonObject[] = []
  const dropped: number[] = []
  const record = (body: string): void => { sent.push(JSON.parse(body) as JsonObject) }
  const { log, logged } = workshop()
  const exchange = createExchange({
    name: upstreamName('files'), timeoutMs: 60_000, declared, events, clock, log, batches: () => false,
    carrier: { request: (_id, body) => record(body), post: record, drop: (id) => { dropped.push(id) } }
  })
  const call = (client: Client = recordingClient(), meta?: object) => exchange.request(callOf('any', {}, meta), client, never)
  return { clock, events, sent, dropped, exchange, call, logged }
}

const progress = (progressToken: unknown, n: number) => ({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: n } })
const question = (id: unknown) => ({ jsonrpc: '2.0', id, method: 'elicitation/create', params: { message: 'who?' } })

t.test('silence ends a call after its time, whatever others hear', async (t) => {
  const { clock, exchange, sent, dropped, call } = build()
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

t.test('while the client is being asked, it is not the upstream that is silent', async (t) => {
  const { clock, exchange, call } = build()
  const answer = Promise.withResolvers<unknown>()
  const result = call(recordingClient(() => answer.promise))
  exchange.receive(question('q'))
  clock.advance(600_000)
  answer.resolve({ action: 'decline' })
  await new Promise(setImmediate)
  clock.advance(59_000)
  exchange.receive({ jsonrpc: '2.0', id: 1, result: { ok: true } })
  t.same(await result, { ok: true })
})

t.test('a question goes to the only call in flight, and to nobody where there are two or none', async (t) => {
  const { exchange, sent, call } = build()
  const clients = [recordingClient(async () => ({ action: 'accept' })), recordingClient(async () => ({ action: 'accept' }))]
  exchange.receive(question('none'))
  t.match(sent.at(-1), { id: 'none', error: { code: -32602 } })
  void call(clients[0])
  void call(nobody)
  exchange.receive(question(1))
  await until(() => sent.at(-1)?.['id'] === 1, 'it was answered')
  t.match(sent.at(-1), { id: 1, result: { action: 'accept' } })
  void call(clients[1])
  exchange.receive(question('two'))
  t.match(sent.at(-1), { id: 'two', error: { code: -32602 } })
  exchange.receive(question('own stream'), 3)
  await until(() => sent.at(-1)?.['id'] === 'own stream', 'it was answered')
  t.same(clients.map(({ asked }) => asked.length), [1, 1])
})

t.test('a question that the server withdraws is not answered any more', async (t) => {
  const { exchange, sent, call } = build()
  const answer = Promise.withResolvers<unknown>()
  void call(recordingClient(() => answer.promise))
  exchange.receive(question('q'))
  exchange.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q' } })
  answer.resolve({ action: 'accept' })
  await new Promise(setImmediate)
  t.same(sent.filter(({ id }) => id === 'q'), [])
})

t.test('a flood of questions is refused above a rate', async (t) => {
  const { exchange, sent, call } = build()
  const client = recordingClient(async () => ({ action: 'accept' }))
  void call(client)
  for (let n = 0; n < 1_000; n++) exchange.receive(question(`q${n}`))
  t.equal(client.asked.length, 20)
  t.equal(sent.filter(({ error }) => (error as { code?: number } | undefined)?.code === 429).length, 980)
})

t.test('a flood of progress loses its middle, never its end, and other calls nothing', async (t) => {
  const { exchange, call, logged } = build()
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
  const { exchange, call, events } = build()
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
  const { exchange, call, events } = build()
  const client = recordingClient()
  void call(client)
  exchange.receive({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:b' } })
  t.same(client.notified, [])
  t.same(events.notifications, [{ method: 'notifications/resources/updated', params: { uri: 'a:b' } }])
})

t.test('whatever comes in, receive does not throw', async (t) => {
  const { exchange, call } = build()
  const answered = t.rejects(call(), { code: 'upstream_protocol' }, 'an answer without a result ends its call')
  for (const odd of [null, 1, 'x', true, [], [[]], {}, { id: 1 }, { id: {}, result: {} }, { id: null, method: 'ping' }, { id: 1.5, method: 'ping' }, { method: 5 }, { method: 'notifications/progress' }, { method: 'notifications/cancelled', params: { requestId: {} } }, { id: 5, error: 'x' }, { method: '__proto__', params: [] }]) exchange.receive(odd)
  await answered
})

t.test('initialize is never cancelled at the server', async (t) => {
  const { exchange, sent } = build()
  const stop = new AbortController()
  const result = exchange.request({ method: 'initialize', params: {} }, nobody, stop.signal)
  stop.abort()
  await t.rejects(result, { code: 'cancelled' })
  t.equal(sent.length, 1)
})
