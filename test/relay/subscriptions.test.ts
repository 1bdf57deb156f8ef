// Subscriptions to resources: who subscribed hears of changes and nobody else does; sessions that share a connection
// share what it is subscribed to; a connection that breaks is told again.

import { startGateway } from './kit.ts'
import t, { type Test } from 'tap'
import { authOf, keyOf } from '../kit/acme-gateway.ts'
import { jsonHeaders, legacyClient, send, type LegacyClient, type Listening } from '../kit/client.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { configOf, gateway, type TestGatewayOptions } from '../kit/gateway.ts'
import { until } from '../kit/until.ts'
import { startSseUpstream } from '../kit/sse-upstream.ts'
import { startUpstream, type HttpUpstream } from '../kit/upstream.ts'

const updated = (uri: string) => ({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
const marker = (data: string) => ({ jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: { data } })
const tools = ['raw', 'received', 'crash', 'echo', 'grow'].map((name) => ({ name, inputSchema: { type: 'object' } }))

const stdio = (script: unknown = {}) => ({
  command: process.execPath,
  args: [new URL('../kit/stdio-server.ts', import.meta.url).pathname, JSON.stringify({ tools, ...(script as object) })]
})

const single = { default: { upstreams: ['up'], prefix: '' } }

async function http(t: Test, script: Parameters<typeof startUpstream>[0] = {}): Promise<HttpUpstream> {
  const upstream = await startUpstream({ tools, ...script })
  t.teardown(() => upstream.close())
  return upstream
}

const urisOf = ({ messages }: Listening): string[] =>
  messages.filter(({ method }) => method === 'notifications/resources/updated').map(({ params }) => params.uri)
const count = ({ seen }: HttpUpstream, method: string): number =>
  seen.filter(({ message }) => message?.['method'] === method).length
const subscribe = async (client: LegacyClient, uri: string) =>
  (await client.request('resources/subscribe', { uri })).json
const unsubscribe = async (client: LegacyClient, uri: string) =>
  (await client.request('resources/unsubscribe', { uri })).json
const emit = (client: LegacyClient, ...messages: object[]) =>
  client.request('tools/call', {
    name: 'raw',
    arguments: { text: messages.map((message) => `${JSON.stringify(message)}\n`).join('') }
  })
/** What the server that a session talks to over stdio was sent. */
const received = async (client: LegacyClient): Promise<string[]> => {
  const { result } = (await client.request('tools/call', { name: 'received' })).json
  return result === undefined ? [] : JSON.parse(result.content[0].text)
}

t.test('over stdio: a subscriber hears of its resource and of what is below it, until it unsubscribes', async (t) => {
  const { url } = await startGateway(t, { upstreams: { up: stdio() }, endpoints: single })
  const ada = await legacyClient(url(), keyOf.ada)
  const stream = await ada.listen()
  t.match(ada.initialized.json.result.capabilities.resources, { subscribe: true })
  await emit(ada, updated('test://one'))
  t.same((await subscribe(ada, 'test://one')).result, {})
  await emit(ada, updated('test://one'), updated('test://one/part'), updated('test://ones'), updated('test://two'))
  await stream.next(({ params }) => params?.uri === 'test://one/part')
  t.same((await unsubscribe(ada, 'test://one')).result, {})
  await emit(ada, updated('test://one'))
  await subscribe(ada, 'test://two')
  await emit(ada, updated('test://two'))
  await stream.next(({ params }) => params?.uri === 'test://two')
  t.same(
    urisOf(stream),
    ['test://one', 'test://one/part', 'test://two'],
    'nothing from before, from after, or about others'
  )
  t.same(
    (await received(ada)).filter((method) => method?.startsWith('resources/')),
    ['resources/subscribe', 'resources/unsubscribe', 'resources/subscribe']
  )
})

t.test(
  'over HTTP: sessions of one and of two principals each hear of what they subscribed to themselves',
  async (t) => {
    const upstream = await http(t)
    const { url } = await startGateway(t, { upstreams: { up: { type: 'http', url: upstream.url } }, endpoints: single })
    const clients = await Promise.all([keyOf.ada, keyOf.ada, keyOf.bob].map((key) => legacyClient(url(), key)))
    const streams = await Promise.all(clients.map((client) => client.listen()))
    const [first, second, third] = clients as [LegacyClient, LegacyClient, LegacyClient]
    await subscribe(first, 'test://one')
    await subscribe(third, 'test://two')
    await second.request('tools/call', { name: 'echo' })
    t.equal(count(upstream, 'resources/subscribe'), 2, 'each on its own connection')
    await until('the streams of the listing and of each session are open', () => upstream.streams() === 4)
    upstream.broadcast(updated('test://one'))
    upstream.broadcast(updated('test://two'))
    await streams[0]?.next(({ params }) => params?.uri === 'test://one')
    await streams[2]?.next(({ params }) => params?.uri === 'test://two')
    await second.request('tools/call', { name: 'grow', arguments: { name: 'later' } })
    await streams[1]?.next(({ method }) => method === marker('').method)
    t.same(streams.map(urisOf), [['test://one'], [], ['test://two']])
  }
)

t.test(
  'a shared connection is subscribed once for all of its sessions, and unsubscribed with the last one',
  async (t) => {
    const upstream = await http(t)
    const { url } = await startGateway(t, {
      upstreams: { up: { type: 'http', url: upstream.url, isolation: 'shared' } },
      endpoints: single
    })
    const [ada, bob, other] = (await Promise.all(
      [keyOf.ada, keyOf.bob, keyOf.bob].map((key) => legacyClient(url(), key))
    )) as [LegacyClient, LegacyClient, LegacyClient]
    const streams = await Promise.all([ada, bob, other].map((client) => client.listen()))
    const answers = await Promise.all([
      subscribe(ada, 'test://one'),
      subscribe(bob, 'test://one'),
      subscribe(ada, 'test://one')
    ])
    t.same(
      answers.map(({ result }) => result),
      [{}, {}, {}]
    )
    t.equal(count(upstream, 'resources/subscribe'), 1)
    await until('the upstream can be heard', () => upstream.streams() === 1)
    upstream.broadcast(updated('test://one'))
    await Promise.all(streams.slice(0, 2).map((stream) => stream.next(({ params }) => params?.uri === 'test://one')))

    t.same((await unsubscribe(ada, 'test://one')).result, {})
    t.same((await unsubscribe(other, 'test://one')).result, {}, 'what it never had')
    t.equal(count(upstream, 'resources/unsubscribe'), 0)
    upstream.broadcast(updated('test://one'))
    await until('the one that is left hears of it again', () => urisOf(streams[1] as Listening).length === 2)
    t.same(
      streams.map((stream) => urisOf(stream).length),
      [1, 2, 0]
    )
    await bob.end()
    await until('the end of its session ends the subscription', () => count(upstream, 'resources/unsubscribe') === 1)
    t.same((await subscribe(ada, 'test://one')).result, {})
    t.equal(count(upstream, 'resources/subscribe'), 2, 'and it can be made again')
  }
)

t.test('the connection of a principal is shared by its sessions only', async (t) => {
  const upstream = await http(t)
  const { url } = await startGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url, isolation: 'principal' } },
    endpoints: single
  })
  const clients = await Promise.all([keyOf.ada, keyOf.ada, keyOf.bob].map((key) => legacyClient(url(), key)))
  for (const client of clients) t.same((await subscribe(client, 'test://one')).result, {})
  t.equal(count(upstream, 'resources/subscribe'), 2)
})

