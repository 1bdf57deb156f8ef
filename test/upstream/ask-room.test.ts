// What servers ask is counted from when it comes until it has its answer, or nobody waits for one any more.

import t from 'tap'
import { RpcError } from '../../src/protocol/errors.ts'
import { tenantId, upstreamName } from '../../src/protocol/ids.ts'
import { relatedTask } from '../../src/protocol/tasks.ts'
import { createAskRooms } from '../../src/upstream/ask-room.ts'
import type { AskLimits } from '../../src/upstream/ask-room.ts'
import { createConnector } from '../../src/upstream/connect.ts'
import { createEgress } from '../../src/upstream/egress.ts'
import { nobody } from '../../src/upstream/exchange.ts'
import { callOf, handshake, httpDefinition, realClock, recordingClient, recordingEvents, stdioDefinition, until, workshop } from '../kit/connection.ts'
import { question, stillExchange } from '../kit/exchange.ts'
import { startUpstream } from '../kit/upstream.ts'

const never = new AbortController().signal
const settled = () => new Promise(setImmediate)
const unanswered = () => recordingClient(() => new Promise(() => {}))
const kib = 1024
const roomy: AskLimits = { one: 4 * kib, connection: 100 * kib, upstream: 100 * kib, tenant: 100 * kib, all: 100 * kib }
const limited = (limits: Partial<AskLimits>) => createAskRooms({ ...roomy, ...limits })
/** Of one connection. */
const exchangeIn = (rooms = createAskRooms()) => stillExchange(undefined, undefined, true, rooms)
const heavy = (id: unknown, kibs: number) => question(id, 'elicitation/create', { message: 'x'.repeat(kibs * kib - 512) })
const warnings = (logged: ReadonlyArray<{ level: number, msg: string }>) => logged.filter(({ level }) => level === 40).map(({ msg }) => msg)

t.test('one that is too large is refused, says why, and leaves everything as it was', async (t) => {
  const { exchange, call, answersTo, logged, rooms } = exchangeIn(limited({}))
  const client = unanswered()
  void call(client)
  const values = (count: number) => ({ message: 'who?', junk: Array.from({ length: count }, () => ({})) })
  exchange.receive(heavy('text', 5), 1)
  exchange.receive(question('values', 'elicitation/create', values(100)), 1)
  for (const id of ['text', 'values']) t.match(answersTo(id), [{ error: { code: -32602, message: /too large .* 4096 bytes/ } }])
  t.equal(client.asked.length, 0)
  t.equal(rooms.size, 0)
  t.same(warnings(logged), Array(2).fill('refused a question of the upstream: it is too large'))
  exchange.receive(heavy('smaller', 4), 1)
  exchange.receive(question('fewer', 'elicitation/create', values(50)), 1)
  t.equal(client.asked.length, 2, 'others are asked')
  t.equal(rooms.size, 4)
  exchange.receive({ jsonrpc: '2.0', id: 1, result: { ok: true } }, 1)
  await settled()
  t.equal(rooms.size, 0)
})

for (const limit of ['connection', 'upstream', 'tenant', 'all'] as const) {
  t.test(`many that wait are refused where there is no room left: ${limit}`, async (t) => {
    const rooms = limited({ [limit]: 9 * kib })
    const { exchange, call, answersTo, logged } = exchangeIn(rooms)
    const client = unanswered()
    void call(client)
    for (const id of [1, 2, 3]) exchange.receive(heavy(id, 4), 1)
    t.equal(client.asked.length, 2)
    t.match(answersTo(3), [{ error: { code: 429, message: /Too much waits/ } }])
    t.same(warnings(logged), ['refused a question of the upstream: too much waits for clients to answer already'])
    const widths = { connection: 0, upstream: 1, tenant: 2, all: 3 }
    for (const [at, [tenant, name]] of ([['acme', 'files'], ['acme', 'other'], ['other', 'files']] as const).entries()) {
      const letGo = rooms.open({ tenant: tenantId(tenant), name: upstreamName(name) }).take(4 * kib)
      t.equal(letGo !== undefined, at >= widths[limit], `${tenant}/${name}`)
      letGo?.()
    }
    exchange.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
    exchange.receive(heavy(4, 4), 1)
    t.equal(client.asked.length, 3, 'there is room again')
  })
}

t.test('however it ends, its room is given back', async (t) => {
  const reply = { jsonrpc: '2.0', id: 1, result: {} }
  type Still = ReturnType<typeof exchangeIn> & { readonly stop: AbortController, readonly answer: PromiseWithResolvers<unknown> }
  const ends: Record<string, (still: Still) => void> = {
    'an answer': ({ answer }) => answer.resolve({ action: 'accept' }),
    'an error of the client': ({ answer }) => answer.reject(new RpcError({ code: -1, message: 'no' })),
    'a fault inside': ({ answer }) => answer.reject(new Error('fault')),
    'the server withdraws it': ({ exchange }) => exchange.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q' } }),
    'its call is answered': ({ exchange }) => exchange.receive(reply, 1),
    'its call fails': ({ exchange }) => exchange.fail(1, new Error('broken')),
    'its call is cancelled': ({ stop }) => stop.abort(),
    'the server has forgotten it': ({ exchange }) => exchange.forget('the session is over'),
    'the connection ends': ({ exchange }) => exchange.end(new Error('gone'))
  }
  for (const [name, end] of Object.entries(ends)) {
    const still = exchangeIn()
    const answer = Promise.withResolvers<unknown>()
    const stop = new AbortController()
    still.call(recordingClient(() => answer.promise), undefined, stop.signal).catch(() => {})
    still.exchange.receive(question('q'), 1)
    t.equal(still.rooms.size, 4, 'it is counted')
    end({ ...still, stop, answer })
    await settled()
    t.equal(still.rooms.size, 0, name)
    answer.resolve({})
    await settled()
    t.equal(still.rooms.size, 0, 'once')
  }
})

