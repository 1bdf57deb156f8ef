// Requests that a modern server refuses over HTTP: which refusals prove that nothing was executed, how much work they
// may cause, and that the refusal of one caller's request does not end the calls of others.

import t, { type Test } from 'tap'
import {
  callOf,
  handClock,
  handshake,
  httpDefinition,
  never,
  realClock,
  recordingClient,
  recordingEvents,
  testConnector,
  type RecordingClient,
  until
} from '../kit/connector.ts'
import { startModern, type ModernHttpOptions, type ModernSeen, type ModernUpstream } from '../kit/modern-server.ts'
import type { ServerResponse } from 'node:http'

const modern = (): RecordingClient => ({ ...recordingClient(), era: 'modern' })
const list = { method: 'tools/list' }

/**
 * A connection that has read its tools, two seconds ago; its sense of now can be moved, while timers run in real time.
 */
async function open(t: Test, options: ModernHttpOptions = {}) {
  const peer = await startModern(options)
  const hands = handClock()
  const events = recordingEvents()
  const work = testConnector({ clock: { now: hands.now, timer: realClock.timer } })
  const connect = () => work.pool.acquire(httpDefinition(peer.url), 'one', { ...handshake, era: 'modern' }, events)
  const upstream = await connect()
  t.teardown(async () => {
    await upstream.close()
    await peer.close()
  })
  const call = (name: string, args: object = {}) => upstream.request(callOf(name, args), modern(), never)
  await call('echo')
  hands.advance(2_000)
  peer.seen.length = 0
  return { ...work, peer, events, upstream, connect, call, advance: hands.advance }
}

const isMethod =
  (method: string) =>
  ({ message }: ModernSeen): boolean =>
    message?.['method'] === method
const isTool =
  (name: string) =>
  ({ message }: ModernSeen): boolean =>
    message?.['method'] === 'tools/call' && (message['params'] as { name: unknown }).name === name
const methods = (peer: ModernUpstream): unknown[] => peer.seen.map(({ message }) => message?.['method'])
const refusal =
  (code: number, data?: unknown, status = 400) =>
  (response: ServerResponse, { message }: ModernSeen): void => {
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(
        JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], error: { code, message: `error ${code}\u202e`, data } })
      )
  }
const streamed =
  (code: number, data?: unknown) =>
  (response: ServerResponse, { message }: ModernSeen): void => {
    const id = message?.['id']
    const messages = [
      { method: 'notifications/progress', params: { progressToken: id, progress: 1 } },
      { id, error: { code, message: 'refused', data } }
    ]
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(messages.map((each) => `data: ${JSON.stringify({ jsonrpc: '2.0', ...each })}\n\n`).join(''))
  }

t.test(
  'a call refused with -32020 is sent once more after the tools were read again, also for the listing',
  async (t) => {
    const { peer, call, events, advance } = await open(t)
    const at = peer.server.script.tools.findIndex((tool) => (tool as { name: string }).name === 'echo')
    peer.server.script.tools[at] = {
      name: 'echo',
      inputSchema: { type: 'object', properties: { who: { type: 'string', 'x-mcp-header': 'Who' } } }
    }
    const before = peer.server.requests('tools/call').length
    t.match(await call('echo', { who: 'me' }), { structuredContent: { arguments: { who: 'me' } } })
    t.same(methods(peer), ['tools/call', 'tools/list', 'tools/call'])
    t.equal(peer.server.requests('tools/call').length - before, 1, 'it is executed once')
    const [first, second] = peer.seen.filter(isTool('echo')).map(({ message }) => message?.['id'])
    t.not(first, second, 'with a new id')
    t.same(events.changed, ['tools'])

    advance(2_000)
    peer.seen.length = 0
    peer.override(isTool('echo'), refusal(-32020), 2)
    await t.rejects(call('echo', { who: 'me' }), {
      code: 'upstream_protocol',
      message: /headers.*not executed.*error -32020\\u\{202e\}$/
    })
    t.same(methods(peer), ['tools/call', 'tools/list', 'tools/call'], 'once and no more')
  }
)

t.test('a request other than a call that is refused with -32020 is not sent again', async (t) => {
  const { upstream, peer, events } = await open(t)
  peer.override(isMethod('prompts/get'), refusal(-32020), 10)
  await t.rejects(upstream.request({ method: 'prompts/get', params: { name: 'greet' } }, modern(), never), {
    code: 'upstream_protocol',
    message: /not executed/
  })
  t.same([methods(peer), events.changed], [['prompts/get'], []])
})

t.test('the tools of a server that refuses every call are not read again for each', async (t) => {
  const { peer, call, events, advance } = await open(t)
  peer.override(isTool('echo'), refusal(-32020), 1_000)
  const refused = { code: 'upstream_protocol', message: /not executed/ }
  await t.rejects(call('echo'), refused)
  t.same(methods(peer), ['tools/call', 'tools/list', 'tools/call'])
  peer.seen.length = 0
  for (let n = 0; n < 5; n++) await t.rejects(call('echo'), refused)
  t.same(methods(peer), Array(5).fill('tools/call'))
  t.equal(events.changed.length, 1)
  advance(1_000)
  peer.seen.length = 0
  await t.rejects(call('echo'), refused)
  t.same(methods(peer), ['tools/call', 'tools/list', 'tools/call'], 'it is time again')
})

