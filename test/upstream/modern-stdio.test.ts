// A server of 2026-07-28 over stdio: exactly what it is written, and what of its one channel belongs to whom.

import t, { type Test } from 'tap'
import {
  callOf,
  handClock,
  handshake,
  never,
  realClock,
  recordingClient,
  recordingEvents,
  stdioDefinition,
  testConnector,
  type RecordingClient,
  until
} from '../kit/connector.ts'
import type { Notification } from '../../src/protocol/messages.ts'

type Json = Record<string, unknown>

/**
 * Says on standard error what it was written. Answers `tools/call` by the messages under `emit`, with the id of the
 * request in place of "ID" and that of the last listen request in place of "LISTEN"; `listen` is answered by what is
 * under `emit` of its filter.
 */
const program = `
let listen = 0
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  process.stderr.write('got ' + line + '\\n')
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  if (method === 'subscriptions/listen') listen = id
  if (method === 'server/discover') return console.log(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } }))
  const emit = method === 'subscriptions/listen' ? params.notifications.emit ?? [] : params.arguments.emit ?? []
  for (const each of emit) console.log(JSON.stringify({ jsonrpc: '2.0', ...each }).replaceAll('"ID"', JSON.stringify(id)).replaceAll('"LISTEN"', JSON.stringify(listen)))
  if (params.arguments?.exit !== undefined) setImmediate(() => process.exit(params.arguments.exit))
})`

async function open(t: Test, isolation: 'session' | 'principal' | 'shared' = 'session') {
  const hands = handClock()
  // Its sense of now can be moved, while timers run in real time.
  const work = testConnector({ clock: { now: hands.now, timer: realClock.timer } })
  const events = recordingEvents()
  const upstream = await work.pool.acquire(
    stdioDefinition({}, { args: ['-e', program], era: 'modern', isolation }),
    'one',
    handshake,
    events
  )
  t.teardown(() => upstream.close())
  const lines = (): Json[] =>
    work.logged.flatMap(({ stderr }) =>
      typeof stderr === 'string' && stderr.startsWith('got ') ? [JSON.parse(stderr.slice(4)) as Json] : []
    )
  const emit = (messages: readonly object[], client: RecordingClient = modern()) =>
    upstream.request(callOf('any', { emit: messages }), client, never)
  return { ...work, events, upstream, lines, emit, advance: hands.advance }
}

const modern = (extras: object = {}): RecordingClient => ({ ...recordingClient(), era: 'modern', ...extras })
const done = { id: 'ID', result: { resultType: 'complete' } }
const log = (data: unknown): object => ({ method: 'notifications/message', params: { level: 'info', data } })
const onStream = (method: string, id: unknown = 'LISTEN', params: object = {}): object => ({
  method,
  params: { ...params, _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
})
const acknowledged = 'notifications/subscriptions/acknowledged'
const changed = 'notifications/tools/list_changed'
const methods = (notified: readonly Notification[]): string[] => notified.map(({ method }) => method)

t.test('every line is a request in its envelope, and a cancelled one is told', async (t) => {
  const { upstream, lines, emit } = await open(t)
  await emit([done])
  const stop = new AbortController()
  const call = upstream.request(
    callOf('any', {}, { progressToken: 'mine' }),
    modern({ capabilities: { roots: {} }, logLevel: 'error' }),
    stop.signal
  )
  await until(() => lines().length === 3, 'it is sent')
  stop.abort('changed my mind')
  await t.rejects(call, { code: 'cancelled' })
  await until(() => lines().length === 4, 'it is told')
  const envelope = (capabilities: object) => ({
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': handshake.clientInfo,
    'io.modelcontextprotocol/clientCapabilities': capabilities
  })
  t.same(lines(), [
    { jsonrpc: '2.0', id: 1, method: 'server/discover', params: { _meta: envelope({}) } },
    {
      jsonrpc: '2.0',
      id: 2,
      method: 'tools/call',
      params: { name: 'any', arguments: { emit: [done] }, _meta: envelope({}) }
    },
    {
      jsonrpc: '2.0',
      id: 3,
      method: 'tools/call',
      params: {
        name: 'any',
        arguments: {},
        _meta: { ...envelope({ roots: {} }), progressToken: 3, 'io.modelcontextprotocol/logLevel': 'error' }
      }
    },
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 3, reason: 'changed my mind' } }
  ])
})

t.test('requests of the server are ignored with a complaint, and not answered', async (t) => {
  const { lines, emit, events, logged } = await open(t)
  await emit([{ id: 1, method: 'ping' }, { id: 'q', method: 'elicitation/create', params: {} }, done])
  await emit([done])
  await until(() => lines().length >= 3, 'what it wrote is seen')
  t.equal(lines().length, 3)
  t.same(events.asked, [])
  t.equal(logged.filter(({ msg }) => msg.includes('of which its revision has none')).length, 2)
})

t.test('on a connection of several callers a log message belongs to no caller', async (t) => {
  for (const [isolation, heard] of [
    ['session', 1],
    ['principal', 1],
    ['shared', 0]
  ] as const) {
    const { emit } = await open(t, isolation)
    const curious = modern({ logLevel: 'debug' })
    await emit([log('one'), done], curious)
    t.equal(curious.notified.length, heard, isolation)
  }
})

