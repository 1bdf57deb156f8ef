// What a connection of 2026-07-28 does the same way over HTTP and stdio, against the scripted server, real sockets and
// processes.

import t, { type Test } from 'tap'
import { fetchList, fetchListing, withListingParts } from '../../src/upstream/listing/listing.ts'
import {
  callOf,
  handshake,
  heldClock,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  stdioDefinition,
  testConnector,
  type RecordingClient,
  type RecordingEvents,
  until
} from '../kit/connector.ts'
import { modernStdio, startModern } from '../kit/modern-server.ts'
import type { JsonObject } from '../../src/protocol/messages.ts'
import type { Upstream } from '../../src/protocol/seams.ts'
import type { ModernScript } from '../kit/modern-script.ts'
import type { ConnectionUse } from '../../src/upstream/rpc/transport.ts'

const modern = (capabilities: JsonObject = {}, extras: object = {}): RecordingClient => ({
  ...recordingClient(),
  era: 'modern',
  capabilities,
  ...extras
})
const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }

interface Bench {
  readonly upstream: Upstream
  readonly events: RecordingEvents
  readonly logged: ReadonlyArray<{ readonly msg: string }>
  /** The time of the calls that run by now is over, or so much of it. No call comes to its end by itself. */
  timeOut(ms?: number): void
  /** Calls a tool that steers the server. */
  steer(tool: string, args?: object): Promise<JsonObject>
  text(tool: string): Promise<unknown>
}

const timeoutMs = 45_000
/** How long a process is waited for before it is taken for a legacy server: one that has started late is none. */
const silenceMs = 5_000

async function open(
  t: Test,
  over: 'http' | 'stdio',
  script: ModernScript = {},
  use: ConnectionUse = 'calls'
): Promise<Bench> {
  const events = recordingEvents()
  const clock = heldClock(timeoutMs, silenceMs)
  const { connector, logged } = testConnector({ clock })
  const shake = { ...handshake, era: 'modern' } as const
  const peer = over === 'http' ? await startModern(script) : undefined
  const { command, args } = modernStdio(script)
  const upstream = await connector.connect(
    peer === undefined ? stdioDefinition({}, { command, args, timeoutMs }) : httpDefinition(peer.url, { timeoutMs }),
    shake,
    events,
    undefined,
    use
  )
  t.teardown(async () => {
    await upstream.close()
    await peer?.close()
  })
  const steer = (tool: string, given: object = {}): Promise<JsonObject> =>
    upstream.request(callOf(tool, given), modern(), never)
  const text = async (tool: string): Promise<unknown> =>
    JSON.parse(((await steer(tool))['content'] as Array<{ text: string }>)[0]?.text ?? '')
  return { upstream, events, logged, timeOut: (ms = timeoutMs) => clock.pass(ms), steer, text }
}

const listen = (notifications: object) => ({ method: 'subscriptions/listen', params: { notifications } })
const heard = ({ notified }: RecordingClient): unknown[] => notified.map(({ method, params }) => [method, params])
const acknowledged = (notifications: object) => ['notifications/subscriptions/acknowledged', { notifications }]

