// The loop between a modern server and the client of a session, with both ends in the test's hands and a clock that
// stands still.

import t from 'tap'
import { randomBytes } from 'node:crypto'
import { createMemoryAccount, holdMemory } from '../../src/limits/memory.ts'
import {
  type ClientCapabilities,
  GatewayError,
  type JsonObject,
  type Notification,
  type Request,
  type Result,
  RpcError,
  type ServerRequest,
  upstreamName
} from '../../src/protocol/messages.ts'
import type { UpstreamDefinition } from '../../src/config/snapshot.ts'
import type { Client, ServerRequestOptions, Upstream } from '../../src/protocol/seams.ts'
import type { LegacyCall } from '../../src/relay/call/call.ts'
import { declaredForSession } from '../../src/relay/client/declared-capabilities.ts'
import { createInputLoop } from '../../src/relay/bridge/input-loop.ts'
import type { Store } from '../../src/store/port.ts'
import { createServerRequestQuotas } from '../../src/upstream/rpc/server-requests.ts'
import { until } from '../kit/until.ts'
import { stillClock } from './kit.ts'

type Script = ReadonlyArray<Result | Error | ((client: Client) => Result)>

interface SceneOptions {
  readonly revision?: string
  readonly capabilities?: ClientCapabilities
  readonly members?: number
  readonly server?: JsonObject
  readonly ask?: (request: ServerRequest, options: ServerRequestOptions | undefined) => Promise<unknown>
  readonly signal?: AbortSignal
}

const everything = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: { listChanged: true },
  tasks: { list: {} }
}

function scene(
  script: Script,
  {
    revision = '2025-11-25',
    capabilities = everything,
    members = 1,
    server = {},
    ask,
    signal = new AbortController().signal
  }: SceneOptions = {}
) {
  const clock = stillClock()
  const memory = createMemoryAccount(64 * 1024 * 1024)
  const sent: Request[] = []
  const asked: ServerRequest[] = []
  const heard: Notification[] = []
  const client: Client = {
    era: 'legacy',
    capabilities,
    notify: (notification) => {
      heard.push(notification)
    },
    ask(request, options) {
      asked.push(request)
      return ask === undefined ? Promise.resolve({ n: asked.length }) : ask(request, options)
    }
  }
  const upstream = {
    name: upstreamName('up'),
    era: 'modern',
    capabilities: server,
    async request(request: Request, client: Client) {
      sent.push(request)
      const next = script[sent.length - 1]
      if (next === undefined) throw new Error('one request too many')
      if (next instanceof Error) throw next
      return typeof next === 'function' ? next(client) : next
    }
  } as unknown as Upstream
  const call = (request: Request): LegacyCall =>
    ({
      request,
      client,
      signal,
      endpoint: { members: Array.from({ length: members }, () => ({ upstream: 'up' })) },
      tenant: { upstreams: new Map([['up', { name: 'up', isolation: 'session' }]]) },
      session: {
        key: 'live',
        tenant: 'acme',
        memory: holdMemory(memory.share('acme', 'ada')),
        session: { record: { revision, capabilities } }
      }
    }) as unknown as LegacyCall
  const quotas = createServerRequestQuotas({
    request: 1_000,
    connection: 2_500,
    upstream: 100_000,
    tenant: 100_000,
    all: 100_000
  })
  const fulfiller = createInputLoop({
    clock,
    store: {} as Store,
    newId: () => randomBytes(16).toString('base64url'),
    listings: { all: () => [] },
    serverRequestQuotas: quotas,
    tasks: { toClient: () => (id) => id }
  })
  const definition = { name: upstreamName('up'), isolation: 'session' } as unknown as UpstreamDefinition
  const connection = { upstream, definition, scope: 'of the session' }
  return {
    clock,
    sent,
    asked,
    heard,
    call,
    quotas,
    memory,
    run: (params: JsonObject = { name: 'x' }, method = 'tools/call', connect = () => Promise.resolve(upstream)) =>
      fulfiller.request(call({ method, params }), connection, { method, params }, client, false, async () => ({
        ...connection,
        upstream: await connect()
      }))
  }
}

const roots = { method: 'roots/list' }
const input = (requests: JsonObject | undefined, requestState?: unknown): Result => ({
  resultType: 'input_required',
  ...(requests === undefined ? {} : { inputRequests: requests }),
  ...(requestState === undefined ? {} : { requestState })
})
const done: Result = { resultType: 'complete', content: [], ttlMs: 5, cacheScope: 'private', _meta: { 'x/y': 1 } }

