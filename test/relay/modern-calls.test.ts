// Modern calls from a public name to the upstream and back: routing, what crosses over, errors, connections.

import t from 'tap'
import { until } from '../kit/until.ts'
import { keyPrincipal } from '../../src/auth/principal.ts'
import { type Notification, type Request, RpcError } from '../../src/protocol/messages.ts'
import { noClient } from '../../src/protocol/seams.ts'
import { modernSetup } from './modern-kit.ts'
import { tool } from './kit.ts'

const echo = (request: Request) => ({
  resultType: 'complete',
  content: [],
  structuredContent: request.params ?? null,
  future: { kept: true }
})
const thrown = async (promise: Promise<unknown>): Promise<unknown> =>
  await promise.then(
    () => undefined,
    (error: unknown) => error
  )

t.test(
  'a call reaches the upstream under its own name, without what is ours, and its result comes back whole',
  async (t) => {
    const setup = await modernSetup(t, { one: { tools: [tool('echo')], answer: echo }, two: { tools: [tool('echo')] } })
    const params = {
      name: 'one__echo',
      arguments: { uri: 'gatehouse://one/x' },
      _meta: { a: 1, traceparent: '00-x', baggage: 'secret=1' },
      task: {},
      future: [1]
    }
    const { task: _task, ...rest } = params
    const sent = { ...rest, name: 'echo', _meta: { a: 1, traceparent: '00-x' } }
    t.same(await setup.call('tools/call', params), echo({ method: '', params: sent }))
    t.same(setup.requests('tools/call'), [{ method: 'tools/call', params: sent }])
  }
)

t.test('what the endpoint does not offer is an unknown method; unknown names are wrong parameters', async (t) => {
  const setup = await modernSetup(t, {
    one: { tools: [tool('echo')], capabilities: { tools: {}, resources: {} }, answer: echo },
    two: { capabilities: { tools: {} } }
  })
  for (const method of [
    'prompts/list',
    'prompts/get',
    'completion/complete',
    'tasks/get',
    'initialize',
    'ping',
    'resources/subscribe'
  ]) {
    await t.rejects(setup.call(method, { name: 'x' }), { code: 'unknown_method' }, method)
  }
  await t.rejects(setup.call('tools/call', { name: 'one__nope' }), { code: 'invalid_params' })
  await t.rejects(setup.call('tools/call', { name: 'one__echo', arguments: [] }), { code: 'invalid_params' })
  await t.rejects(setup.call('tools/list', { cursor: 'x' }), { code: 'invalid_params' })
  await t.rejects(setup.call('resources/read', { uri: 'test://x' }), {
    code: 'unknown_resource',
    data: { uri: 'test://x' }
  })
  t.ok(await setup.call('tools/call', { name: 'one__echo' }))
})

t.test(
  "URIs are public on the way out and the upstream's own on the way in; reads say how long they hold",
  async (t) => {
    const link = (uri: string) => ({ type: 'resource_link', uri, name: 'x' })
    const setup = await modernSetup(t, {
      one: {
        tools: [tool('find')],
        prompts: [{ name: 'greet' }],
        resources: [{ uri: 'test://one', name: 'one' }],
        answer(request) {
          if (request.method === 'resources/read')
            return {
              resultType: 'complete',
              contents: [{ uri: request.params?.['uri'], text: 'x' }],
              ttlMs: 1e12,
              cacheScope: 'public'
            }
          if (request.method === 'prompts/get')
            return { resultType: 'complete', messages: [{ role: 'user', content: link('test://one') }] }
          if (request.method === 'completion/complete')
            return { completion: { values: [JSON.stringify(request.params?.['ref'])] } }
          return { resultType: 'complete', content: [link('test://one')] }
        }
      },
      old: { era: 'legacy', answer: (request) => (request.method === 'resources/read' ? { contents: [] } : {}) }
    })
    t.same(await setup.call('tools/call', { name: 'one__find' }), {
      resultType: 'complete',
      content: [link('gatehouse://one/test://one')]
    })
    t.same((await setup.call('prompts/get', { name: 'one__greet' }))['messages'], [
      { role: 'user', content: link('gatehouse://one/test://one') }
    ])
    t.same(await setup.call('resources/read', { uri: 'gatehouse://one/test://one' }), {
      resultType: 'complete',
      contents: [{ uri: 'gatehouse://one/test://one', text: 'x' }],
      ttlMs: 3_600_000,
      cacheScope: 'private'
    })
    t.same(await setup.call('resources/read', { uri: 'gatehouse://old/x:y' }), {
      resultType: 'complete',
      contents: [],
      ttlMs: 0,
      cacheScope: 'private'
    })
    t.same(await setup.call('completion/complete', { ref: { type: 'ref/prompt', name: 'one__greet' }, argument: {} }), {
      resultType: 'complete',
      completion: { values: ['{"type":"ref/prompt","name":"greet"}'] }
    })
  }
)