for (const over of ['http', 'stdio'] as const) {
  t.test(over, async (t) => {
    t.test('discover tells what the server is', async (t) => {
      const { upstream } = await open(t, over, { instructions: 'Be kind.', name: 'mine' })
      t.match(upstream, {
        era: 'modern',
        revision: '2026-07-28',
        instructions: 'Be kind.',
        serverInfo: { name: 'mine', version: '1.2.3', title: 'Modern' },
        capabilities: { tools: { listChanged: true } }
      })
    })

    t.test('results come back as they are, without who answered', async (t) => {
      const { upstream } = await open(t, over)
      const result = await upstream.request(callOf('echo', { a: [1, null] }), modern(), never)
      t.match(result, { resultType: 'complete', structuredContent: { arguments: { a: [1, null] } } })
      t.same(result['_meta'], { 'test/kept': true })
      t.same(
        await upstream.request(callOf('result', { result: { content: [] } }), modern(), never),
        { content: [] },
        'a result without a type is complete'
      )
    })

    t.test('a type of result that the client cannot take is none', async (t) => {
      const { upstream } = await open(t, over, {
        results: {
          'prompts/list': { resultType: 'input_required', inputRequests: {} },
          'prompts/get': { resultType: 'task', taskId: 't' },
          'resources/read': { resultType: 'input_required', requestState: 's' }
        }
      })
      const typed = (resultType: unknown, client = modern()) =>
        upstream.request(callOf('result', { result: { resultType, taskId: 't' } }), client, never)
      const fault = { code: 'upstream_protocol', data: { outcome: 'unknown' } }
      for (const wrong of ['partial', 7, null, 'x\u0007'.repeat(100)]) await t.rejects(typed(wrong), fault)
      await t.rejects(typed('task'), fault)
      t.match(await typed('task', modern(tasks)), { resultType: 'task', taskId: 't' })
      t.match(await typed('input_required'), { resultType: 'input_required' })
      await t.rejects(typed('input_required', recordingClient()), {
        code: 'upstream_protocol',
        message: /somebody who does not know it/
      })
      await t.rejects(upstream.request({ method: 'prompts/list' }, modern(), never), fault)
      await t.rejects(
        upstream.request({ method: 'prompts/get', params: { name: 'greet' } }, modern(tasks), never),
        fault
      )
      t.match(await upstream.request({ method: 'resources/read', params: { uri: 'test://one' } }, modern(), never), {
        requestState: 's'
      })
    })

    t.test(
      'the capabilities are those of each request, and none for clients that cannot be asked this way',
      async (t) => {
        const { upstream } = await open(t, over)
        t.match(await upstream.request(callOf('ask'), modern({ elicitation: {} }), never), {
          resultType: 'input_required',
          inputRequests: { user_name: {} },
          requestState: 'state of round 1'
        })
        t.match(
          await upstream.request(
            {
              method: 'tools/call',
              params: {
                name: 'ask',
                arguments: {},
                requestState: 'state of round 1',
                inputResponses: { user_name: { action: 'decline' } }
              }
            },
            modern({ elicitation: {} }),
            never
          ),
          { resultType: 'complete' }
        )
        for (const client of [modern(), { ...recordingClient(), capabilities: { elicitation: {} } }])
          t.match(await upstream.request(callOf('ask'), client, never).catch((error: unknown) => error), {
            name: 'RpcError',
            error: { code: -32021 }
          })
      }
    )

    t.test('progress arrives in order ahead of the result, with the token of the client', async (t) => {
      const { upstream } = await open(t, over)
      const clients = [modern(), modern(), modern()]
      await Promise.all(
        clients.map((client, n) =>
          upstream.request(callOf('progress', { steps: 50 }, { progressToken: n === 2 ? 'text' : 1 }), client, never)
        )
      )
      clients.forEach(({ notified }, n) =>
        t.same(
          notified.map(({ params }) => [params?.['progressToken'], params?.['progress']]),
          Array.from({ length: 50 }, (_, step) => [n === 2 ? 'text' : 1, step + 1])
        )
      )
      const silent = modern()
      await upstream.request(callOf('progress'), silent, never)
      t.same(silent.notified, [])
    })

    t.test('log messages reach the request that asked for them, and no other', async (t) => {
      const { upstream, events } = await open(t, over)
      const curious = modern({}, { logLevel: 'info' })
      await upstream.request(callOf('log', { count: 3 }), curious, never)
      t.same(
        curious.notified.map(({ params }) => params?.['data']),
        ['line 1', 'line 2', 'line 3']
      )
      const quiet = modern()
      await upstream.request(callOf('log', { always: true }), quiet, never)
      t.same([quiet.notified, events.notifications], [[], []])
    })

    t.test('a session that has set its log level is one that asks', async (t) => {
      const { upstream } = await open(t, over)
      const client = recordingClient()
      await upstream.request(callOf('log'), client, never)
      t.same(client.notified, [])
      t.same(await upstream.request({ method: 'logging/setLevel', params: { level: 'debug' } }, client, never), {})
      t.same(await upstream.request({ method: 'ping' }, client, never), {})
      await upstream.request(callOf('log'), client, never)
      t.equal(client.notified.length, 1)
      t.notOk(
        ((await (await open(t, over)).text('received')) as Array<{ method: string }>).some(
          ({ method }) => method === 'ping' || method === 'logging/setLevel'
        )
      )
    })

    t.test('notifications of clients are not passed on', async (t) => {
      const { upstream, text } = await open(t, over)
      upstream.notify({ method: 'notifications/roots/list_changed' })
      upstream.notify({ method: 'notifications/initialized' })
      t.notOk(
        ((await text('received')) as Array<{ method: string }>).some(({ method }) =>
          method.startsWith('notifications/')
        )
      )
    })

    t.test('cancelling ends the call at once and reaches the server', async (t) => {
      const { upstream, text } = await open(t, over)
      const stop = new AbortController()
      const client = modern()
      const call = upstream.request(callOf('slow', {}, { progressToken: 1 }), client, stop.signal)
      await until(() => client.notified.length === 1, 'it runs')
      stop.abort()
      await t.rejects(call, { code: 'cancelled' })
      await until(async () => ((await text('cancelled')) as unknown[]).length === 1, 'the server hears of it')
      await t.rejects(upstream.request(callOf('echo'), modern(), AbortSignal.abort()), { code: 'cancelled' })
    })

    t.test('a call that hears nothing more is cancelled at the server', async (t) => {
      const { upstream, text, timeOut } = await open(t, over)
      const client = modern()
      const timedOut = t.rejects(upstream.request(callOf('slow', {}, { progressToken: 1 }), client, never), {
        code: 'upstream_timeout',
        data: { outcome: 'unknown' }
      })
      await until(() => client.notified.length === 1, 'it runs')
      timeOut()
      await timedOut
      await until(async () => ((await text('cancelled')) as unknown[]).length === 1, 'the server hears of it')
    })

    t.test('a call that hears something is given its whole time again', async (t) => {
      const { upstream, timeOut, steer } = await open(t, over)
      await steer('echo') // Ahead of the first call over HTTP the tools are read.
      const client = modern()
      const call = upstream.request(callOf('slow', {}, { progressToken: 1 }), client, never)
      timeOut(timeoutMs - 1)
      await until(() => client.notified.length === 1, 'progress')
      timeOut(timeoutMs - 1)
      const [result] = await Promise.all([call, steer('release')])
      t.match(result, { content: [{ text: 'slow is done' }] })
    })

    t.test('a server that dies in a call loses it, and it is not sent again', async (t) => {
      const { upstream, events } = await open(t, over)
      await t.rejects(upstream.request(callOf('crash'), modern(), never), {
        code: 'upstream_lost',
        data: { outcome: 'unknown' }
      })
      if (over === 'http')
        t.match(
          await upstream.request(callOf('echo'), modern(), never),
          { content: [{}] },
          'there is no connection that could have been lost'
        )
      else t.equal(events.ended.length, 1)
    })

    t.test('closing ends what is in flight, and ends it for good', async (t) => {
      const { upstream, events } = await open(t, over)
      const call = upstream.request(callOf('slow'), modern(), never)
      const stream = upstream.request(listen({ toolsListChanged: true }), modern(), never)
      call.catch(() => {})
      stream.catch(() => {})
      await upstream.request(callOf('echo'), modern(), never)
      await upstream.close()
      await t.rejects(call, { code: 'cancelled' })
      await t.rejects(stream, { code: 'cancelled' })
      await t.rejects(upstream.request(callOf('echo'), modern(), never), { code: 'upstream_unavailable' })
      t.same(events.ended, [])
    })

    t.test('destroying rejects what is in flight with the reason', async (t) => {
      const { upstream } = await open(t, over)
      await upstream.request({ method: 'tools/list' }, recordingClient(), never)
      const call = upstream.request(callOf('slow'), modern(), never)
      call.catch(() => {})
      const reason = new Error('enough')
      upstream.destroy(reason)
      await t.rejects(call, reason)
    })

    t.test('a listen stream brings what was asked for, acknowledged first, under no id', async (t) => {
      const { upstream, steer, events, timeOut } = await open(t, over)
      const [lists, resources] = [modern(), modern()]
      const ends = [
        upstream.request(listen({ toolsListChanged: true, unknown: true }), lists, never),
        upstream.request(listen({ resourceSubscriptions: ['test://one'] }), resources, never)
      ]
      await until(() => lists.notified.length === 1 && resources.notified.length === 1, 'both are acknowledged')
      await steer('grow')
      await steer('touch', { uri: 'test://one' })
      await steer('touch', { uri: 'test://two' })
      await until(() => lists.notified.length === 2 && resources.notified.length === 2, 'both hear')
      const client = modern()
      const call = upstream.request(callOf('slow', {}, { progressToken: 1 }), client, never)
      const timedOut = t.rejects(call, { code: 'upstream_timeout' })
      await until(() => client.notified.length === 1, 'it runs')
      timeOut()
      await timedOut
      // The time of a call is over.
      await steer('grow')
      await until(() => lists.notified.length === 3, 'it is still open')
      t.same(heard(lists), [
        acknowledged({ toolsListChanged: true }),
        ['notifications/tools/list_changed', {}],
        ['notifications/tools/list_changed', {}]
      ])
      t.same(heard(resources), [
        acknowledged({ resourceSubscriptions: ['test://one'] }),
        ['notifications/resources/updated', { uri: 'test://one' }]
      ])
      await steer('unlisten')
      t.same(await Promise.all(ends), [{ resultType: 'complete' }, { resultType: 'complete' }])
      t.same([events.changed, events.notifications], [[], []], 'they belong to those who listen')
    })

    t.test('who no longer listens ends the stream at the server', async (t) => {
      const { upstream, text } = await open(t, over)
      const stop = new AbortController()
      const client = modern()
      const stream = upstream.request(listen({ toolsListChanged: true }), client, stop.signal)
      await until(() => client.notified.length === 1, 'it is acknowledged')
      stop.abort()
      await t.rejects(stream, { code: 'cancelled' })
      await until(async () => ((await text('cancelled')) as unknown[]).length === 1, 'the server hears of it')
    })

    t.test('a connection for the listing reports what changes', async (t) => {
      const { events, steer } = await open(t, over, {}, 'listing')
      await until(async () => {
        await steer('grow')
        return events.changed.length > 0
      }, 'it hears')
      t.same([...new Set(events.changed)], ['tools'])
      events.changed.length = 0
      await steer('unlisten')
      await until(() => new Set(events.changed).size === 3, 'it listens again, and everything may have changed')
      events.changed.length = 0
      await steer('grow')
      await until(() => events.changed.length === 1, 'it hears again')
    })

    t.test('a server without changing lists is not listened to', async (t) => {
      const { text } = await open(t, over, { capabilities: { tools: {}, resources: { subscribe: true } } }, 'listing')
      t.notOk(
        ((await text('received')) as Array<{ method: string }>).some(({ method }) => method === 'subscriptions/listen')
      )
    })

    t.test('one that has no streams after all is left alone', async (t) => {
      const { text, logged } = await open(
        t,
        over,
        { errors: { 'subscriptions/listen': { code: -32601, message: 'no' } } },
        'listing'
      )
      await until(() => logged.some(({ msg }) => msg.includes('no streams to listen on')), 'it says so')
      t.equal(
        ((await text('received')) as Array<{ method: string }>).filter(
          ({ method }) => method === 'subscriptions/listen'
        ).length,
        1
      )
    })

    t.test('a subscription of a session is a stream of its own', async (t) => {
      const { upstream, events, steer, text } = await open(t, over)
      const subscribe = (method: string, uri: string) =>
        upstream.request({ method: `resources/${method}`, params: { uri } }, recordingClient(), never)
      t.same(await subscribe('subscribe', 'test://one'), {})
      t.same(await subscribe('subscribe', 'test://one'), {})
      t.same(await subscribe('subscribe', 'test://two'), {})
      await steer('touch', { uri: 'test://one' })
      await until(() => events.notifications.length === 1, 'it hears')
      t.same(events.notifications, [{ method: 'notifications/resources/updated', params: { uri: 'test://one' } }])
      t.same(await subscribe('unsubscribe', 'test://one'), {})
      await until(async () => ((await text('cancelled')) as unknown[]).length === 1, 'its stream ends')
      await steer('touch', { uri: 'test://one' })
      await steer('touch', { uri: 'test://two' })
      await until(() => events.notifications.length > 1, 'the other goes on')
      t.same(
        events.notifications.slice(1).map(({ params }) => params),
        [{ uri: 'test://two' }]
      )
      const received = (await text('received')) as Array<{ method: string }>
      t.equal(received.filter(({ method }) => method === 'subscriptions/listen').length, 2)
      t.notOk(received.some(({ method }) => method.startsWith('resources/')))
    })

    t.test('a subscription that the server does not agree to is refused', async (t) => {
      const { upstream } = await open(t, over, { capabilities: { tools: {}, resources: {} } })
      await t.rejects(
        upstream.request({ method: 'resources/subscribe', params: { uri: 'test://one' } }, recordingClient(), never),
        { code: 'invalid_params' }
      )
      const other = await open(t, over, { errors: { 'subscriptions/listen': { code: -32603, message: 'too many' } } })
      t.match(
        await other.upstream
          .request({ method: 'resources/subscribe', params: { uri: 'test://one' } }, recordingClient(), never)
          .catch((error: unknown) => error),
        { error: { code: -32603 } }
      )
      const silent = await open(t, over, { silent: ['subscriptions/listen'] })
      const timedOut = t.rejects(
        silent.upstream.request(
          { method: 'resources/subscribe', params: { uri: 'test://one' } },
          recordingClient(),
          never
        ),
        { code: 'upstream_timeout' }
      )
      silent.timeOut()
      await timedOut
    })

    t.test(
      'a listing has all pages, the time that they hold, and over HTTP no tool whose headers are wrong',
      async (t) => {
        const { upstream } = await open(t, over, { pageSize: 10, ttlMs: 5_000 })
        const listing = await fetchListing(upstream, never, () => 1_000)
        const names = listing.tools.map(({ name }) => name)
        t.ok(names.length > 20)
        t.ok(names.includes('routed'))
        const wrong = ['misrouted', 'misplaced']
        t.same(
          wrong.filter((name) => names.includes(name)),
          over === 'http' ? [] : wrong
        )
        t.equal(
          listing.partial.filter((note) =>
            /^tools: left out an entry \((misrouted|misplaced)\) with an invalid x-mcp-header: /.test(note)
          ).length,
          over === 'http' ? 2 : 0
        )
        const hint = { ttlMs: 5_000, fetchedAt: 1_000 }
        t.same(listing.hints, { tools: hint, prompts: hint, resources: hint, templates: hint })
        t.equal(listing.revision, '2026-07-28')
        const part = await fetchList(upstream, 'resources', never, () => 2_000)
        t.same(withListingParts(listing, [part]).hints, {
          tools: hint,
          prompts: hint,
          resources: { ttlMs: 5_000, fetchedAt: 2_000 },
          templates: { ttlMs: 5_000, fetchedAt: 2_000 }
        })
        t.equal('hints' in (await fetchListing(upstream, never)), false, 'without a clock nobody knows')
      }
    )
  })
}

t.test('what a schema refers to is not fetched', async (t) => {
  const canary = await startModern()
  t.teardown(canary.close)
  const schema = { type: 'object', $ref: canary.url, properties: { a: { $ref: `${canary.url}#/$defs/a` } } }
  const { upstream } = await open(t, 'http', { tools: [{ name: 'far', inputSchema: schema }] })
  const { tools } = await fetchListing(upstream, never)
  t.same(tools, [{ name: 'far', inputSchema: schema }])
  await upstream
    .request({ method: 'tools/call', params: { name: 'far', arguments: { a: 1 } } }, modern(), never)
    .catch(() => {})
  t.same(canary.seen, [])
})

t.test('a tool list without times holds for none', async (t) => {
  const { upstream } = await open(t, 'http', { results: { 'tools/list': { resultType: 'complete', tools: [] } } })
  t.same((await fetchListing(upstream, never, () => 1)).hints?.tools, { ttlMs: 0, fetchedAt: 1 })
})
