// `subscriptions/listen` on the wire: the acknowledgment first, every message with the id of its request, and only what
// was asked for.

import { type Teardown, until } from '../../kit/until.ts'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { gateway, key } from '../../kit/gateway.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { modernListen, type ModernStream } from '../../kit/modern-listen.ts'
import { startModern } from '../../kit/modern-server.ts'

const idKey = 'io.modelcontextprotocol/subscriptionId'
const acknowledged = 'notifications/subscriptions/acknowledged'
const ack = (stream: ModernStream) => stream.next(({ method }) => method === acknowledged)
const said = (stream: ModernStream, method: string) => stream.next((message) => message.method === method)

async function acme(t: Teardown, limits: Record<string, number> = {}) {
  const upstream = await startModern()
  t.teardown(() => upstream.close())
  const made = await gateway(t, {
    upstreams: { up: { type: 'http', url: upstream.url } },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    limits,
    overrides: { keepAliveMs: 200 }
  })
  const listen = async (filter: unknown, options = {}) => {
    const stream = await modernListen(made.url(), filter, { token: key, ...options })
    t.teardown(() => stream.close())
    return stream
  }
  // Known before anybody listens, so that no test waits for the listing to be read once a second.
  await modernRequest(made.url(), 'tools/list', {}, { token: key })
  await until('the lists are watched', () => upstream.server.listens.size === 1)
  return {
    upstream,
    made,
    listen,
    grow: () => modernRequest(made.url(), 'tools/call', { name: 'grow', arguments: {} }, { token: key })
  }
}

t.test('a stream begins with its acknowledgment and has no ids of events', async (t) => {
  const { listen } = await acme(t)
  const stream = await listen(
    { toolsListChanged: true, resourcesListChanged: false, resourceSubscriptions: ['test://one'] },
    { id: 'a' }
  )
  t.equal(stream.status, 200)
  t.match(stream.headers, {
    'content-type': /^text\/event-stream/,
    'x-accel-buffering': 'no',
    'cache-control': /no-store/
  })
  t.notOk('mcp-session-id' in stream.headers)
  await ack(stream)
  const expected = {
    jsonrpc: '2.0',
    method: acknowledged,
    params: {
      notifications: { toolsListChanged: true, resourceSubscriptions: ['test://one'] },
      _meta: { [idKey]: 'a' }
    }
  }
  t.equal(stream.text.replaceAll(': keep-alive\n\n', ''), `event: message\ndata: ${JSON.stringify(expected)}\n\n`)
  await until('it is kept alive', () => stream.text.includes('\n\n: keep-alive\n\n'))
  t.notMatch(stream.text, /^(id|retry):/m)
})

t.test('streams with the ids 1 and "1" are two streams, each with its own copies', async (t) => {
  const { listen, upstream, grow } = await acme(t)
  const [number, text, again] = [
    await listen({ toolsListChanged: true }, { id: 1 }),
    await listen({ toolsListChanged: true, resourceSubscriptions: ['test://one'] }, { id: '1' }),
    await listen({ resourceSubscriptions: ['test://one'] }, { id: 1 })
  ]
  await Promise.all([number, text, again].map(ack))
  await grow()
  await Promise.all([number, text].map((stream) => said(stream, 'notifications/tools/list_changed')))
  upstream.server.updated('test://one')
  await Promise.all([text, again].map((stream) => said(stream, 'notifications/resources/updated')))
  for (const [stream, id] of [
    [number, 1],
    [text, '1'],
    [again, 1]
  ] as const) {
    t.same(
      stream.messages.map(({ params }) => params._meta[idKey]),
      stream.messages.map(() => id),
      typeof id
    )
  }
  t.same(number.said(), ['notifications/tools/list_changed'])
  t.same(text.said(), ['notifications/tools/list_changed', 'notifications/resources/updated test://one'])
  t.same(again.said(), ['notifications/resources/updated test://one'])
})

