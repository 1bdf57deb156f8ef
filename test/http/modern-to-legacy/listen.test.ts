// Listen streams of 2026-07-28 over upstreams that know `resources/subscribe`: on every transport, over breaks, and
// beside sessions.

import { type Teardown, until } from '../../kit/until.ts'
import t from 'tap'
import { legacyClient } from '../../kit/client.ts'
import { configOf, gateway } from '../../kit/gateway.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { modernListen, type ModernStream } from '../../kit/modern-listen.ts'
import { startSseUpstream } from '../../kit/sse-upstream.ts'
import { isMethod, startUpstream, type HttpUpstream } from '../../kit/upstream.ts'

const updated = 'notifications/resources/updated'
const ada = 'gh_key_of_ada_0123456789'
const bob = 'gh_key_of_bob_0123456789'
const ack = async (stream: ModernStream) =>
  (await stream.next(({ method }) => method === 'notifications/subscriptions/acknowledged')).params.notifications
const stdio = { command: process.execPath, args: [new URL('../../kit/stdio-server.ts', import.meta.url).pathname] }
const one = 'gatehouse://old/test://one'
const two = 'gatehouse://old/test://two'

async function acme(t: Teardown, upstream: unknown, plain: unknown = upstream) {
  const made = await gateway(t, {
    upstreams: { old: upstream, plain },
    endpoints: { default: { upstreams: ['old', 'plain'] }, only: { upstreams: ['old'], prefix: '' } },
    auth: {
      keys: [
        { name: 'ada', key: ada },
        { name: 'bob', key: bob }
      ]
    }
  })
  const listen = async (uris: string[], token = ada, url = made.url()) => {
    const stream = await modernListen(url, { resourceSubscriptions: uris }, { token })
    t.teardown(() => stream.close())
    return stream
  }
  const call = async (name: string, args = {}, token = ada) =>
    (await modernRequest(made.url(), 'tools/call', { name: `old__${name}`, arguments: args }, { token })).json?.result
      ?.content[0].text
  await modernRequest(made.url(), 'tools/list', {}, { token: ada })
  return { made, listen, call }
}

const http = async (t: Teardown, script = {}) => {
  const server = await startUpstream(script)
  t.teardown(() => server.close())
  return server
}
const subscriptions = (server: Awaited<ReturnType<typeof startUpstream>>) =>
  server.server.received.flatMap(({ method, params }) =>
    typeof method === 'string' && /^resources\/(un)?subscribe$/.test(method)
      ? [`${method.slice(10)} ${String((params as { uri: unknown }).uri)}`]
      : []
  )

for (const transport of ['Streamable HTTP', 'HTTP+SSE', 'stdio']) {
  t.test(`over ${transport}: what changes is told under the client's own name, and nothing else`, async (t) => {
    let upstream: unknown = stdio
    if (transport === 'Streamable HTTP') upstream = { type: 'http', url: (await http(t)).url }
    if (transport === 'HTTP+SSE') {
      const server = await startSseUpstream()
      t.teardown(() => server.close())
      upstream = { type: 'sse', url: server.url }
    }
    const { listen, call } = await acme(t, upstream, {
      type: 'http',
      url: (await http(t, { capabilities: { tools: {}, resources: {} } })).url
    })
    const stream = await listen([one, 'gatehouse://plain/test://one'])
    t.same(await ack(stream), { resourceSubscriptions: [one] }, 'a server without subscriptions is not promised')
    t.equal(await call('touch', { uri: 'test://one' }), 'touched')
    await until('it is told', () => stream.said().length === 1)
    await call('touch', { uri: 'test://two' })
    t.equal(await call('touch', { uri: 'test://one' }), 'touched')
    await until('and again', () => stream.said().length === 2)
    t.same(new Set(stream.said()), new Set([`${updated} ${one}`]))
    stream.close()
    await until(
      'the server is told that nobody listens',
      async () => (await call('touch', { uri: 'test://one' })) === 'nobody subscribed'
    )
  })
}

