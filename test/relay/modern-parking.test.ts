// Questions of legacy upstreams to callers of 2026-07-28, with doubles at the seam: what is asked, when, of whom, and
// how it ends.

import t from 'tap'
import { type JsonObject, type Notification, type Request, type Result, RpcError } from '../../src/protocol/messages.ts'
import type { Client } from '../../src/protocol/seams.ts'
import { until } from '../kit/until.ts'
import { modernSetup } from './modern-kit.ts'
import { able, aborted, accepted, answersTo, called, elicit, form, next, old, params, single } from './parking-kit.ts'

t.test(
  'who asks stands in front on an endpoint of several upstreams, and what 2026-07-28 does not have is left out',
  async (t) => {
    const answer = async (_request: Request, client: Client): Promise<Result> => ({
      got: await Promise.all([
        elicit(
          client,
          form('who?', { elicitationId: 'e', task: { ttl: 1 }, _meta: { progressToken: 4, 'com.example/kept': 1 } })
        ),
        elicit(client, { mode: 'url', message: 'look', url: 'https://example.com/', elicitationId: 'e' }),
        client.ask({
          method: 'sampling/createMessage',
          params: { messages: [], maxTokens: 1, includeContext: 'thisServer' }
        }),
        client.ask({ method: 'roots/list' })
      ])
    })
    const setup = await modernSetup(t, { one: old(answer), two: {} })
    const asked = await called(setup, setup.call('tools/call', { name: 'one__x' }, able))
    t.same(Object.keys(asked).sort(), ['inputRequests', 'requestState', 'resultType'])
    t.same(Object.values(asked['inputRequests'] as JsonObject), [
      { method: 'elicitation/create', params: form('[one] who?', { _meta: { 'com.example/kept': 1 } }) },
      { method: 'elicitation/create', params: { mode: 'url', message: '[one] look', url: 'https://example.com/' } },
      { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1, includeContext: 'none' } },
      { method: 'roots/list' }
    ])
    const [a = '', b = '', c = '', d = ''] = Object.keys(asked['inputRequests'] as JsonObject)
    const sampled = { role: 'assistant', model: 'm', content: { type: 'text', text: 'x' }, extra: 1 }
    const result = await next(
      setup,
      asked,
      { [a]: accepted, [b]: { action: 'decline' }, [c]: sampled, [d]: { roots: [] } },
      able,
      { name: 'one__x' }
    )
    t.same(result['got'], [accepted, { action: 'decline' }, sampled, { roots: [] }], 'answers pass as they are')
  }
)

t.test(
  'an upstream is declared what the client declares, in one spelling, and each set of it has connections of its own',
  async (t) => {
    const setup = await modernSetup(t, { one: old(() => ({ content: [] })), two: {} })
    const seen = async (capabilities: JsonObject): Promise<unknown> => {
      const before = setup.connections.length
      await setup.call('tools/call', { name: 'one__x' }, { capabilities })
      return setup.connections.slice(before).find(({ upstream }) => upstream === 'one')?.handshake.capabilities
    }
    t.same(await seen({}), {})
    t.same(
      await seen({
        elicitation: {},
        sampling: { context: {} },
        roots: { listChanged: true },
        experimental: { x: {} },
        tasks: {}
      }),
      { elicitation: { form: {} }, sampling: {}, roots: {} }
    )
    t.equal(await seen({ roots: {}, sampling: {}, elicitation: { form: { x: 1 } } }), undefined, 'the same again')
    t.same(await seen({ elicitation: { url: {} } }), { elicitation: { url: {} } })
    t.same(
      await seen({
        sampling: { tools: {} },
        extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['a'] }, 'com.example/x': {} }
      }),
      { sampling: { tools: {} }, extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['a'] } } }
    )
  }
)

t.test('what may not be asked is refused at the upstream, whose call goes on', async (t) => {
  const codes: unknown[] = []
  const answer = async (_request: Request, client: Client): Promise<Result> => {
    const asks = [
      { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } },
      { method: 'elicitation/create', params: { mode: 'url', message: 'x', url: 'https://example.com/' } },
      { method: 'elicitation/create', params: { mode: 'url', message: 'x', url: 'javascript:alert(1)' } },
      { method: 'elicitation/create' },
      { method: 'tasks/get', params: { taskId: 'x' } },
      // What the official client cannot read, and ends its call over.
      { method: 'elicitation/create', params: { message: 'x' } },
      { method: 'elicitation/create', params: { requestedSchema: { type: 'object', properties: {} } } },
      {
        method: 'elicitation/create',
        params: { message: 'x', requestedSchema: { type: 'object', properties: { a: { type: 'object' } } } }
      },
      {
        method: 'elicitation/create',
        params: { message: 'x', requestedSchema: { type: 'object', properties: { a: 'string' } } }
      }
    ]
    for (const ask of asks)
      await client.ask(ask).catch((error: unknown) => codes.push(error instanceof RpcError ? error.error.code : error))
    return { content: [] }
  }
  const setup = await modernSetup(t, { one: old(answer) }, single)
  t.match(await setup.call('tools/call', params, { capabilities: { elicitation: {} } }), { resultType: 'complete' })
  t.same(codes, Array(9).fill(-32602))
})