t.test('errors of upstreams come back in the words of 2026-07-28, or not at all', async (t) => {
  let error = { code: -32602, message: 'x', data: undefined as unknown }
  const setup = await modernSetup(t, {
    one: {
      tools: [tool('x')],
      answer: () => {
        throw new RpcError(error)
      }
    },
    two: {}
  })
  const call = async (code: number, data?: unknown, capabilities = {}) => {
    error = { code, message: 'x', data }
    const caught = await thrown(setup.call('tools/call', { name: 'one__x' }, { capabilities }))
    return caught instanceof RpcError ? caught.error.code : (caught as { code: string }).code
  }
  t.equal(await call(-32602), -32602)
  t.equal(await call(5), 5)
  t.equal(await call(-32002), -32602)
  t.equal(await call(-32020), 'upstream_protocol')
  t.equal(await call(-32022), 'upstream_protocol')
  t.equal(await call(-32042, { elicitations: [] }), 'upstream_protocol')
  t.equal(await call(-32050), 'upstream_protocol')
  t.equal(await call(-32021, { requiredCapabilities: { sampling: {} } }), -32021)
  t.equal(await call(-32021, { requiredCapabilities: { elicitation: { url: {} } } }, { elicitation: {} }), -32021)
  t.equal(
    await call(-32021, { requiredCapabilities: { elicitation: { form: {} } } }, { elicitation: {} }),
    'upstream_protocol',
    'the client did declare it'
  )
  t.equal(
    await call(-32021, { requiredCapabilities: { experimental: { x: {} } } }, { experimental: { x: {} } }),
    'upstream_protocol',
    'kept back here'
  )
  t.equal(await call(-32021), 'upstream_protocol')

  error = { code: -32002, message: 'gone', data: undefined }
  t.match(await thrown(setup.call('resources/read', { uri: 'gatehouse://one/test://x' })), {
    error: { code: -32602, data: { uri: 'gatehouse://one/test://x' } }
  })
  error = { code: -32602, message: 'gone', data: { uri: 'test://x', more: 1 } }
  t.match(await thrown(setup.call('resources/read', { uri: 'gatehouse://one/test://x' })), {
    error: { code: -32602, data: { uri: 'gatehouse://one/test://x', more: 1 } }
  })
})

t.test('an upstream is told what the client declared, as far as it passes from end to end', async (t) => {
  const seen: unknown[] = []
  const answer = (_request: Request, { capabilities }: { capabilities: unknown }) => {
    seen.push(capabilities)
    return echo({ method: '' })
  }
  const setup = await modernSetup(
    t,
    { one: { tools: [tool('x')], answer }, two: {} },
    { endpoints: { default: { upstreams: ['one', 'two'] }, single: { upstreams: ['one'], prefix: '' } } }
  )
  const capabilities = {
    roots: { listChanged: true },
    sampling: { tools: {}, context: {} },
    elicitation: { url: {} },
    tasks: { list: {} },
    experimental: { y: {} },
    extensions: {
      'io.modelcontextprotocol/ui': { mimeTypes: ['x'] },
      'io.modelcontextprotocol/tasks': {},
      'com.example/z': {}
    },
    'com.example/own': 1
  }
  await setup.call('tools/call', { name: 'one__x' }, { capabilities })
  await setup.call('tools/call', { name: 'x' }, { capabilities, endpoint: 'single' })
  await setup.call('tools/call', { name: 'x' }, { endpoint: 'single' })
  const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: ['x'] }, 'io.modelcontextprotocol/tasks': {} }
  const common = { roots: {}, elicitation: { url: {} }, extensions, 'com.example/own': 1 }
  t.same(seen, [
    { ...common, sampling: { tools: {} } },
    { ...common, sampling: { tools: {}, context: {} }, experimental: { y: {} } },
    {}
  ])
})