t.test('behind an endpoint of several upstreams the URI leads to its own, in the spelling of the client', async (t) => {
  const [one, two] = [await http(t), await http(t, { capabilities: { tools: {}, resources: {} } })]
  const upstreams = { one: { type: 'http', url: one.url }, two: { type: 'http', url: two.url } }
  const { url } = await startGateway(t, {
    upstreams,
    endpoints: { default: { upstreams: ['one', 'two'] }, poor: { upstreams: ['two'] } }
  })
  const ada = await legacyClient(url(), keyOf.ada)
  const stream = await ada.listen()
  t.same((await subscribe(ada, 'gatehouse://one/test://one')).result, {})
  t.same(
    one.seen
      .filter(({ message }) => message?.['method'] === 'resources/subscribe')
      .map(({ message }) => message?.['params']),
    [{ uri: 'test://one' }]
  )
  await until('the streams of the listing and of the session are open', () => one.streams() === 2)
  one.broadcast(updated('test://one'))
  one.broadcast(updated('test://one#part'))
  await until('both are heard', () => urisOf(stream).length === 2)
  t.same(urisOf(stream), ['gatehouse://one/test://one', 'gatehouse://one/test://one#part'])

  t.match(ada.initialized.json.result.capabilities.resources, { subscribe: true }, 'one that can is enough')
  const refused = await subscribe(ada, 'gatehouse://two/test://one')
  t.match(refused.error, { code: -32602, message: /two does not support subscriptions/ })
  t.equal(count(two, 'resources/subscribe'), 0)
  t.match((await subscribe(ada, 'gatehouse://three/test://one')).error, { code: -32002 })
  const poor = await legacyClient(url('poor'), keyOf.ada)
  t.notOk(poor.initialized.json.result.capabilities.resources.subscribe)
})