t.test('during a request that cannot come back with questions, a person is taken to have turned away', async (t) => {
  const got: unknown[] = []
  const answer = async (_request: Request, client: Client): Promise<Result> => {
    got.push(await elicit(client))
    got.push(
      await client
        .ask({ method: 'roots/list' })
        .catch((error: unknown) => (error instanceof RpcError ? error.error.code : error))
    )
    return { completion: { values: [] } }
  }
  const setup = await modernSetup(t, { one: old(answer) }, single)
  t.match(
    await setup.call(
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'x' }, argument: { name: 'a', value: '' } },
      able
    ),
    { resultType: 'complete' }
  )
  t.same(got, [{ action: 'cancel' }, -32601])
})

t.test(
  'a question that is taken back is not in the next round, and a call that ends by itself is there for whoever comes back',
  async (t) => {
    const taken = new AbortController()
    let settle: ((outcome: Result | Error) => void) | undefined
    const answer = (_request: Request, client: Client): Promise<Result> => {
      elicit(client, form('one'), taken.signal).catch(() => {})
      elicit(client, form('two')).catch(() => {})
      return new Promise((resolve, reject) => {
        settle = (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome))
      })
    }
    const finish = async (outcome: Result | Error): Promise<void> => {
      settle?.(outcome)
      await new Promise((resolve) => {
        setImmediate(resolve)
      })
    }
    const setup = await modernSetup(t, { one: old(answer) }, single)
    const asked = await called(setup, setup.call('tools/call', params, able))
    t.equal(Object.keys(asked['inputRequests'] as JsonObject).length, 2)
    taken.abort()
    const again = await next(setup, asked, {})
    t.match(Object.values(again['inputRequests'] as JsonObject), [{ params: { message: 'two' } }])
    t.equal(Object.keys(again['inputRequests'] as JsonObject).length, 1)
    await finish({ content: ['done'] })
    t.match(await next(setup, again), { resultType: 'complete', content: ['done'] })
    await t.rejects(next(setup, again), { code: 'invalid_state' })

    const second = await called(setup, setup.call('tools/call', params, able))
    await finish(new RpcError({ code: -5, message: 'its own error' }))
    await t.rejects(next(setup, second), { message: 'its own error' }, 'which is an answer too')
    const third = await called(setup, setup.call('tools/call', params, able))
    await finish({ content: ['x'.repeat(1024 * 1024)] })
    await t.rejects(next(setup, third), { code: 'invalid_state', message: /too large/ })
  }
)

t.test('a retry that declares less is not asked what it does not declare', async (t) => {
  const answer = async (_request: Request, client: Client): Promise<Result> => ({
    got: await Promise.all([
      elicit(client),
      client.ask({ method: 'roots/list' }).catch((error: RpcError) => error.error.code)
    ])
  })
  const setup = await modernSetup(t, { one: old(answer) }, single)
  const asked = await called(setup, setup.call('tools/call', params, able))
  const again = await next(setup, asked, {}, { capabilities: { elicitation: {} } })
  t.match(Object.values(again['inputRequests'] as JsonObject), [{ method: 'elicitation/create' }])
  t.same((await next(setup, again))['got'], [accepted, -32602])
})

t.test('log messages and progress go to the request that runs, and nowhere while none does', async (t) => {
  let say: ((notification: Notification) => void) | undefined
  const progress = (value: number): Notification => ({
    method: 'notifications/progress',
    params: { progressToken: 'a', progress: value }
  })
  const log: Notification = { method: 'notifications/message', params: { level: 'error', data: 'x' } }
  const answer = async (_request: Request, client: Client): Promise<Result> => {
    say = client.notify
    client.notify(progress(1))
    client.notify(log)
    await elicit(client)
    for (const each of [progress(0.5), progress(2), log]) client.notify(each)
    return { content: [] }
  }
  const setup = await modernSetup(t, { one: old(answer) }, single)
  const heard: Notification[] = []
  const asked = await called(
    setup,
    setup.call('tools/call', { ...params, _meta: { progressToken: 'a' } }, { ...able, heard })
  )
  t.same(heard, [progress(1)])
  say?.(progress(1.5))
  t.equal(heard.length, 1)
  const later: Notification[] = []
  await next(
    setup,
    asked,
    answersTo(asked),
    { ...able, heard: later, logLevel: 'info' },
    { ...params, _meta: { progressToken: 9 } }
  )
  t.same(later, [{ method: 'notifications/progress', params: { progressToken: 9, progress: 2 } }, log])
  t.equal(heard.length, 1)
})