t.test('progress reaches the caller, log messages only where it asked for them, and nothing else does', async (t) => {
  const log = (level: string): Notification => ({
    method: 'notifications/message',
    params: { level, logger: 'db', data: 'x' }
  })
  const answer = (_request: Request, client: { notify(notification: Notification): void }) => {
    for (const notification of [
      log('debug'),
      log('error'),
      { method: 'notifications/progress', params: { progress: 1 } },
      { method: 'notifications/tools/list_changed' }
    ])
      client.notify(notification)
    setImmediate(() => client.notify(log('error')))
    return echo({ method: '' })
  }
  const setup = await modernSetup(t, {
    one: { tools: [tool('x')], answer },
    old: { era: 'legacy', tools: [tool('x')], answer }
  })
  const hear = async (name: string, logLevel?: 'info') => {
    const heard: Notification[] = []
    await setup.call('tools/call', { name }, { heard, ...(logLevel === undefined ? {} : { logLevel }) })
    await new Promise((resolve) => {
      setImmediate(() => setImmediate(resolve))
    })
    return heard.map(({ method, params }) =>
      `${method.slice(14)} ${String(params?.['level'] ?? '')} ${String(params?.['logger'] ?? '')}`.trim()
    )
  }
  t.same(await hear('one__x'), ['progress'])
  t.same(await hear('one__x', 'info'), ['message error one/db', 'progress'])
  t.same(setup.requests('logging/setLevel'), [], 'a modern server hears of the level with each request')
  t.same(await hear('old__x'), ['progress'])
  t.same(await hear('old__x', 'info'), ['message error old/db', 'progress'])
  t.same(
    setup.requests('logging/setLevel').map(({ params }) => params),
    [{ level: 'info' }]
  )
})

t.test(
  'a modern upstream serves everybody on the connection of its listing, a legacy one each person on their own',
  async (t) => {
    const setup = await modernSetup(t, {
      one: { tools: [tool('x')], answer: echo },
      old: { era: 'legacy', tools: [tool('x')], answer: () => ({ content: [] }) }
    })
    for (const who of ['ada', 'bob', 'ada'])
      for (const name of ['one__x', 'old__x'])
        t.equal((await setup.call('tools/call', { name }, { who }))['resultType'], 'complete')
    const served = (upstream: string) =>
      setup.connections
        .filter((connection) => connection.upstream === upstream)
        .map(({ requests }) => requests.filter(({ method }) => method === 'tools/call').length)
    t.same(served('one'), [3])
    t.same(served('old'), [0, 2, 1])
    t.ok(
      setup.connections.every(
        ({ handshake }) => handshake.era === 'modern' && Object.keys(handshake.capabilities).length === 0
      )
    )
  }
)

t.test(
  'over stdio a modern upstream has a process for each person, unless the operator says that it is shared',
  async (t) => {
    for (const [isolation, expected] of [
      ['session', [0, 2, 1]],
      ['principal', [0, 2, 1]],
      ['shared', [3]]
    ] as const) {
      const setup = await modernSetup(
        t,
        { one: { tools: [tool('x')], answer: echo }, two: {} },
        { type: 'stdio', isolation }
      )
      for (const who of ['ada', 'bob', 'ada']) await setup.call('tools/call', { name: 'one__x' }, { who })
      t.same(
        setup.connections
          .filter(({ upstream }) => upstream === 'one')
          .map(({ requests }) => requests.filter(({ method }) => method === 'tools/call').length),
        expected,
        isolation
      )
    }
  }
)

