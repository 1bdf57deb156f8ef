// What every transport owes its callers, against a real child process and a real socket.

import t, { type Test } from 'tap'
import { GatewayError, RpcError } from '../../src/protocol/messages.ts'
import {
  callOf,
  handshake,
  heldClock,
  httpDefinition,
  never,
  recordingClient,
  recordingEvents,
  type RecordingEvents,
  stdioDefinition,
  testConnector,
  until
} from '../kit/connector.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { startUpstream } from '../kit/upstream.ts'
import type { HandshakeParams, Upstream } from '../../src/protocol/seams.ts'

interface Fixture {
  readonly upstream: Upstream
  readonly events: RecordingEvents
  /** The time of the calls that run by now is over, or so much of it. No call comes to its end by itself. */
  timeOut(ms?: number): void
}
type Open = (
  t: Test,
  script?: object,
  limits?: { maxMessageBytes?: number },
  shake?: HandshakeParams
) => Promise<Fixture>

const timeoutMs = 45_000

/** @returns a connector, and how the time of calls passes for it */
function connecting() {
  const clock = heldClock(timeoutMs)
  return { connector: testConnector({ clock }).connector, timeOut: (ms = timeoutMs) => clock.pass(ms) }
}

const openStdio: Open = async (t, script = {}, limits = {}, shake = handshake) => {
  const events = recordingEvents()
  const { connector, timeOut } = connecting()
  const upstream = await connector.connect(stdioDefinition(script, { timeoutMs, ...limits }), shake, events)
  t.teardown(() => upstream.close())
  return { upstream, events, timeOut }
}

const openHttp =
  (answers: 'json' | 'sse'): Open =>
  async (t, script = {}, limits = {}, shake = handshake) => {
    const peer = await startUpstream({ answers, ...script })
    t.teardown(peer.close)
    const events = recordingEvents()
    const { connector, timeOut } = connecting()
    const upstream = await connector.connect(httpDefinition(peer.url, { timeoutMs, ...limits }), shake, events)
    t.teardown(() => upstream.close())
    await until(() => peer.streams() === 1, 'the standalone stream is open')
    return { upstream, events, timeOut }
  }

const openSse: Open = async (t, script = {}, limits = {}, shake = handshake) => {
  const peer = await startSseUpstream(script)
  t.teardown(peer.close)
  const events = recordingEvents()
  const { connector, timeOut } = connecting()
  const definition = httpDefinition(peer.url, { timeoutMs, ...limits, transport: 'sse' })
  const upstream = await connector.connect(definition, shake, events)
  t.teardown(() => upstream.close())
  return { upstream, events, timeOut }
}

const transports: Array<[string, Open]> = [
  ['HTTP+SSE', openSse],
  ['stdio', openStdio],
  ['http with JSON', openHttp('json')],
  ['http with SSE', openHttp('sse')]
]