for (const transport of ['Streamable HTTP', 'stdio']) {
  t.test(
    `over ${transport}: a client that takes server requests gets what its calls change, because both use one connection`,
    async (t) => {
      const { made } = await acme(t, transport === 'stdio' ? stdio : { type: 'http', url: (await http(t)).url })
      const options = { token: ada, capabilities: { elicitation: {}, sampling: {}, roots: {} } }
      const stream = await modernListen(made.url(), { resourceSubscriptions: [one] }, options)
      t.teardown(() => stream.close())
      t.same(await ack(stream), { resourceSubscriptions: [one] })
      t.match(
        (
          await modernRequest(
            made.url(),
            'tools/call',
            { name: 'old__touch', arguments: { uri: 'test://one' } },
            options
          )
        ).json,
        { result: { content: [{ text: 'touched' }] } }
      )
      await until('it is told', () => stream.said().length === 1)
      t.same(stream.said(), [`${updated} ${one}`])
    }
  )
}

t.test('one subscription serves all streams of a caller; each caller has its own', async (t) => {
  const up = await http(t)
  const { listen, made } = await acme(t, { type: 'http', url: up.url })
  const [first, second, his] = [
    await listen([one, two]),
    await listen(['test://one'], ada, made.url('only')),
    await listen([one], bob)
  ]
  t.same(
    [await ack(first), await ack(second), await ack(his)],
    [{ resourceSubscriptions: [one, two] }, { resourceSubscriptions: ['test://one'] }, { resourceSubscriptions: [one] }]
  )
  const again = await listen([one])
  t.same(await ack(again), { resourceSubscriptions: [one] })
  // The endpoint is part of whose connection it is.
  t.same(subscriptions(up).toSorted(), [
    'subscribe test://one',
    'subscribe test://one',
    'subscribe test://one',
    'subscribe test://two'
  ])
  first.close()
  await until('what nobody else listens to is ended', () => subscriptions(up).includes('unsubscribe test://two'))
  t.notOk(subscriptions(up).includes('unsubscribe test://one'))
  await until('all connections listen', () => up.streams() >= 3)
  up.broadcast({ jsonrpc: '2.0', method: updated, params: { uri: 'test://one' } })
  await until('each hears of it', () => [again, second, his].every((stream) => stream.said().length === 1))
  t.same(
    [again.said(), second.said(), his.said()],
    [[`${updated} ${one}`], [`${updated} test://one`], [`${updated} ${one}`]]
  )
  for (const stream of [again, second, his]) stream.close()
  await until('all are ended', () => subscriptions(up).filter((line) => line === 'unsubscribe test://one').length === 3)
})

/** @returns what answers each subscription that the server was asked for, in the order in which they came */
function holdSubscriptions(up: HttpUpstream): Array<() => void> {
  const held: Array<() => void> = []
  up.override(
    isMethod('resources/subscribe'),
    (response, { message }) =>
      held.push(() => {
        response.writeHead(200, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: {} }))
      }),
    Infinity
  )
  return held
}

t.test('a stream with many resources takes turns with one that asks for another', async (t) => {
  const up = await http(t)
  const { listen } = await acme(t, { type: 'http', url: up.url })
  const held = holdSubscriptions(up)
  const asked = (): Array<string | undefined> =>
    up.seen
      .filter(isMethod('resources/subscribe'))
      .map(({ message }) => (message as { params: { uri: string } } | undefined)?.params.uri)
  const many = Array.from({ length: 40 }, (_, at) => `gatehouse://old/test://item/${at}`)
  // Their heads come with the acknowledgments.
  const first = listen(many)
  await until('as many as are sent at a time are asked for', () => held.length === 8)
  const second = listen([one])
  await until('the other is asked for', () => {
    held.shift()?.()
    return asked().includes('test://one') || asked().length > many.length
  })
  t.ok(asked().length < many.length, `after ${asked().length} of ${many.length}`)
  await until('all are answered', () => {
    for (const answer of held.splice(0)) answer()
    return asked().length === many.length + 1 && held.length === 0
  })
  t.same(
    [await ack(await first), await ack(await second)],
    [{ resourceSubscriptions: many }, { resourceSubscriptions: [one] }]
  )
})

