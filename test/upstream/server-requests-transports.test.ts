// Servers that ask, over every transport: Streamable HTTP names the call by its stream, the other two do not.

import t, { type Test } from 'tap'
import { type Result, RpcError } from '../../src/protocol/messages.ts'
import {
  type Answerer,
  callOf,
  handClock,
  handshake,
  httpDefinition,
  never,
  realClock,
  recordingClient,
  recordingEvents,
  stdioDefinition,
  testConnector,
  until
} from '../kit/connector.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { startUpstream } from '../kit/upstream.ts'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'
import type { Client, ServerRequestOptions } from '../../src/protocol/seams.ts'

const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } }

interface Way {
  readonly name: string
  readonly namesCalls: boolean
  start(t: Test): Promise<{ definition: UpstreamDefinition; listening(): boolean }>
}

const ways: Way[] = [
  { name: 'stdio', namesCalls: false, start: async () => ({ definition: stdioDefinition(), listening: () => true }) },
  {
    name: 'Streamable HTTP',
    namesCalls: true,
    async start(t) {
      const peer = await startUpstream()
      t.teardown(peer.close)
      return { definition: httpDefinition(peer.url), listening: peer.allListening }
    }
  },
  {
    name: 'HTTP+SSE',
    namesCalls: false,
    async start(t) {
      const peer = await startSseUpstream()
      t.teardown(peer.close)
      return { definition: httpDefinition(peer.url, { transport: 'sse' }), listening: () => true }
    }
  }
]

async function connected(t: Test) {
  const peer = await startUpstream()
  t.teardown(peer.close)
  const upstream = await testConnector().connector.connect(
    httpDefinition(peer.url),
    { ...handshake, capabilities },
    recordingEvents()
  )
  t.teardown(() => upstream.close())
  return { peer, upstream }
}

/** What the server was answered, as its tool tells it. */
const told = (result: Result): unknown => JSON.parse((result['content'] as Array<{ text: string }>)[0]?.text ?? '')

const answers: Readonly<Record<string, unknown>> = {
  'elicitation/create': { action: 'accept', content: { name: 'Ada' } },
  'sampling/createMessage': {
    role: 'assistant',
    content: { type: 'text', text: 'hi' },
    model: 'm',
    stopReason: 'endTurn'
  },
  'roots/list': { roots: [{ uri: 'file:///home/ada', name: 'home', _meta: { kept: true } }] }
}
const answering: Answerer = async ({ method }) => answers[method]

/** A client whose answers are given by hand. */
function slow() {
  const asked: Array<{ readonly options: ServerRequestOptions; answer(value: unknown): void }> = []
  const client = recordingClient(
    (_request, options) =>
      new Promise((resolve) => {
        asked.push({ options, answer: resolve })
      })
  )
  return { client, asked }
}