for (const [transport, open] of transports) {
  t.test(transport, async (t) => {
    t.test('the handshake tells what the server is', async (t) => {
      const { upstream } = await open(t, { instructions: 'Be kind.' })
      t.match(upstream, {
        name: 'files',
        era: 'legacy',
        revision: '2025-11-25',
        instructions: 'Be kind.',
        serverInfo: { name: 'scripted', version: '1.2.3', title: 'Scripted' },
        capabilities: { tools: { listChanged: true } }
      })
    })

    t.test('of a long name of the server its beginning is kept', async (t) => {
      const { upstream } = await open(t, { name: 'n'.repeat(100_000) })
      t.equal(upstream.serverInfo.name, 'n'.repeat(256))
      t.match(await upstream.request(callOf('echo'), recordingClient(), never), { content: [{ type: 'text' }] })
    })

    t.test('every legacy revision that the server answers with is accepted', async (t) => {
      for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18']) {
        const { upstream } = await open(t, { revision })
        t.equal(upstream.revision, revision)
        t.match(await upstream.request(callOf('echo'), recordingClient(), never), { content: [{ type: 'text' }] })
      }
    })

    t.test('an unknown revision ends the handshake', async (t) => {
      await t.rejects(open(t, { revision: '1999-01-01' }), { code: 'upstream_protocol', message: /1999-01-01/ })
    })

    t.test('an error in answer to initialize is passed on', async (t) => {
      await t.rejects(open(t, { errors: { initialize: { code: -32000, message: 'license expired' } } }), {
        code: 'upstream_unavailable',
        message: /license expired/
      })
    })

    t.test('arguments and _meta arrive as sent', async (t) => {
      const { upstream } = await open(t)
      const args = { text: 'grüße\u2028\n"', deep: { list: [1, null, { x: 1e21 }] }, __proto_: 1 }
      const result = await upstream.request(
        callOf('echo', args, { 'com.example/trace': 'abc' }),
        recordingClient(),
        never
      )
      t.same(result['structuredContent'], { arguments: args, meta: { 'com.example/trace': 'abc' } })
      t.same(result['_meta'], { 'test/kept': true })
    })

    t.test('every content type comes back untouched', async (t) => {
      const { upstream } = await open(t)
      const result = await upstream.request(callOf('content'), recordingClient(), never)
      t.match(result, {
        content: [
          { _meta: { a: 1 } },
          { type: 'image' },
          { type: 'audio' },
          { icons: [{}] },
          { resource: { extra: null } },
          { type: 'hologram', nested: { deep: [1, 2, { three: 3 }] } }
        ],
        structuredContent: { answer: 42 },
        isError: false,
        resultType: 'unknown to us',
        _meta: { 'com.example/x': { y: 'z' } }
      })
    })

    t.test('an error of the tool is a result', async (t) => {
      const { upstream } = await open(t)
      t.match(await upstream.request(callOf('fail'), recordingClient(), never), { isError: true })
    })

    t.test('a JSON-RPC error of the server comes back as it was', async (t) => {
      const { upstream } = await open(t)
      const error = await upstream
        .request(
          callOf('rpcerror', { code: -32042, message: 'go there', data: { url: 'x' } }),
          recordingClient(),
          never
        )
        .catch((error: unknown) => error)
      t.ok(error instanceof RpcError)
      t.same((error as RpcError).error, { code: -32042, message: 'go there', data: { url: 'x' } })
    })

    t.test('an error that carries a heap of data loses it', async (t) => {
      const { upstream } = await open(t)
      const error = await upstream
        .request(callOf('rpcerror', { data: 'x'.repeat(20_000) }), recordingClient(), never)
        .catch((error: unknown) => error)
      t.same((error as RpcError).error, { code: -32050, message: 'refused by the tool' })
    })

    t.test('progress arrives in order, whole, ahead of the result, with the token of the client', async (t) => {
      const { upstream } = await open(t)
      const clients = ['7', 7].map((token) => ({ token, client: recordingClient() }))
      await Promise.all(
        clients.map(async ({ token, client }) => {
          const result = upstream.request(callOf('progress', { steps: 500 }, { progressToken: token }), client, never)
          await result
          t.equal(client.notified.length, 500, 'all before the result')
        })
      )
      for (const { token, client } of clients) {
        t.same(
          client.notified.map(({ params }) => params?.['progress']),
          Array.from({ length: 500 }, (_, index) => index + 1)
        )
        t.ok(
          client.notified.every(({ params }) => params?.['progressToken'] === token),
          `the token ${JSON.stringify(token)} keeps its type`
        )
      }
    })

    t.test('a client without a token hears no progress', async (t) => {
      const { upstream } = await open(t)
      const client = recordingClient()
      await upstream.request(callOf('progress', { steps: 3 }), client, never)
      t.same(client.notified, [])
    })

    t.test('concurrent calls each get their own answer', async (t) => {
      const { upstream } = await open(t)
      const results = await Promise.all(
        Array.from({ length: 100 }, (_, n) => upstream.request(callOf('echo', { n }), recordingClient(), never))
      )
      t.same(
        results.map((result) => (result['structuredContent'] as { arguments: { n: number } }).arguments.n),
        Array.from({ length: 100 }, (_, n) => n)
      )
    })

    t.test('cancelling ends the call at once and reaches the server', async (t) => {
      const { upstream } = await open(t)
      const stop = new AbortController()
      const client = recordingClient()
      const call = upstream.request(callOf('slow', {}, { progressToken: 'p' }), client, stop.signal)
      await until(() => client.notified.length === 1, 'the call has reached the server')
      stop.abort('enough')
      await t.rejects(call, { code: 'cancelled' })
      // The server forgot the call: releasing all slow ones answers none.
      await upstream.request(callOf('release'), client, never)
      t.match(await upstream.request(callOf('echo', { still: 'there' }), client, never), {
        structuredContent: { arguments: { still: 'there' } }
      })
    })

    t.test('a call that hears nothing more is given up', async (t) => {
      const { upstream, timeOut } = await open(t)
      const client = recordingClient()
      const timedOut = t.rejects(upstream.request(callOf('slow', {}, { progressToken: 'p' }), client, never), {
        code: 'upstream_timeout',
        data: { outcome: 'unknown', upstream: 'files' }
      })
      await until(() => client.notified.length === 1, 'the call has reached the server')
      timeOut()
      await timedOut
      t.match(
        await upstream.request(callOf('echo'), recordingClient(), never),
        { content: [{}] },
        'the connection lives on'
      )
    })

    t.test('a call that hears something is given its whole time again', async (t) => {
      const { upstream, timeOut } = await open(t)
      const client = recordingClient()
      const call = upstream.request(callOf('slow', {}, { progressToken: 'p' }), client, never)
      timeOut(timeoutMs - 1)
      await until(() => client.notified.length === 1, 'progress')
      timeOut(timeoutMs - 1)
      const [result] = await Promise.all([call, upstream.request(callOf('release'), recordingClient(), never)])
      t.match(result, { content: [{ text: 'slow is done' }] })
    })

    t.test('log messages go to the client of the only call in flight', async (t) => {
      const { upstream, events } = await open(t)
      const client = recordingClient()
      await upstream.request(callOf('log', { count: 3 }), client, never)
      t.same(
        client.notified.map(({ params }) => params?.['data']),
        ['line 1', 'line 2', 'line 3']
      )
      t.same(events.notifications, [])
    })

    t.test('a changed list is an event', async (t) => {
      const { upstream, events } = await open(t)
      await upstream.request(callOf('grow'), recordingClient(), never)
      await until(() => events.changed.length > 0, 'the change was heard')
      t.same(events.changed, ['tools'])
    })

    t.test(
      'a request of the server reaches the client whose call it belongs to, and its answer goes back',
      async (t) => {
        const { upstream } = await open(t, {}, {}, { ...handshake, capabilities: { elicitation: {} } })
        const client = recordingClient(async () => ({ action: 'accept', content: { name: 'Ada' } }))
        const result = await upstream.request(callOf('ask', { params: { message: 'who?' } }), client, never)
        t.same(client.asked, [{ method: 'elicitation/create', params: { message: 'who?' } }])
        t.match(JSON.stringify(result), /Ada/)
      }
    )

    t.test('a request of the server that the client refuses is refused with its error', async (t) => {
      const { upstream } = await open(t, {}, {}, { ...handshake, capabilities: { elicitation: {} } })
      const client = recordingClient(() => Promise.reject(new RpcError({ code: -32050, message: 'not now' })))
      t.match(JSON.stringify(await upstream.request(callOf('ask'), client, never)), /not now/)
    })

    t.test('a request of the server that the handshake did not allow is refused without asking anybody', async (t) => {
      const { upstream } = await open(t)
      const client = recordingClient(async () => ({ action: 'accept' }))
      t.match(JSON.stringify(await upstream.request(callOf('ask'), client, never)), /-32601/)
      t.same(client.asked, [])
    })

    t.test('ping is answered without asking anybody', async (t) => {
      const { upstream } = await open(t)
      const client = recordingClient()
      t.match(
        JSON.stringify(await upstream.request(callOf('ask', { method: 'ping' }), client, never)),
        /\\"result\\":\{\}/
      )
      t.same(client.asked, [])
    })

    t.test('an answer above the limit fails its own call and no other', async (t) => {
      const { upstream } = await open(t, {}, { maxMessageBytes: 100_000 })
      const other = upstream.request(callOf('slow'), recordingClient(), never)
      await t.rejects(upstream.request(callOf('big', { bytes: 300_000 }), recordingClient(), never), {
        code: 'upstream_protocol',
        message: /100000/
      })
      t.match(await upstream.request(callOf('big', { bytes: 50_000 }), recordingClient(), never), { content: [{}] })
      await upstream.request(callOf('release'), recordingClient(), never)
      t.match(await other, { content: [{ text: 'slow is done' }] })
    })

    t.test('a server that dies in a call loses it, and it is not sent again', async (t) => {
      const { upstream } = await open(t)
      await t.rejects(upstream.request(callOf('crash'), recordingClient(), never), {
        code: 'upstream_lost',
        data: { outcome: 'unknown', upstream: 'files' }
      })
    })

    t.test('closing ends what is in flight, and ends it for good', async (t) => {
      const { upstream, events } = await open(t)
      const call = upstream.request(callOf('slow'), recordingClient(), never)
      const rejected = t.rejects(call, { code: 'cancelled' })
      await Promise.all([upstream.close(), upstream.close()])
      await rejected
      await t.rejects(upstream.request(callOf('echo'), recordingClient(), never), { code: 'upstream_unavailable' })
      t.same(events.ended, [], 'a close on purpose is no event')
    })

    t.test('destroying rejects what is in flight with the reason', async (t) => {
      const { upstream } = await open(t)
      const rejected = t.rejects(upstream.request(callOf('slow'), recordingClient(), never), { code: 'shutting_down' })
      upstream.destroy(new GatewayError('shutting_down', 'stopping'))
      await rejected
    })
  })
}