t.test('a reload before a server has agreed: what leads elsewhere now ends its stream', async (t) => {
  const up = await http(t)
  const other = await http(t, { capabilities: { tools: {}, resources: {} } })
  const options = (upstreams: string[]) => ({
    upstreams: { old: { type: 'http', url: up.url }, plain: { type: 'http', url: other.url } },
    endpoints: { default: { upstreams: ['old', 'plain'] }, only: { upstreams } },
    auth: { keys: [{ name: 'ada', key: ada }] }
  })
  const made = await gateway(t, options(['old']))
  const held = holdSubscriptions(up)
  const listen = (endpoint: string, uri: string) =>
    modernListen(made.url(endpoint), { resourceSubscriptions: [uri] }, { token: ada })
  // Their heads come with the acknowledgments.
  const [moved, staying] = [listen('only', 'test://nowhere'), listen('default', one)]
  await until('the server is asked for both', () => held.length === 2)
  made.reload(configOf(options(['old', 'plain'])))
  for (const answer of held) answer()
  const [gone, kept] = [await moved, await staying]
  t.teardown(() => kept.close())
  await until('it is ended', () => gone.closed)
  t.same(
    gone.messages.map(({ method, result }) => method ?? result.resultType),
    ['notifications/subscriptions/acknowledged', 'notifications/cancelled', 'complete']
  )
  t.same(await ack(kept), { resourceSubscriptions: [one] })
  t.notOk(kept.closed)
})

t.test('a process that dies is started again for those who listen, and what it had may have changed', async (t) => {
  const { listen, call } = await acme(t, stdio, { type: 'http', url: (await http(t)).url })
  const stream = await listen([one, two])
  t.same(await ack(stream), { resourceSubscriptions: [one, two] })
  const pid = await call('pid')
  await call('crash')
  await until('both may have changed', () => stream.said().length === 2)
  t.same(stream.said().toSorted(), [`${updated} ${one}`, `${updated} ${two}`])
  t.not(await call('pid'), pid)
  t.equal(await call('touch', { uri: 'test://one' }), 'touched')
  await until('it is heard', () => stream.said().length === 3)
  t.equal(stream.messages.filter(({ method }) => method === 'notifications/subscriptions/acknowledged').length, 1)
})

t.test('a connection of everybody is subscribed for as long as anybody wants it, of whichever era', async (t) => {
  const up = await http(t)
  const { listen, made } = await acme(t, { type: 'http', url: up.url, isolation: 'shared' })
  const session = await legacyClient(made.url(), ada)
  const stream = await listen([one, two])
  t.same(await ack(stream), { resourceSubscriptions: [one, two] })
  for (const uri of [one, two]) await session.request('resources/subscribe', { uri })
  await session.request('resources/unsubscribe', { uri: one })
  stream.close()
  await until('only what nobody wants any more is ended', () => subscriptions(up).includes('unsubscribe test://one'))
  t.notOk(subscriptions(up).includes('unsubscribe test://two'))
  const late = await listen([two])
  await ack(late)
  await session.request('resources/unsubscribe', { uri: two })
  await until('the shared connection listens', () => up.streams() >= 1)
  up.broadcast({ jsonrpc: '2.0', method: updated, params: { uri: 'test://two' } })
  await until('it is told', () => late.said().length === 1)
  t.notOk(subscriptions(up).includes('unsubscribe test://two'))
})

t.test('a session that listens keeps its connection, however idle', async (t) => {
  const up = await http(t)
  const { listen, call } = await acme(t, { type: 'http', url: up.url, idleMs: 1_500 })
  const stream = await listen([one])
  await ack(stream)
  const gone = () => up.seen.filter(({ method }) => method === 'DELETE').length
  await call('echo', {}, bob)
  await until('the idle one of somebody else is closed', () => gone() > 0)
  const before = gone()
  await call('echo', {}, bob)
  await until('and again', () => gone() > before)
  t.equal(await call('touch', { uri: 'test://one' }), 'touched')
  await until('hers is there', () => stream.said().length === 1)
})