t.test('what the server refuses is not subscribed, and its error names the URI of the client', async (t) => {
  const upstream = await http(t)
  const { url } = await startGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url }, b: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up', 'b'] } }
  })
  const ada = await legacyClient(url(), keyOf.ada)
  const stream = await ada.listen()
  upstream.override(
    ({ message }) => message?.['method'] === 'resources/subscribe',
    (response, { message }) => {
      response.setHeader('content-type', 'application/json').end(
        JSON.stringify({
          jsonrpc: '2.0',
          id: message?.['id'],
          error: { code: -32002, message: 'no', data: { uri: 'test://gone' } }
        })
      )
    },
    1
  )
  t.match((await subscribe(ada, 'gatehouse://up/test://gone')).error, {
    code: -32002,
    message: 'no',
    data: { uri: 'gatehouse://up/test://gone' }
  })
  t.same((await subscribe(ada, 'gatehouse://up/test://one')).result, {})
  await until('the upstream can be heard', () => upstream.streams() >= 3)
  upstream.broadcast(updated('test://gone'))
  upstream.broadcast(updated('test://one'))
  await stream.next(({ params }) => params?.uri === 'gatehouse://up/test://one')
  t.same(urisOf(stream), ['gatehouse://up/test://one'])
})

for (const isolation of ['session', 'shared']) {
  t.test(
    `isolation ${isolation}: a connection that breaks is opened again and subscribed for a client that listens`,
    async (t) => {
      // No keep-alive within the test: it would find a broken connection too.
      const { url } = await startGateway(t, {
        upstreams: { up: { ...stdio(), isolation } },
        endpoints: single,
        overrides: { keepAliveMs: 600_000 }
      })
      const ada = await legacyClient(url(), keyOf.ada)
      const stream = await ada.listen()
      await subscribe(ada, 'test://one')
      t.same(urisOf(stream), [])
      await ada.request('tools/call', { name: 'crash' })
      await stream.next(({ params }) => params?.uri === 'test://one')
      t.pass('what changed meanwhile nobody knows, so it counts as changed')
      t.ok((await received(ada)).includes('resources/subscribe'))
    }
  )
}

t.test('for a client that does not listen it is subscribed with the next call', async (t) => {
  const { url } = await startGateway(t, { upstreams: { up: stdio() }, endpoints: single })
  const ada = await legacyClient(url(), keyOf.ada)
  await subscribe(ada, 'test://one')
  await ada.request('tools/call', { name: 'crash' })
  await until('it is told again', async () => (await received(ada)).includes('resources/subscribe'))
})

