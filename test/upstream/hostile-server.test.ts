// Servers that flood and forget, on a clock that stands still.

import t from 'tap'
import { boundedError } from '../../src/upstream/rpc/errors.ts'
import { createRestartDelay } from '../../src/upstream/rpc/restart-delay.ts'
import {
  callOf,
  handClock,
  handshake,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  testConnector,
  until
} from '../kit/connector.ts'
import { serverRequest, testRpcClient } from '../kit/rpc-client.ts'
import { isCall, isMethod, startUpstream } from '../kit/upstream.ts'

const settled = () => new Promise(setImmediate)
const relatedTask = 'io.modelcontextprotocol/related-task'
const line = { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'of a finished call' } }

t.test(
  'on a connection of several clients, what names no call reaches no client, be there only one call',
  async (t) => {
    for (const exclusive of [true, false]) {
      const { rpc, call, events } = testRpcClient(undefined, async () => ({ action: 'decline' }), exclusive)
      const client = recordingClient(async () => ({ action: 'accept' }))
      void call(client)
      rpc.receive(line)
      rpc.receive(serverRequest('q'))
      await settled()
      const [its, owners] = exclusive ? [1, 0] : [0, 1]
      t.same([client.notified.length, client.asked.length], [its, its], `exclusive: ${exclusive}`)
      t.same([events.notifications.length, events.asked.length], [owners, owners])
      rpc.receive(line, 1)
      t.equal(client.notified.length, its + 1, 'on the stream of its own call, it hears')
    }
  }
)

t.test('outside of calls only methods that are known pass', (t) => {
  const { rpc, events } = testRpcClient()
  for (const method of [
    'notifications/secret',
    'x',
    'tools/call',
    'notifications/message',
    'notifications/resources/updated',
    'notifications/tasks/status',
    'notifications/elicitation/complete'
  ]) {
    rpc.receive({ jsonrpc: '2.0', method, params: {} })
  }
  t.same(
    events.notifications.map(({ method }) => method),
    [
      'notifications/message',
      'notifications/resources/updated',
      'notifications/tasks/status',
      'notifications/elicitation/complete'
    ]
  )
  t.end()
})

t.test('a flood outside of calls costs the server its messages', (t) => {
  const { rpc, events, clock, logged } = testRpcClient()
  const updated = { jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: 'a:b' } }
  for (let n = 0; n < 100_000; n++) rpc.receive(updated)
  t.equal(events.notifications.length, 1_000)
  t.ok(logged.length < 60)
  clock.advance(1_000)
  rpc.receive(updated)
  t.equal(events.notifications.length, 1_001, 'later ones pass again')
  t.end()
})

t.test('warnings about one connection are counted once they are too many', (t) => {
  const { rpc, clock, logged } = testRpcClient()
  for (let n = 0; n < 10_000; n++) rpc.receive(n % 2 === 0 ? 1 : [])
  t.equal(logged.length, 50)
  clock.advance(1_000)
  rpc.receive(1)
  t.match(logged.slice(50), [{ warnings: 9_950 }, { msg: /not a JSON object/ }])
  for (let n = 0; n < 100; n++) rpc.receive(1)
  rpc.end(new Error('over'))
  t.match(logged.at(-1), { warnings: 81 }, 'the rest is told at the end')
  t.end()
})

t.test('a question about a task outlives the call that brought it', async (t) => {
  for (const task of [true, false]) {
    const { rpc, call, answersTo } = testRpcClient()
    const answer = Promise.withResolvers<unknown>()
    const result = call(recordingClient(() => answer.promise))
    rpc.receive(
      serverRequest('q', 'elicitation/create', {
        message: 'Sure?',
        ...(task && { _meta: { [relatedTask]: { taskId: 't' } } })
      }),
      1
    )
    rpc.receive({ jsonrpc: '2.0', id: 1, result: {} }, 1)
    await result
    answer.resolve({ action: 'accept' })
    await settled()
    t.match(answersTo('q'), task ? [{ result: { action: 'accept' } }] : [{ error: {} }])
  }
})