const takenOver = { code: 'invalid_state', message: /newer ones took its place/ }

t.test('where all slots are taken, the call that has waited longest for its client makes room', async (t) => {
  const told: unknown[] = []
  const answer = async ({ params: asked }: Request, client: Client, signal: AbortSignal): Promise<Result> => {
    for (let question = 0; question < 2; question++) {
      const got = (await elicit(client)) as JsonObject
      if (got['action'] !== 'cancel') continue
      told.push(asked?.['arguments'])
      await aborted(signal)
      told.push('cancelled')
      throw new Error('cancelled')
    }
    return { content: [] }
  }
  const setup = await modernSetup(t, { one: old(answer) }, single)
  const more = (n: number): JsonObject => ({ name: 'x', arguments: { n } })
  const left: Result[] = []
  for (let n = 0; n < 8; n++) left.push(await called(setup, setup.call('tools/call', more(n), able)))
  const [first, second, third] = left as [Result, Result, Result]
  const again = await next(setup, first, undefined, able, more(0))
  t.match(again, { resultType: 'input_required' }, 'whose client has come back has not waited long')
  const open = setup.connections.length
  t.match(await called(setup, setup.call('tools/call', more(8), able)), { resultType: 'input_required' })
  t.same(told, [{ n: 1 }, 'cancelled'])
  t.equal(setup.connections.length, open, 'on the connection that was left')
  await t.rejects(next(setup, second, undefined, able, more(1)), takenOver)
  t.match(
    await Promise.all([9, 10, 11].map((n) => called(setup, setup.call('tools/call', more(n), able)))),
    [{}, {}, {}],
    'several at once have one each'
  )
  t.same(
    told.filter((each) => each !== 'cancelled'),
    [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }]
  )
  await t.rejects(next(setup, third, undefined, able, more(2)), takenOver)
  t.match(await next(setup, again, undefined, able, more(0)), { resultType: 'complete' }, 'the others stay as they are')
})

t.test('slots of calls that have just expired are waited for', async (t) => {
  const answer = async (_request: Request, client: Client, signal: AbortSignal): Promise<Result> => {
    await elicit(client)
    await aborted(signal)
    throw new Error('cancelled')
  }
  const setup = await modernSetup(t, { one: old(answer) }, single)
  const left: Result[] = []
  for (let n = 0; n < 8; n++) left.push(await called(setup, setup.call('tools/call', params, able)))
  setup.later(10 * 60_000)
  t.match(await called(setup, setup.call('tools/call', params, able)), { resultType: 'input_required' })
  for (const each of left) await t.rejects(next(setup, each), { code: 'invalid_state' })
})

t.test('calls that run make no room, nor do results that wait for nothing but their clients', async (t) => {
  const running: Array<() => void> = []
  const answer = async ({ params: asked }: Request, client: Client): Promise<Result> => {
    const { asks, ends } = (asked?.['arguments'] ?? {}) as { asks?: boolean; ends?: boolean }
    const question = asks === true ? elicit(client).catch(() => ({})) : undefined
    if (question !== undefined && ends !== true) return { got: await question }
    await new Promise<void>((resolve) => {
      running.push(resolve)
    })
    return { content: ['done'] }
  }
  const setup = await modernSetup(t, { one: old(answer) }, single)
  const start = (args: JsonObject): Promise<Result> => setup.call('tools/call', { name: 'x', arguments: args }, able)
  const held = await called(setup, start({ asks: true, ends: true }))
  running.pop()?.()
  const runs = Array.from({ length: 7 }, () => start({}))
  await until('all of them run', () => running.length === 7)
  const waiting = await called(setup, start({ asks: true }))
  const last = start({})
  const queued = start({})
  await until('its place is taken', () => {
    setup.clock.move(1)
    return running.length === 8
  })
  await t.rejects(next(setup, waiting, undefined, able, { name: 'x', arguments: { asks: true } }), takenOver)
  t.equal(
    setup.requests('tools/call').length,
    10,
    'only one of them waited for its client; the next call waits in turn'
  )
  t.match(await next(setup, held, undefined, able, { name: 'x', arguments: { asks: true, ends: true } }), {
    content: ['done']
  })
  for (const end of running.splice(0)) end()
  t.match(
    await Promise.all([...runs, last]),
    Array.from({ length: 8 }, () => ({ resultType: 'complete' }))
  )
  await until('it has its turn', () => running.length === 1)
  for (const end of running) end()
  t.match(await queued, { resultType: 'complete' })
  t.match(await called(setup, start({ asks: true })), { resultType: 'input_required' }, 'and all slots are free again')
})