t.test('for a client that begins to listen it is opened again soon', async (t) => {
  const { url } = await startGateway(t, {
    upstreams: { up: stdio() },
    endpoints: single,
    overrides: { keepAliveMs: 50 }
  })
  const ada = await legacyClient(url(), keyOf.ada)
  await subscribe(ada, 'test://one')
  await ada.request('tools/call', { name: 'crash' })
  const stream = await ada.listen()
  await stream.next(({ params }) => params?.uri === 'test://one')
  t.pass('without a call')
})

t.test('after a reload the subscriptions go on at the connection that takes over', async (t) => {
  const [before, after] = [await http(t), await http(t)]
  const auth = authOf(await forgingIssuer(t, { resource: 'urn:none', now: Date.now() }))
  const options = (upstream: HttpUpstream): TestGatewayOptions => ({
    auth,
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: single
  })
  const made = await gateway(t, options(before))
  const ada = await legacyClient(made.url(), keyOf.ada)
  const stream = await ada.listen()
  await subscribe(ada, 'test://one')
  made.reload(configOf(options(after)))
  await until('the new one is told', () => count(after, 'resources/subscribe') === 1)
  await until('it can be heard', after.allListening)
  after.broadcast(updated('test://one'))
  await stream.next(({ params }) => params?.uri === 'test://one')
  t.pass('and heard')
})

t.test('invalid parameters are refused, and a session has at most a thousand subscriptions', async (t) => {
  const upstream = await http(t)
  const { url } = await startGateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url, isolation: 'shared' } },
    endpoints: single
  })
  const ada = await legacyClient(url(), keyOf.ada, '2025-03-26')
  for (const params of [{}, { uri: 7 }, { uri: `test://${'x'.repeat(9_000)}` }, undefined])
    t.match((await ada.request('resources/subscribe', params)).json.error, { code: -32602 })
  const batch = async (from: number) =>
    (
      await send(url(), {
        headers: { ...jsonHeaders, authorization: `Bearer ${keyOf.ada}`, 'mcp-session-id': ada.sessionId },
        body: JSON.stringify(
          Array.from({ length: 50 }, (_, at) => ({
            jsonrpc: '2.0',
            id: from + at,
            method: 'resources/subscribe',
            params: { uri: `test://${from + at}` }
          }))
        )
      })
    ).json as Array<{ error?: unknown }>
  for (let from = 0; from < 1_000; from += 50)
    t.same(
      (await batch(from)).filter(({ error }) => error !== undefined),
      []
    )
  t.match((await subscribe(ada, 'test://more')).error, { code: 429 })
  t.same((await subscribe(ada, 'test://7')).result, {}, 'one that it has')
  t.same((await unsubscribe(ada, 'test://7')).result, {})
  t.same((await subscribe(ada, 'test://more')).result, {}, 'in place of one that it had')
})

t.test(
  'a server that answers no subscription after a break is asked for a few at a time, and for all in the end',
  async (t) => {
    const upstream = await startSseUpstream({ tools })
    t.teardown(() => upstream.close())
    const { url, log } = await startGateway(t, {
      upstreams: { up: { type: 'http', url: upstream.url } },
      endpoints: single
    })
    const ada = await legacyClient(url(), keyOf.ada)
    await ada.listen()
    const uris = Array.from({ length: 40 }, (_, index) => `test://${index}`)
    await Promise.all(uris.map((uri) => subscribe(ada, uri)))
    t.equal(count(upstream, 'resources/subscribe'), uris.length)

    let refusing = true
    let refused = 0
    upstream.override(
      ({ message }) => refusing && message?.['method'] === 'resources/subscribe',
      (response) => {
        refused++
        response.writeHead(500).end()
      },
      Infinity
    )
    upstream.cut()
    const failures = (): number => log.filter(({ msg }) => String(msg).includes('could not be made again')).length
    await until('it has failed twice', () => failures() >= 2)
    refusing = false
    await until('all are subscribed again', () => count(upstream, 'resources/subscribe') - refused === 2 * uris.length)
    t.ok(refused <= 8 * failures(), `${refused} requests in ${failures()} attempts`)
  }
)