t.test('each round is the first request with the answers and the state of that round, and no others', async (t) => {
  const params = { name: 'x', arguments: { a: 1 }, _meta: { progressToken: 1, 'x/y': 2 } }
  const { run, sent } = scene([input({ a: roots, b: roots }, 's1 '), input({ c: roots }), done])
  await run(params)
  t.same(
    sent,
    [
      params,
      { ...params, inputResponses: { a: { n: 1 }, b: { n: 2 } }, requestState: 's1 ' },
      { ...params, inputResponses: { c: { n: 3 } } }
    ].map((params) => ({ method: 'tools/call', params }))
  )
})

t.test('a server that only wants to be come to again is given time; the empty string is a state', async (t) => {
  const { run, sent, clock } = scene([input(undefined, ''), done])
  const running = run()
  await until('the pause', () => clock.waits.includes(250))
  t.equal(sent.length, 1)
  clock.move(249)
  t.equal(sent.length, 1)
  clock.move(1)
  t.same(await running, { content: [], _meta: { 'x/y': 1 } }, 'without what only 2026-07-28 says')
  t.same(sent[1]?.params, { name: 'x', requestState: '' })
})

t.test('all of a round is asked at once, and the first failure withdraws the rest', async (t) => {
  const withdrawn: unknown[] = []
  const { run, asked, sent } = scene([input({ a: roots, b: roots, c: roots })], {
    ask: (_request, options) =>
      asked.length === 2
        ? Promise.reject(new RpcError({ code: -1, message: 'no' }))
        : new Promise((_resolve, reject) =>
            options?.signal?.addEventListener('abort', () => {
              withdrawn.push(options.signal?.reason)
              reject(new GatewayError('cancelled', 'withdrawn'))
            })
          )
  })
  await t.rejects(
    run(),
    new RpcError(
      {
        code: -1,
        message: 'The client did not answer roots/list, which upstream up needs: no',
        data: { reason: 'client_no_answer', upstream: 'up' }
      },
      'client_no_answer'
    )
  )
  t.equal(asked.length, 3)
  t.equal(withdrawn.length, 2)
  t.equal(sent.length, 1)
})

t.test('a cancellation ends the question and the waiting', async (t) => {
  const stop = new AbortController()
  const asking = scene([input({ a: roots })], {
    signal: stop.signal,
    ask: (_request, options) =>
      new Promise((_resolve, reject) =>
        options?.signal?.addEventListener('abort', () => reject(new GatewayError('cancelled', 'withdrawn')))
      )
  })
  const running = asking.run()
  await until('the question', () => asking.asked.length === 1)
  stop.abort()
  await t.rejects(running, { code: 'cancelled' })
  t.equal(asking.sent.length, 1)
})

t.test('nobody is asked where one question of the round cannot be', async (t) => {
  for (const capabilities of [{ roots: {} }, { roots: {}, elicitation: { url: {} } }]) {
    const { run, asked } = scene(
      [input({ a: roots, b: { method: 'elicitation/create', params: { mode: 'form', message: 'm' } } })],
      { capabilities }
    )
    t.match(await run(), { isError: true, content: [{ type: 'text', text: /elicitation/ }] })
    t.equal(asked.length, 0)
  }
  const { run } = scene([input({ a: roots })], { capabilities: {} })
  await t.rejects(run({ name: 'x' }, 'prompts/get'), {
    code: 'client_lacks_capability',
    data: { requiredCapabilities: { roots: {} }, upstream: 'up' }
  })
})

t.test('on endpoints of several servers it is said who asks', async (t) => {
  const { run, asked } = scene(
    [
      input({
        a: { method: 'elicitation/create', params: { mode: 'url', url: 'https://a.example/', message: 'Sign in.' } },
        b: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1, includeContext: 'allServers' } }
      }),
      done
    ],
    { members: 2 }
  )
  await run()
  t.match(asked, [
    { params: { message: '[up] Sign in.', elicitationId: /^up:/ } },
    { params: { includeContext: 'none' } }
  ])
})