t.test('of an error of the server only what JSON-RPC knows is passed on', (t) => {
  const error = { code: -1, message: 'no', data: { why: 'x' }, stack: 'y'.repeat(1_000_000) }
  t.same(boundedError(error), { code: -1, message: 'no', data: { why: 'x' } })
  t.same(boundedError({ ...error, data: 'z'.repeat(10_000) }), { code: -1, message: 'no' })
  t.equal(boundedError({ ...error, message: 'm'.repeat(10_000) }).message.length, 8_193)
  t.end()
})

t.test('new sessions come ever later while the server forgets each, at once again after a good one', async (t) => {
  const clock = handClock()
  const delay = createRestartDelay(clock)
  delay.sessionBegan()
  for (const wait of [0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]) {
    let due = false
    const turn = delay.wait(never).then(() => {
      due = true
    })
    if (wait > 0) {
      clock.advance(wait - 1)
      await settled()
      t.notOk(due, `not before ${wait} ms`)
      clock.advance(1)
    }
    await turn
    delay.sessionBegan()
  }
  const stop = new AbortController()
  const given = delay.wait(stop.signal)
  stop.abort()
  await given
  clock.advance(60_000)
  await delay.wait(never)
  t.pass('a session that lasted a minute was a good one')
})

async function still(t: { teardown(run: () => unknown): void }) {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const timers: number[] = []
  const hand = handClock()
  const clock = {
    ...hand,
    timer: (ms: number, run: () => void) => {
      timers.push(ms)
      return hand.timer(ms, run)
    }
  }
  const events = recordingEvents()
  const shop = testConnector({ clock })
  const upstream = await shop.connector.connect(httpDefinition(peer.url), handshake, events)
  t.teardown(() => {
    upstream.destroy(new Error('the test is over'))
  })
  return {
    peer,
    upstream,
    clock,
    timers,
    ...shop,
    call: () => upstream.request(callOf('echo'), recordingClient(), never)
  }
}

t.test('a server that forgets its sessions does not decide how often we connect', async (t) => {
  const { peer, clock, timers, call } = await still(t)
  const handshakes = () => peer.seen.filter(isMethod('initialize')).length
  peer.sessions.clear()
  await call()
  t.equal(handshakes(), 2, 'the first time at once')
  peer.sessions.clear()
  timers.length = 0
  const waiting = call()
  await until(() => timers.includes(1_000), 'it waits')
  t.equal(handshakes(), 2)
  clock.advance(1_000)
  t.match(await waiting, { content: [{}] }, 'and is carried out once there is a session')
  t.equal(handshakes(), 3)
})

t.test('however much comes on a stream after its answer, one timer waits for its end', async (t) => {
  const { peer, timers, call } = await still(t)
  let ended = false
  peer.override(isCall('echo'), (response, seen) => {
    response.on('close', () => {
      ended = true
    })
    const answer = JSON.stringify({ jsonrpc: '2.0', id: seen.message?.['id'], result: { content: [] } })
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .write(`data: ${answer}\n\n${`data: ${JSON.stringify(line)}\n\n`.repeat(500)}`)
  })
  timers.length = 0
  await call()
  await until(() => timers.includes(1_000), 'the wait has begun')
  t.notOk(ended)
  t.equal(timers.filter((ms) => ms === 1_000).length, 1)
})

t.test('messages name the origin of an upstream, never its path', async (t) => {
  const peer = await startUpstream()
  t.teardown(peer.close)
  peer.override(
    () => true,
    (response) => {
      response.writeHead(404).end()
    },
    100
  )
  const { connector } = testConnector()
  for (const transport of ['streamable', 'sse', 'auto'] as const) {
    const url = `${new URL(peer.url).origin}/s/path-token-1/mcp?key=path-token-2`
    const error = (await connector
      .connect(httpDefinition(url, { transport }), handshake, recordingEvents())
      .catch((error: unknown) => error)) as Error
    t.match(error, { code: 'upstream_protocol', message: new RegExp(new URL(peer.url).origin) })
    t.notMatch(error.message, 'path-token')
  }
})