t.test('a call refused while the tools are being read for another is sent once more as well', async (t) => {
  const { peer, call } = await open(t)
  peer.override(isTool('echo'), refusal(-32020), 3)
  t.match(await Promise.all([call('echo'), call('echo'), call('echo')]), [
    { content: [{}] },
    { content: [{}] },
    { content: [{}] }
  ])
  t.same(
    methods(peer).filter((method) => method === 'tools/list'),
    ['tools/list']
  )
})

t.test('an endless list is read as far for the headers as for the catalog', async (t) => {
  const { peer, call } = await open(t)
  let pages = 0
  peer.override(
    isMethod('tools/list'),
    (response, { message }) => {
      const tools = Array.from({ length: 4 }, (_, n) => ({
        name: `t-${pages}-${n}`,
        description: 'x'.repeat(50_000),
        inputSchema: {}
      }))
      response.writeHead(200, { 'content-type': 'application/json' }).end(
        JSON.stringify({
          jsonrpc: '2.0',
          id: message?.['id'],
          result: { resultType: 'complete', tools, nextCursor: `c${++pages}` }
        })
      )
    },
    1_000
  )
  peer.override(isTool('echo'), refusal(-32020), 1)
  t.match(await call('echo'), { content: [{}] })
  t.equal(pages, 6, 'more than 1 MiB')
})

for (const [code, data] of [
  [-32020, undefined],
  [-32022, { supported: ['2031-01-01', '2026-07-28'] }],
  [-32022, { supported: ['2025-11-25'] }]
] as const) {
  for (const [how, reply] of [
    ['with HTTP 200', refusal(code, data, 200)],
    ['with HTTP 404', refusal(code, data, 404)],
    ['after progress', streamed(code, data)]
  ] as const) {
    t.test(
      `${code} ${how}, ${JSON.stringify(data)}: nobody knows whether it was executed, so it is not sent again`,
      async (t) => {
        const { peer, call, events } = await open(t)
        peer.override(isTool('echo'), reply)
        await t.rejects(call('echo'), { code: 'upstream_protocol', message: /unknown/, data: { outcome: 'unknown' } })
        t.same([methods(peer), events.ended, events.changed], [['tools/call'], [], []])
        t.match(await call('echo'), { content: [{}] }, 'the next call works')
      }
    )
  }
}

t.test('-32022 that names the very revision that was sent is not sent again', async (t) => {
  const { peer, call, events } = await open(t)
  peer.override(isTool('echo'), refusal(-32022, { supported: ['2031-01-01', '2026-07-28'] }))
  await t.rejects(call('echo'), { code: 'upstream_protocol', message: /not executed/ })
  t.same([methods(peer), events.ended], [['tools/call'], []])
})

t.test('-32022 with legacy revisions only retires the connection: calls in flight go on', async (t) => {
  const { upstream, peer, call, events, connect } = await open(t)
  const slow = call('slow')
  await until(() => peer.server.waiting.size === 1, 'it runs')
  await upstream.request({ method: 'resources/subscribe', params: { uri: 'test://one' } }, recordingClient(), never)
  peer.override(isTool('echo'), refusal(-32022, { supported: ['2025-11-25'] }))
  await t.rejects(call('echo'), { code: 'upstream_unavailable', message: /not executed/ })
  t.equal(events.ended.length, 1)
  await t.rejects(call('echo'), { code: 'upstream_unavailable' }, 'it takes no new calls')
  const next = await connect()
  t.teardown(() => next.close())
  t.match(await next.request(callOf('echo'), modern(), never), { content: [{}] }, 'the next connection does')
  t.equal(peer.server.waiting.size, 1)
  peer.server.release()
  t.match(await slow, { content: [{ text: 'slow is done' }] })
  t.equal(events.ended.length, 1)
})

t.test('a connection to a server that turns out to be legacy is retired: calls in flight go on', async (t) => {
  const { upstream, peer, call, events } = await open(t)
  const slow = call('slow')
  await until(() => peer.server.waiting.size === 1, 'it runs')
  peer.override(
    () => true,
    (response) => {
      response.writeHead(404).end()
    },
    2
  )
  await t.rejects(upstream.request(list, modern(), never))
  await until(() => events.ended.length === 1, 'the connection is given up')
  peer.server.release()
  t.match(await slow, { content: [{ text: 'slow is done' }] })
  await t.rejects(upstream.request(list, modern(), never), { code: 'upstream_unavailable' })
})

t.test('the pool replaces a retired connection, and closes both', async (t) => {
  const peer = await startModern()
  const { pool } = testConnector()
  t.teardown(peer.close)
  const acquire = () =>
    pool.acquire(httpDefinition(peer.url), 'modern:1', { ...handshake, era: 'modern' }, recordingEvents())
  const first = await acquire()
  await first.request(list, recordingClient(), never)
  const stop = new AbortController()
  const slow = first.request(callOf('slow'), modern(), stop.signal)
  slow.catch(() => {})
  await until(() => peer.server.waiting.size === 1, 'it runs')
  peer.override(isTool('echo'), refusal(-32022, { supported: ['2025-11-25'] }))
  await t.rejects(first.request(callOf('echo'), modern(), never), { code: 'upstream_unavailable' })
  const second = await acquire()
  t.not(second, first)
  t.match(await second.request(callOf('echo'), modern(), never), { content: [{}] })
  await pool.close()
  stop.abort()
  await t.rejects(slow, { code: 'cancelled' })
})