t.test('where the operator says that it may be shared, a legacy upstream has one connection', async (t) => {
  const setup = await modernSetup(
    t,
    { old: { era: 'legacy', tools: [tool('x')], answer: () => ({ content: [] }) }, two: {} },
    { isolation: 'shared' }
  )
  for (const who of ['ada', 'bob']) await setup.call('tools/call', { name: 'old__x' }, { who })
  t.equal(setup.connections.filter(({ upstream }) => upstream === 'old').length, 1)
})

t.test('an upstream that was listed as modern and is legacy now is not shared', async (t) => {
  const double = { era: 'modern' as 'modern' | 'legacy', tools: [tool('x')], answer: echo }
  const setup = await modernSetup(t, { one: double, two: {} })
  await setup.call('tools/call', { name: 'one__x' })
  double.era = 'legacy'
  // The pool closes what nobody used for long.
  setup.later(3_600_000)
  for (const who of ['ada', 'bob']) await setup.call('tools/call', { name: 'one__x' }, { who })
  const calls = setup.connections
    .filter(({ upstream, era }) => upstream === 'one' && era === 'legacy')
    .map(({ requests }) => requests.filter(({ method }) => method === 'tools/call').length)
  t.ok(calls.every((count) => count <= 1) && calls.filter((count) => count === 1).length === 2, JSON.stringify(calls))
})

t.test('a name whose owner is away is not called wrong, and is waited for once', async (t) => {
  const tools = [tool('x')]
  const setup = await modernSetup(
    t,
    { one: { tools, answer: echo }, away: { down: true }, hung: { tools, listing: () => new Promise(() => {}) } },
    {
      endpoints: {
        default: { upstreams: ['one', 'away'] },
        single: { upstreams: ['away'], prefix: '' },
        other: { upstreams: ['one', 'hung'] }
      }
    }
  )
  const gone = { code: 'upstream_unavailable', data: { upstream: 'away' } }
  await t.rejects(setup.call('tools/call', { name: 'away__x' }), gone)
  await t.rejects(setup.call('prompts/get', { name: 'away__x' }), gone)
  await t.rejects(setup.call('resources/read', { uri: 'https://example.com/x' }), gone)
  await t.rejects(setup.call('resources/read', { uri: 'gatehouse://away/test://x' }), { code: 'upstream_unavailable' })
  await t.rejects(setup.call('tools/call', { name: 'x' }, { endpoint: 'single' }), gone)
  await t.rejects(setup.call('tools/call', { name: 'one__y' }), { code: 'invalid_params' }, 'its owner is there')
  await t.rejects(setup.call('tools/call', { name: 'y' }), { code: 'invalid_params' }, "it would be nobody's")
  await t.rejects(setup.call('resources/read', { uri: 'test://x' }), { code: 'unknown_resource' })
  t.ok(await setup.call('tools/call', { name: 'one__x' }))

  const call = {
    ...setup.place('other'),
    principal: keyPrincipal(setup.place().tenant.id, { name: 'ada', sha256: '', scopes: [] }),
    request: { method: 'tools/call', params: { name: 'hung__x' } },
    client: { ...noClient, era: 'modern' as const },
    signal: new AbortController().signal
  }
  const schema = setup.relay.schemaOf(call, 'hung__x')
  await until('the listing is waited for', () => setup.clock.waits.includes(1_000))
  setup.later(1_000)
  t.equal(await schema, undefined)
  await t.rejects(
    setup.relay.call(call),
    { code: 'upstream_unavailable', data: { upstream: 'hung' } },
    'the same call does not wait again'
  )
})

t.test('the schema of a tool is the one that was published', async (t) => {
  const inputSchema = { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }
  const setup = await modernSetup(t, { one: { tools: [tool('x', { inputSchema })] }, two: {} })
  t.same(await setup.relay.schemaOf(setup.place(), 'one__x'), inputSchema)
  t.equal(await setup.relay.schemaOf(setup.place(), 'one__y'), undefined)
})