t.test(
  'what is declared: what the client offers and its revision knows, without what has changed its meaning',
  async (t) => {
    const of = (revision: string, capabilities: ClientCapabilities, members = 1, server: JsonObject = {}) =>
      declaredForSession(scene([], { revision, capabilities, members }).call({ method: 'x' }), server)
    const ui = { 'io.modelcontextprotocol/ui': { mimeTypes: ['x'] } }
    t.same(of('2025-11-25', { ...everything, extensions: { ...ui, 'x/y': {} }, experimental: { e: {} } }), {
      elicitation: { form: {}, url: {} },
      sampling: { tools: {}, context: {} },
      roots: {},
      extensions: ui,
      experimental: { e: {} }
    })
    t.same(of('2025-11-25', { ...everything, experimental: { e: {} } }, 2), {
      elicitation: { form: {}, url: {} },
      sampling: { tools: {} },
      roots: {}
    })
    t.same(of('2025-06-18', everything), { elicitation: {}, sampling: {}, roots: {} })
    t.same(of('2025-03-26', everything), { sampling: {}, roots: {} })
    t.same(
      of('2025-11-25', {}, 1, { extensions: { 'io.modelcontextprotocol/tasks': {} } }),
      { extensions: { 'io.modelcontextprotocol/tasks': {} } },
      'tasks are ours to follow'
    )
  }
)

t.test('no error of 2026-07-28 gets through', async (t) => {
  const fails = (code: number, data?: unknown, method = 'prompts/get') =>
    scene([new RpcError({ code, message: 'said', ...(data === undefined ? {} : { data }) })], {
      capabilities: { roots: {} }
    }).run({ uri: 'a:b' }, method)
  for (const code of [-32020, -32022])
    for (const method of ['tools/call', 'prompts/get'])
      await t.rejects(fails(code, undefined, method), { code: 'upstream_protocol' })
  await t.rejects(fails(-32021, { requiredCapabilities: { sampling: { tools: {} } } }), {
    code: 'client_lacks_capability',
    message: /sampling\.tools.*said/,
    data: { requiredCapabilities: { sampling: { tools: {} } } }
  })
  t.match(await fails(-32021, { requiredCapabilities: { sampling: {} } }, 'tools/call'), { isError: true })
  for (const data of [undefined, {}, { requiredCapabilities: { roots: {} } }])
    await t.rejects(fails(-32021, data, 'tools/call'), { code: 'upstream_protocol', message: /does not pass/ })
  await t.rejects(
    fails(-32602, { uri: 'a:b' }, 'resources/read'),
    new RpcError({ code: -32002, message: 'said', data: { uri: 'a:b' } })
  )
  await t.rejects(
    fails(-32602, { uri: 'a:b' }),
    new RpcError({ code: -32602, message: 'said', data: { uri: 'a:b' } }),
    'of resources only'
  )
  await t.rejects(fails(-32602, undefined, 'resources/read'), new RpcError({ code: -32602, message: 'said' }))
  await t.rejects(fails(-32042, { elicitations: [] }), {
    code: 'client_lacks_capability',
    data: { requiredCapabilities: { elicitation: { url: {} } } }
  })
  t.match(await fails(-32042, { elicitations: [] }, 'tools/call'), { isError: true, content: [{ text: /names none/ }] })
  await t.rejects(
    scene([new RpcError({ code: -32042, message: 'said', data: { elicitations: [] } })]).run(),
    new RpcError({ code: -32042, message: 'said', data: { elicitations: [] } }),
    'but to a client that opens pages'
  )
  const lost = new GatewayError('upstream_lost', 'gone')
  await t.rejects(scene([lost]).run(), lost)
})

t.test('progress of a later round that does not go on from the earlier ones is left out', async (t) => {
  const says =
    (...values: number[]) =>
    (client: Client): void => {
      for (const progress of values)
        client.notify({ method: 'notifications/progress', params: { progressToken: 'p', progress } })
    }
  const { run, heard } = scene([
    (client) => {
      says(1, 5)(client)
      return input({ a: roots })
    },
    (client) => {
      says(2, 5, 6)(client)
      client.notify({ method: 'notifications/message', params: { level: 'info' } })
      return done
    }
  ])
  await run()
  t.same(
    heard.map(({ params }) => params?.['progress'] ?? params?.['level']),
    [1, 5, 6, 'info']
  )
})