for (const { name, namesCalls, start } of ways) {
  t.test(name, async (t) => {
    const { definition, listening } = await start(t)

    async function open(t: Test, owner?: Answerer) {
      const events = recordingEvents(owner)
      // However long it takes: no time passes in which a server could ask more.
      const { connector } = testConnector({ clock: { ...realClock, now: handClock().now } })
      const upstream = await connector.connect(definition, { ...handshake, capabilities }, events)
      t.teardown(() => upstream.close())
      await until(listening, 'its own stream is open')
      const call = (client: Client, tool: string, args: object = {}, signal: AbortSignal = never) =>
        upstream.request(callOf(tool, args), client, signal)
      return { upstream, events, call }
    }

    for (const push of [false, true]) {
      t.test(
        `elicitation, sampling and roots reach the client of the call, asked ${push ? "on the connection's own stream" : 'with the call'}`,
        async (t) => {
          const { events, call } = await open(t)
          const client = recordingClient(answering)
          for (const [tool, method] of [
            ['elicit', 'elicitation/create'],
            ['sample', 'sampling/createMessage'],
            ['roots', 'roots/list']
          ] as const) {
            t.match(told(await call(client, tool, { push })), { result: answers[method] }, tool)
          }
          t.match(client.asked, [
            { method: 'elicitation/create', params: { message: 'who?', requestedSchema: { type: 'object' } } },
            { method: 'sampling/createMessage', params: { maxTokens: 10, messages: [{ role: 'user' }] } },
            { method: 'roots/list' }
          ])
          t.same(events.asked, [])
        }
      )
    }

    t.test("a decline, a cancel and an error are the server's to read", async (t) => {
      const { call } = await open(t)
      for (const action of ['decline', 'cancel'])
        t.match(
          told(
            await call(
              recordingClient(async () => ({ action })),
              'elicit'
            )
          ),
          { result: { action } }
        )
      const refusing = recordingClient(() =>
        Promise.reject(new RpcError({ code: -1, message: 'User rejected sampling request' }))
      )
      t.match(told(await call(refusing, 'sample')), { error: { code: -1, message: 'User rejected sampling request' } })
    })

    t.test('what the server withdraws is withdrawn from the client, and its call goes on', async (t) => {
      const { call } = await open(t)
      const { client, asked } = slow()
      const stop = new AbortController()
      const asking = t.rejects(call(client, 'elicit', {}, stop.signal), { code: 'cancelled' })
      await until(() => asked.length === 1, 'the client is asked')
      await call(recordingClient(), 'withdraw')
      await until(() => asked[0]?.options.signal?.aborted === true, 'it is told')
      t.equal(asked[0]?.options.signal?.reason, 'never mind')
      stop.abort()
      await asking
    })

    t.test('a call that is cancelled while its client is asked takes the server request with it', async (t) => {
      const { call } = await open(t)
      const { client, asked } = slow()
      const stop = new AbortController()
      const asking = t.rejects(call(client, 'elicit', {}, stop.signal), { code: 'cancelled' })
      await until(() => asked.length === 1, 'the client is asked')
      stop.abort('enough')
      await asking
      t.equal(asked[0]?.options.signal?.aborted, true)
      asked[0]?.answer({ action: 'accept' })
      t.match(await call(recordingClient(), 'echo'), { content: [{}] })
      // The server knows of no server request that is still open: it was answered with an error.
      await until(
        async () => (told(await call(recordingClient(), 'withdraw')) as unknown[]).length === 0,
        'no server request is open there'
      )
    })

    t.test(
      `of two calls in flight, ${namesCalls ? 'each asks its own client' : 'neither is guessed: the owner of the connection is asked'}`,
      async (t) => {
        const owner = { action: 'accept', content: { by: 'owner' } }
        const { events, call } = await open(t, async () => owner)
        const bystander = recordingClient()
        const stop = new AbortController()
        const waiting = t.rejects(call(bystander, 'slow', {}, stop.signal), { code: 'cancelled' })
        const own = { action: 'accept', content: { by: 'caller' } }
        const client = recordingClient(async () => own)
        t.match(told(await call(client, 'elicit')), { result: namesCalls ? own : owner })
        t.same([client.asked.length, events.asked.length, bystander.asked.length], namesCalls ? [1, 0, 0] : [0, 1, 0])
        stop.abort()
        await waiting
      }
    )

    t.test('a flood is answered, but hardly any of it reaches the client', async (t) => {
      const { call } = await open(t)
      const client = recordingClient(answering)
      const got = told(await call(client, 'elicit', { count: 300 })) as Array<{
        result?: unknown
        error?: { code: number }
      }>
      t.equal(got.length, 300)
      t.ok(client.asked.length < 60, `${client.asked.length} of 300`)
      t.equal(got.filter(({ result }) => result !== undefined).length, client.asked.length)
      t.equal(got.filter(({ error }) => error?.code === 429).length, 300 - client.asked.length)
    })

    t.test('a change of the roots is told to the server', async (t) => {
      const { upstream, call } = await open(t)
      upstream.notify({ method: 'notifications/roots/list_changed' })
      t.match(told(await call(recordingClient(answering), 'roots')), { result: answers['roots/list'] })
    })

    t.test('an update of a resource that is subscribed to is an event of the connection', async (t) => {
      const { upstream, events, call } = await open(t)
      const ask = (method: string) =>
        upstream.request({ method, params: { uri: 'test://one' } }, recordingClient(), never)
      const client = recordingClient()
      await ask('resources/subscribe')
      await call(client, 'touch')
      await until(() => events.notifications.length === 1, 'the update was heard')
      t.same(events.notifications, [{ method: 'notifications/resources/updated', params: { uri: 'test://one' } }])
      await ask('resources/unsubscribe')
      t.same(await call(client, 'touch').then((result) => (result['content'] as unknown[])[0]), {
        type: 'text',
        text: 'nobody subscribed'
      })
      t.same(client.notified, [])
    })
  })
}

t.test('a server request on the stream of a call that was answered at once is withdrawn', async (t) => {
  const { peer, upstream } = await connected(t)
  const { client, asked } = slow()
  await upstream.request(callOf('elicit', { impatient: true }), client, never)
  t.equal(asked[0]?.options.signal?.aborted, true)
  await until(() => peer.server.answers.size === 1, 'the server is answered all the same')
  t.match([...peer.server.answers.values()], [{ error: { data: { reason: 'cancelled' } } }])
})

t.test('a server that loses its session loses its server requests', async (t) => {
  const { peer, upstream } = await connected(t)
  await until(() => peer.streams() === 1, 'its own stream is open')
  const { client, asked } = slow()
  const stop = new AbortController()
  const asking = t.rejects(upstream.request(callOf('elicit'), client, stop.signal), { code: 'cancelled' })
  await until(() => asked.length === 1, 'the client is asked')
  peer.sessions.clear()
  t.match(await upstream.request(callOf('echo'), recordingClient(), never), { content: [{}] })
  t.equal(asked[0]?.options.signal?.reason, 'the server forgot its session')
  stop.abort()
  await asking
})