t.test('that of a task outlives its call, and not its connection', async (t) => {
  const { exchange, call, rooms } = exchangeIn()
  const result = call(unanswered())
  exchange.receive(question('q', 'elicitation/create', { message: 'who?', _meta: { [relatedTask]: { taskId: 't' } } }), 1)
  exchange.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
  await result
  t.equal(rooms.size, 4)
  exchange.end(new Error('gone'))
  t.equal(rooms.size, 0)
})

t.test('nothing is counted where nobody is asked', async (t) => {
  const { exchange, call, rooms, events, sent } = stillExchange({ elicitation: {} }, () => new Promise(() => {}))
  void call(nobody)
  exchange.receive(question('undeclared', 'sampling/createMessage'))
  exchange.receive(question('ping', 'ping'))
  exchange.receive(question('late'), 99)
  await settled()
  t.equal(rooms.size, 0)
  exchange.receive(question('twice'))
  exchange.receive(question('twice'))
  exchange.receive({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'twice' } })
  t.equal(rooms.size, 0)
  exchange.receive({ jsonrpc: '2.0', id: 1, result: {} })
  exchange.end(new Error('gone'))
  const before = [events.asked.length, sent.length]
  exchange.receive(question('after the end'))
  t.same([events.asked.length, sent.length], before, 'nothing would withdraw it')
  t.equal(rooms.size, 0)
})

t.test('a flood of those that are refused holds nothing', async (t) => {
  const { clock, exchange, call, rooms } = exchangeIn(limited({ connection: 8 * kib }))
  const result = call(unanswered())
  for (let n = 0; n < 500; n++) {
    exchange.receive(heavy(`a${n}`, 4), 1)
    exchange.receive(heavy(`b${n}`, 6), 1)
    clock.advance(100)
  }
  exchange.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
  await result
  t.equal(rooms.size, 0)
})

function connectorIn (rooms: ReturnType<typeof createAskRooms>) {
  const { supervisor, log } = workshop()
  return createConnector({ supervisor, egress: createEgress(), clock: realClock, random: () => 0, log, askRooms: rooms })
}

t.test('a process that dies while its questions are open leaves nothing behind', async (t) => {
  const rooms = createAskRooms()
  const upstream = await connectorIn(rooms).connect(stdioDefinition(), { ...handshake, capabilities: { elicitation: {} } }, recordingEvents())
  t.teardown(() => upstream.close())
  const client = unanswered()
  const asking = t.rejects(upstream.request(callOf('elicit', { count: 3 }), client, never), { code: 'upstream_lost' })
  await until(() => client.asked.length === 3, 'the client is asked')
  t.equal(rooms.size, 4)
  await t.rejects(upstream.request(callOf('crash'), recordingClient(), never), { code: 'upstream_lost' })
  await asking
  t.equal(rooms.size, 0)
})

t.test('nor does a connection that is retired, once it has ended', async (t) => {
  const peer = await startUpstream({ answers: 'sse' })
  t.teardown(peer.close)
  const rooms = createAskRooms()
  const upstream = await connectorIn(rooms).connect(httpDefinition(peer.url), { ...handshake, capabilities: { elicitation: {} } }, recordingEvents())
  t.teardown(() => upstream.close())
  const client = unanswered()
  const stop = new AbortController()
  const asking = t.rejects(upstream.request(callOf('elicit'), client, stop.signal), { code: 'cancelled' })
  await until(() => client.asked.length === 1, 'the client is asked')
  peer.override(({ message }) => message?.['method'] === 'tools/call', (response, { message }) => {
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code: -32022, message: 'no' } }))
  })
  await t.rejects(upstream.request(callOf('echo'), recordingClient(), never), { code: 'upstream_unavailable' })
  t.equal(rooms.size, 4, 'what is in flight goes on')
  stop.abort()
  await asking
  t.equal(rooms.size, 0)
})

t.test('the connections of one process count together', async (t) => {
  const rooms = limited({ one: 4 * kib, tenant: 5 * kib })
  const connector = connectorIn(rooms)
  const made = await Promise.all(['one', 'two'].map((hash) => connector.connect(stdioDefinition({}, { hash }), { ...handshake, capabilities: { elicitation: {} } }, recordingEvents())))
  t.teardown(() => Promise.all(made.map((upstream) => upstream.close())))
  const [first, second] = made
  const client = unanswered()
  const asking = first?.request(callOf('elicit', { params: { message: 'x'.repeat(3 * kib) } }), client, never)
  asking?.catch(() => {})
  await until(() => client.asked.length === 1, 'the client is asked')
  t.match(await second?.request(callOf('elicit', { params: { message: 'x'.repeat(3 * kib) } }), recordingClient(async () => ({ action: 'accept' })), never), { content: [{ text: /429/ }] })
  t.match(await second?.request(callOf('elicit'), recordingClient(async () => ({ action: 'accept' })), never), { content: [{ text: /accept/ }] })
})