t.test('a connection may end while somebody thinks: the next round takes the one that there is then', async (t) => {
  const { run, sent, asked } = scene([input({ a: roots }, 's')])
  const later: Request[] = []
  const next = (era: string) => async () =>
    ({
      name: upstreamName('up'),
      era,
      capabilities: {},
      request: async (request: Request) => {
        later.push(request)
        return done
      }
    }) as unknown as Upstream
  t.ok(await run({ name: 'x' }, 'tools/call', next('modern')))
  t.same(
    [sent.length, asked.length, later.map(({ params }) => params)],
    [1, 1, [{ name: 'x', inputResponses: { a: { n: 1 } }, requestState: 's' }]]
  )
  await t.rejects(scene([input({ a: roots })]).run({ name: 'x' }, 'tools/call', next('legacy')), {
    code: 'upstream_protocol',
    data: { outcome: 'unknown' }
  })
  t.equal(later.length, 1, 'a legacy server is sent no answers')
})

t.test(
  'what is asked counts until all is answered: one thing too large, or too much of it, is not asked',
  async (t) => {
    const heavy = {
      method: 'elicitation/create',
      params: { mode: 'form', message: 'm', junk: Array.from({ length: 20 }, () => ({})) }
    }
    const large = scene([input({ a: roots, b: heavy })])
    await t.rejects(large.run(), {
      code: 'upstream_protocol',
      message: /too large to be kept .* 1000 bytes/,
      data: { upstream: 'up' }
    })
    t.equal(large.asked.length, 0)
    for (const much of [
      input({ a: roots }, 'x'.repeat(2_500)),
      { ...input({ a: roots }), junk: Array.from({ length: 40 }, () => ({})) }
    ]) {
      const { run, asked, quotas } = scene([much])
      await t.rejects(run(), { code: 'too_many', row: { retry: true } })
      t.equal(asked.length, 0)
      t.equal(quotas.size, 0)
    }
  }
)

t.test('and is given back however it ends', async (t) => {
  const rejecting = (_request: ServerRequest, options: ServerRequestOptions | undefined) =>
    new Promise((_resolve, reject) => {
      options?.signal?.addEventListener('abort', () => reject(new GatewayError('cancelled', 'withdrawn')))
    })
  const ends: ReadonlyArray<readonly [SceneOptions['ask'], string | undefined]> = [
    [undefined, undefined],
    [() => Promise.reject(new RpcError({ code: -1, message: 'no' })), 'RpcError'],
    [rejecting, 'GatewayError']
  ]
  for (const [ask, failure] of ends) {
    const stop = new AbortController()
    const sizes: number[] = []
    const made = scene([input({ a: roots, b: roots }), done], {
      signal: stop.signal,
      ask: (request, options) => {
        sizes.push(made.quotas.size)
        return ask?.(request, options) ?? Promise.resolve({})
      }
    })
    const running = made.run()
    if (failure === undefined) await running
    else {
      const rejected = t.rejects(running, { name: failure })
      await until('the questions', () => sizes.length === 2)
      stop.abort()
      await rejected
    }
    t.same(sizes, [4, 4], 'a session, an upstream, a tenant, and the process')
    t.equal(made.quotas.size, 0)
  }
})

t.test('the answers count for whoever gave them until the server has them', async (t) => {
  const long = 1_000_000
  const counts: number[] = []
  let second: ((answer: unknown) => void) | undefined
  const count = (): Result => {
    counts.push(made.memory.held)
    return counts.length === 2 ? done : input({ c: roots })
  }
  const made = scene([input({ a: roots, b: roots }), count, count], {
    ask: () =>
      made.asked.length === 2
        ? new Promise((resolve) => {
            second = resolve
          })
        : Promise.resolve({ answer: 'x'.repeat(made.asked.length === 1 ? long : 10) })
  })
  const running = made.run()
  await until('the first answer is there, and the second is waited for', () => made.memory.held > long)
  second?.({})
  await running
  t.ok((counts[0] ?? 0) > long, 'both')
  t.ok((counts[1] ?? long) < 1_000, 'those of the next round take their place')
  t.equal(made.memory.held, 0)

  const full = scene([input({ a: roots }), done], { ask: async () => ({ answer: 'x'.repeat(20_000_000) }) })
  await t.rejects(full.run({ name: 'x' }, 'prompts/get'), { code: 'too_many', message: /responses to an upstream/ })
  t.equal(full.memory.held, 0)
})