t.test('a log message goes to the only request in flight, else to none', async (t) => {
  const { upstream, emit, advance, events } = await open(t)
  upstream.request({ method: 'subscriptions/listen', params: { notifications: {} } }, modern(), never).catch(() => {}) // A stream is not what it is about.
  const [curious, other, third] = [1, 2, 3].map(() => modern({ logLevel: 'debug' })) as [
    RecordingClient,
    RecordingClient,
    RecordingClient
  ]
  const stop = new AbortController()
  const open1 = upstream.request(callOf('any'), curious, stop.signal)
  open1.catch(() => {})
  await emit([log('one'), done])
  await emit([log('two'), done], other)
  t.same([curious.notified.length, other.notified.length], [0, 0], 'it may be about either')
  stop.abort()
  await emit([log('three'), done], third)
  t.equal(third.notified.length, 0, 'it may be about the one that was given up')
  advance(11_000)
  await emit([log('four'), done], third)
  t.equal(third.notified.length, 1)
  t.same(events.notifications, [])
})

t.test('what is on the channel belongs to the stream whose id it bears', async (t) => {
  const { upstream, emit, events } = await open(t)
  const [one, two] = [modern(), modern()]
  const listen = (client: RecordingClient, emit: object[]) => {
    const stream = upstream.request(
      { method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true, emit } } },
      client,
      never
    )
    stream.catch(() => {})
    return stream
  }
  const first = listen(one, [
    onStream(changed),
    onStream(acknowledged),
    onStream(acknowledged),
    onStream(changed),
    onStream('notifications/progress'),
    onStream('notifications/message'),
    onStream(changed, 'other'),
    { method: changed }
  ])
  await until(() => one.notified.length === 2, 'it is acknowledged')
  await emit([done])
  t.same(
    one.notified,
    [
      { method: acknowledged, params: {} },
      { method: changed, params: {} }
    ],
    'nothing ahead of it, nothing twice, nothing that was not asked for'
  )
  const second = listen(two, [onStream(acknowledged)])
  await until(() => two.notified.length === 1, 'so is the other')
  await emit([onStream(changed, 2), onStream(changed), onStream(changed, '4'), onStream(changed, 99), done])
  t.same([methods(one.notified).length, methods(two.notified).length], [3, 2])
  await emit([
    { method: 'notifications/cancelled', params: { requestId: 'LISTEN' } },
    { id: 'LISTEN', result: { resultType: 'complete' } },
    done
  ])
  t.same(await second, { resultType: 'complete' }, 'ended by a cancellation, and then by its result')
  await emit([
    {
      id: 2,
      result: { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': 2, 'acme/kept': 1 } }
    },
    done
  ])
  t.same(await first, { resultType: 'complete', _meta: { 'acme/kept': 1 } })
  t.same([events.changed, events.notifications], [[], []])
})

t.test('a process that ends loses its calls and streams, and is the end of the connection', async (t) => {
  const { upstream, events, supervisor } = await open(t)
  const stream = upstream.request({ method: 'subscriptions/listen', params: { notifications: {} } }, modern(), never)
  const subscription = upstream.request(
    { method: 'resources/subscribe', params: { uri: 'a:b' } },
    recordingClient(),
    never
  )
  const call = upstream.request(callOf('any', { exit: 3 }), modern(), never)
  const lost = { code: 'upstream_lost', data: { outcome: 'unknown' } }
  await Promise.all([t.rejects(stream, lost), t.rejects(subscription, lost), t.rejects(call, lost)])
  t.equal(events.ended.length, 1)
  await t.rejects(upstream.request(callOf('any'), modern(), never), { code: 'upstream_unavailable' })
  t.equal(supervisor.count(), 0)
})

const older = { code: -32022, message: 'no', data: { supported: ['2025-11-25'], requested: '2026-07-28' } }

t.test(
  '-32022 with older revisions only retires the process: what is in flight goes on, and then it ends',
  async (t) => {
    const { upstream, emit, events, supervisor } = await open(t)
    const stop = new AbortController()
    const call = upstream.request(callOf('any'), modern(), stop.signal)
    let over = false
    call.catch(() => {
      over = true
    })
    await t.rejects(
      upstream.request(
        { method: 'prompts/get', params: { name: 'any', arguments: { emit: [{ id: 'ID', error: older }] } } },
        modern(),
        never
      ),
      { code: 'upstream_unavailable', message: /not executed/ }
    )
    t.equal(events.ended.length, 1)
    await t.rejects(emit([done]), { code: 'upstream_unavailable' }, 'it takes no new calls')
    t.same([over, supervisor.count()], [false, 1])
    stop.abort()
    await t.rejects(call, { code: 'cancelled' })
    await until(() => supervisor.count() === 0, 'it ends')
    t.equal(events.ended.length, 1)
  }
)

for (const code of [-32020, -32022]) {
  t.test(`${code} for a call proves nothing over stdio: it may be what the tool was told`, async (t) => {
    const { emit, events, lines } = await open(t)
    await t.rejects(emit([{ id: 'ID', error: { ...older, code } }]), {
      code: 'upstream_protocol',
      message: /unknown/,
      data: { outcome: 'unknown' }
    })
    t.match(await emit([done]), { resultType: 'complete' }, 'the connection goes on')
    await until(() => lines().length >= 3, 'what it wrote is seen')
    t.same([lines().length, events.ended], [3, []])
  })
}

t.test(
  'a tool whose annotation is invalid is listed without it, since no header is made of arguments here',
  async (t) => {
    const { upstream } = await open(t)
    const tool = (name: string, header: string) => ({
      name,
      inputSchema: { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': header } } }
    })
    const { tools } = await upstream.request(
      {
        method: 'tools/list',
        params: {
          arguments: { emit: [{ id: 'ID', result: { tools: [tool('good', 'Good'), tool('bad', 'not good'), 7] } }] }
        }
      },
      modern(),
      never
    )
    t.same(tools, [
      tool('good', 'Good'),
      { name: 'bad', inputSchema: { type: 'object', properties: { a: { type: 'string' } } } },
      7
    ])
  }
)
