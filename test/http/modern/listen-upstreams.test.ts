// Listen streams merged of several real upstreams: what each client hears, over breaks, and what is left when it goes.

import { type Teardown, until } from '../../kit/until.ts'
import t from 'tap'
import { gateway } from '../../kit/gateway.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { modernListen, type ModernStream } from '../../kit/modern-listen.ts'
import { modernStdio, startModern, type ModernUpstream } from '../../kit/modern-server.ts'
import { startUpstream } from '../../kit/upstream.ts'

const updated = 'notifications/resources/updated'
const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
const ada = 'gh_key_of_ada_0123456789'
const bob = 'gh_key_of_bob_0123456789'
const eve = 'gh_key_of_eve_0123456789'
const ack = async (stream: ModernStream) =>
  (await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')).params.notifications
/** Streams of clients: the listing has one without resources. */
const legs = ({ server }: ModernUpstream) =>
  [...server.listens].filter(({ filter }) => 'resourceSubscriptions' in filter || 'taskIds' in filter)

async function acme(t: Teardown, more: { overrides?: { keepAliveMs: number } } = {}) {
  const [one, two] = [await startModern({ name: 'one' }), await startModern({ name: 'two' })]
  t.teardown(() => Promise.all([one.close(), two.close()]))
  const upstreams = { one: { type: 'http', url: one.url }, two: { type: 'http', url: two.url } }
  const made = await gateway(t, {
    ...more,
    upstreams,
    endpoints: { default: { upstreams: ['one', 'two'] }, other: { upstreams: ['one', 'two'] } },
    auth: {
      keys: [
        { name: 'ada', key: ada },
        { name: 'bob', key: bob }
      ]
    },
    tenants: {
      evil: {
        auth: { keys: [{ name: 'ada', key: eve }] },
        upstreams,
        endpoints: { default: { upstreams: ['one', 'two'] } }
      }
    }
  })
  const listen = async (
    filter: unknown,
    {
      url = made.url(),
      token = ada,
      ...options
    }: { url?: string; token?: string; capabilities?: Record<string, unknown>; id?: number } = {}
  ) => {
    const stream = await modernListen(url, filter, { token, ...options })
    t.teardown(() => stream.close())
    return stream
  }
  const call = (name: string, args = {}, { url = made.url(), token = ada } = {}) =>
    modernRequest(url, 'tools/call', { name, arguments: args }, { token, capabilities: tasks })
  return { one, two, made, listen, call }
}

t.test('updates of two upstreams are one stream, each under its own name', async (t) => {
  const { one, two, listen } = await acme(t)
  const uris = ['gatehouse://one/test://one', 'gatehouse://two/test://one', 'gatehouse://two/test://two']
  const stream = await listen({ resourceSubscriptions: [...uris, 'gatehouse://none/test://one', 'nowhere://'] })
  t.same(await ack(stream), { resourceSubscriptions: uris })
  t.same(
    [legs(one).map(({ filter }) => filter), legs(two).map(({ filter }) => filter)],
    [[{ resourceSubscriptions: ['test://one'] }], [{ resourceSubscriptions: ['test://one', 'test://two'] }]]
  )
  for (const { server } of [one, two]) for (const uri of ['test://one', 'test://two']) server.updated(uri)
  await until('all three are there', () => stream.said().length === 3)
  t.same(
    stream.said().toSorted(),
    uris.map((uri) => `${updated} ${uri}`)
  )
})

t.test('what a stream is told is for nobody else, be it of the same tenant or another', async (t) => {
  const { one, listen, made } = await acme(t)
  const hers = await listen({ resourceSubscriptions: ['gatehouse://one/test://one'] })
  const others = [
    await listen({ toolsListChanged: true }),
    await listen(
      { resourceSubscriptions: ['gatehouse://one/test://two', 'gatehouse://two/test://one'] },
      { token: bob }
    ),
    await listen(
      { resourceSubscriptions: ['gatehouse://one/test://two'] },
      { token: eve, url: made.url('default', 'evil') }
    )
  ]
  await Promise.all([hers, ...others].map(ack))
  t.equal(legs(one).length, 3)
  // An upstream that says more than it was asked, on every stream that it has.
  for (const { id, peer } of one.server.listens) {
    for (const uri of ['test://one', 'test://o', 'test://one/more'])
      peer.reply({
        jsonrpc: '2.0',
        method: updated,
        params: { uri, _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
      })
  }
  one.server.updated('test://two')
  await until(
    'it is told to whom it belongs',
    () => hers.said().length === 2 && others[1]?.said().length === 1 && others[2]?.said().length === 1
  )
  t.same(hers.said(), [`${updated} gatehouse://one/test://one`, `${updated} gatehouse://one/test://one/more`])
  t.same(
    others.map((stream) => stream.said()),
    [[], [`${updated} gatehouse://one/test://two`], [`${updated} gatehouse://one/test://two`]]
  )
})

t.test('a stream that breaks at an upstream is made whole again, and the client is told to look', async (t) => {
  const { one, two, listen } = await acme(t)
  const stream = await listen({ resourceSubscriptions: ['gatehouse://one/test://one', 'gatehouse://two/test://one'] })
  await ack(stream)
  one.server.endListens('broken')
  await until('it is open again', () => legs(one).length === 1)
  await until('it may have changed meanwhile', () => stream.said().length === 1)
  one.server.updated('test://one')
  await until('it is heard again', () => stream.said().length === 2)
  t.same(new Set(stream.said()), new Set([`${updated} gatehouse://one/test://one`]))
  one.server.endListens('gracefully')
  await until('it is open again', () => legs(one).length === 1)
  two.server.updated('test://one')
  await until('the other upstream was never away', () =>
    stream.said().includes(`${updated} gatehouse://two/test://one`)
  )
  t.equal(stream.messages.filter(({ method }) => method === 'notifications/subscriptions/acknowledged').length, 1)
  t.notOk(stream.closed)
})

t.test('a client that goes leaves nothing behind, and no keep-alive has to find out', async (t) => {
  const { one, two, listen } = await acme(t, { overrides: { keepAliveMs: 600_000 } })
  const filter = {
    toolsListChanged: true,
    resourceSubscriptions: ['gatehouse://one/test://one', 'gatehouse://two/test://one']
  }
  const streams = [await listen(filter), await listen(filter), await listen(filter)]
  await Promise.all(streams.map(ack))
  t.same([legs(one).length, legs(two).length], [3, 3])
  const [leaving, ...staying] = streams
  leaving?.close()
  await until('its streams at the upstreams are closed', () => legs(one).length === 2 && legs(two).length === 2)
  for (const stream of staying) stream.close()
  await until('all are', () => legs(one).length + legs(two).length === 0)
  t.ok(one.server.listens.size <= 1, 'but that of the lists')
})

t.test(
  'a client that goes before the acknowledgment leaves nothing behind either, and a slow upstream is not waited for',
  async (t) => {
    const { one, two, listen, made } = await acme(t)
    const filter = { resourceSubscriptions: ['gatehouse://one/test://one', 'gatehouse://two/test://one'] }
    await modernRequest(made.url(), 'tools/list', {}, { token: ada })
    const waiting = new Set<unknown>()
    one.override(
      ({ message }) => JSON.stringify(message).includes('resourceSubscriptions'),
      (response) => {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': wait\n\n')
        waiting.add(response)
        response.once('close', () => waiting.delete(response))
      },
      2
    )
    const stop = new AbortController()
    const early = modernListen(made.url(), filter, { token: ada, signal: stop.signal }).catch(() => 'gone')
    await until('both upstreams are asked', () => waiting.size === 1 && legs(two).length === 1)
    stop.abort()
    t.equal(await early, 'gone')
    await until('neither is any more', () => waiting.size === 0 && legs(two).length === 0)
    const patient = await listen(filter)
    t.same(await ack(patient), { resourceSubscriptions: filter.resourceSubscriptions.slice(1) })
    await until('what was not promised is not kept open', () => waiting.size === 0)
    t.equal(legs(two).length, 1)
  }
)

t.test('a task is told to its owner, and to nobody who has only heard of its id', async (t) => {
  const { one, listen, call, made } = await acme(t)
  const { json } = await call('one__task')
  const { taskId } = json.result
  t.notOk(one.server.tasks.all.has(taskId), 'the upstream knows it by another id')
  const stream = await listen({ taskIds: [taskId, [...one.server.tasks.all.keys()][0]] }, { capabilities: tasks })
  t.same(await ack(stream), { taskIds: [taskId] })
  for (const other of [
    await listen({ taskIds: [taskId] }, { capabilities: tasks, token: bob }),
    await listen({ taskIds: [taskId] }, { capabilities: tasks, url: made.url('other') }),
    await listen({ taskIds: [taskId] }, { capabilities: tasks, token: eve, url: made.url('default', 'evil') })
  ]) {
    t.same(await ack(other), {})
  }
  await call('one__finish')
  const told = await stream.next(({ method }) => method === 'notifications/tasks')
  t.match(told.params, { taskId, status: 'completed', result: { content: [{ text: 'made' }] } })
  t.same(stream.said(), [`notifications/tasks ${taskId}`])
})

t.test('servers over stdio are listened to as well, and those that have no subscriptions are left out', async (t) => {
  const old = await startUpstream({ capabilities: { resources: {} } })
  t.teardown(() => old.close())
  const made = await gateway(t, {
    upstreams: { pipe: modernStdio(), old: { type: 'http', url: old.url } },
    endpoints: { default: { upstreams: ['pipe', 'old'] } },
    auth: { keys: [{ name: 'ada', key: ada }] }
  })
  await modernRequest(made.url(), 'tools/list', {}, { token: ada })
  const uris = ['gatehouse://pipe/test://one', 'gatehouse://old/test://one']
  const [first, second] = [
    await modernListen(made.url(), { resourceSubscriptions: uris }, { token: ada, id: 1 }),
    await modernListen(made.url(), { resourceSubscriptions: uris }, { token: ada, id: 1 })
  ]
  t.teardown(() => {
    for (const stream of [first, second]) stream.close()
  })
  t.same(
    [await ack(first), await ack(second)],
    [{ resourceSubscriptions: uris.slice(0, 1) }, { resourceSubscriptions: uris.slice(0, 1) }]
  )
  const call = async (name: string) =>
    (await modernRequest(made.url(), 'tools/call', { name: `pipe__${name}`, arguments: {} }, { token: ada })).json
      .result.content[0].text
  await call('touch')
  await until('both hear of it', () => first.said().length === 1 && second.said().length === 1)
  t.same(first.said(), [`${updated} gatehouse://pipe/test://one`])
  const pid = await call('pid')
  await call('crash').catch(() => {})
  await until(
    'another process is listened to, and whatever it holds may be new',
    () => first.said().length > 1 && second.said().length > 1
  )
  t.not(await call('pid'), pid)
  first.close()
  await until(
    'the server is told that nobody listens any more',
    async () => (JSON.parse(await call('cancelled')) as unknown[]).length > 0
  )
  await call('touch')
  await until('the other one goes on', () => second.said().length > 2)
})

t.test('of parts of a resource nothing is said that the endpoint denies, or policy does', async (t) => {
  const resources = [{ uri: 'doc://all', name: 'all' }]
  const [modern, legacy] = [await startModern({ resources }), await startUpstream({ resources })]
  t.teardown(() => Promise.all([modern.close(), legacy.close()]))
  const made = await gateway(t, {
    upstreams: { modern: { type: 'http', url: modern.url }, legacy: { type: 'http', url: legacy.url } },
    endpoints: { default: { upstreams: ['modern', 'legacy'], deny: { resources: ['*/doc://all/secret*'] } } },
    auth: { keys: [{ name: 'ada', key: ada }] },
    policy: {
      default: 'allow',
      rules: [{ name: 'no', effect: 'deny', what: { names: ['doc://all/private*'], kinds: ['resource'] } }]
    }
  })
  const uris = ['gatehouse://modern/doc://all', 'gatehouse://legacy/doc://all']
  const stream = await modernListen(made.url(), { resourceSubscriptions: uris }, { token: ada })
  t.teardown(() => stream.close())
  t.same(await ack(stream), { resourceSubscriptions: uris })
  await until('the older server has the stream of the session', () => legacy.allListening())
  const parts = ['doc://all/secret/1', 'doc://all/private/1', 'doc://all/open/1', 'doc://all']
  for (const uri of parts) {
    legacy.broadcast({ jsonrpc: '2.0', method: updated, params: { uri } })
    for (const { id, peer } of legs(modern))
      peer.reply({
        jsonrpc: '2.0',
        method: updated,
        params: { uri, _meta: { 'io.modelcontextprotocol/subscriptionId': id } }
      })
  }
  const told = uris.flatMap((uri) => [uri, `${uri}/open/1`]).map((uri) => `${updated} ${uri}`)
  await until('the last of each is there', () => uris.every((uri) => stream.said().includes(`${updated} ${uri}`)))
  t.same(stream.said().toSorted(), told.toSorted())
})