t.test('a change in the lists is sent soon, once, and only to clients that asked for it', async (t) => {
  const { listen, upstream } = await acme(t)
  const [tools, prompts, nothing] = [
    await listen({ toolsListChanged: true }),
    await listen({ promptsListChanged: true }),
    await listen({})
  ]
  await Promise.all([tools, prompts, nothing].map(ack))
  t.same(nothing.messages[0].params.notifications, {})
  // A second after the last reading: an upstream may be read once a second only.
  await until('it is time to read again', async () => {
    upstream.server.script.prompts.push({ name: `p${upstream.server.script.prompts.length}` })
    upstream.server.listChanged('prompts')
    return prompts.said().length > 0
  })
  t.same(tools.said(), [])
  t.same(new Set(prompts.said()), new Set(['notifications/prompts/list_changed']))
  upstream.server.listChanged('tools')
  upstream.server.script.tools.push({ name: 'new', inputSchema: { type: 'object' } })
  upstream.server.listChanged('tools')
  await said(tools, 'notifications/tools/list_changed')
  t.same(tools.said(), ['notifications/tools/list_changed'])
  t.same(nothing.said(), [])
  t.notOk(prompts.said().includes('notifications/tools/list_changed'))
})

t.test('progress and log messages of calls stay on the answers of the calls', async (t) => {
  const { listen, made } = await acme(t)
  const stream = await listen(
    { toolsListChanged: true, resourceSubscriptions: ['test://one'] },
    { meta: { 'io.modelcontextprotocol/logLevel': 'debug', progressToken: 7 } }
  )
  await ack(stream)
  const progress = await modernRequest(
    made.url(),
    'tools/call',
    { name: 'progress', arguments: {} },
    { token: key, meta: { progressToken: 7 } }
  )
  const log = await modernRequest(
    made.url(),
    'tools/call',
    { name: 'log', arguments: {} },
    { token: key, meta: { 'io.modelcontextprotocol/logLevel': 'debug' } }
  )
  t.ok(progress.messages.length > 1 && log.messages.length > 1)
  await modernRequest(made.url(), 'tools/call', { name: 'touch', arguments: {} }, { token: key })
  await said(stream, 'notifications/resources/updated')
  t.same(stream.said(), ['notifications/resources/updated test://one'])
})

t.test('what is refused is refused before the stream begins, with its status', async (t) => {
  const { listen, upstream } = await acme(t)
  const before = upstream.server.requests('subscriptions/listen').length
  const cases = [
    [{}, { headers: { accept: 'application/json' } }, 406, 406],
    [{ toolsListChanged: 'yes' }, {}, 200, -32602],
    [undefined, {}, 200, -32602],
    [{ taskIds: ['x'] }, {}, 400, -32021],
    [{ padding: 'x'.repeat(256 * 1024) }, { id: 'long' }, 413, 413],
    [{}, { token: 'gh_wrong_key_0123456789' }, 401, 401],
    [{}, { headers: { 'mcp-method': 'tools/list' } }, 400, -32020]
  ] as const
  for (const [filter, options, status, code] of cases) {
    const refused = await listen(filter, options)
    await refused.ended
    t.equal(refused.status, status)
    t.match(refused.headers['content-type'], /^application\/json/)
    t.equal(refused.messages[0].error.code, code)
  }
  t.equal(upstream.server.requests('subscriptions/listen').length, before, 'nothing has reached an upstream')
  t.equal((await listen({ padding: 'x'.repeat(255 * 1024) })).status, 200, 'a long one that is not too long')
  const [first] = await Promise.all(Array.from({ length: 99 }, () => listen({})))
  t.equal((await listen({})).status, 429)
  first?.close()
  await until('there is a place again', async () => (await listen({})).status === 200)
})

t.test('an open stream keeps nothing of its request', async (t) => {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const { listen } = await acme(t)
  const used = async (): Promise<number> => {
    // What a request leaves is let go with the turns of the loop that end it.
    for (let n = 0; n < 5; n++) {
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
      gc()
    }
    return process.memoryUsage().heapUsed
  }
  const opened = async (filter: object): Promise<void> => {
    for (let n = 0; n < 40; n++) await ack(await listen(filter))
  }
  await opened({})
  const before = await used()
  // Many small values: a long text would be one allocation beside the heap.
  await opened({ toolsListChanged: true, padding: Array.from({ length: 20_000 }, (_, n) => ({ n })) })
  const grown = (await used()) - before
  t.ok(grown < 10_000_000, `${grown} bytes for 40 streams`)
})

t.test('a caller without tasks is told which capability is missing', async (t) => {
  const { listen } = await acme(t)
  const refused = await listen({ taskIds: ['x'] }, { id: 5 })
  await refused.ended
  t.match(refused.messages[0], {
    id: 5,
    error: { code: -32021, data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } } }
  })
})
