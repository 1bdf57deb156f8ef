// Tasks of 2025-11-25 at the modern relay: when they are made, what they end with, what they ask, and what is left when
// nobody comes back.

import t from 'tap'
import {
  GatewayError,
  type JsonObject,
  type Notification,
  type Request,
  type Result,
  RpcError
} from '../../src/protocol/messages.ts'
import type { Client } from '../../src/protocol/seams.ts'
import { relatedTaskKey } from '../../src/protocol/translate/tasks.ts'
import { until } from '../kit/until.ts'
import { type Asking, type Double, modernSetup, type ModernSetup, taskClient, tasksExtension } from './modern-kit.ts'
import { tool } from './kit.ts'

const tasks = { list: {}, cancel: {}, requests: { tools: { call: {} } } }
const required = { execution: { taskSupport: 'required' } }
const asker = { ...taskClient, elicitation: {} }
const question = {
  method: 'elicitation/create',
  params: {
    message: 'Sure?',
    requestedSchema: { type: 'object', properties: {} },
    _meta: { [relatedTaskKey]: { taskId: 'the id' } }
  }
}
const ok = { content: [{ type: 'text', text: 'ok' }] }

interface Maker extends Double {
  status: string
  statusMessage?: string
  createdAt: string
  /** What `tasks/result` answers once the task has ended. */
  outcome: () => Result
  /** Asks the client that waits for the result. */
  ask?: (client: Client) => void
}

/** A server that works on one task for ever, until its status is changed. */
function maker(more: Partial<Maker> = {}): Maker {
  const double: Maker = {
    era: 'legacy',
    namesCalls: true,
    status: 'working',
    createdAt: 'c',
    capabilities: { tools: {}, tasks },
    tools: [
      tool('x', required),
      tool('may', { execution: { taskSupport: 'optional' } }),
      tool('never', { execution: { taskSupport: 'forbidden' } }),
      tool('plain')
    ],
    outcome: () => ({ ...ok, _meta: { [relatedTaskKey]: { taskId: 'the id' } } }),
    async answer({ method, params }: Request, client, signal) {
      if (method === 'tools/call') return params?.['task'] === undefined ? ok : { task: shown(), _meta: { kept: 1 } }
      if (params?.['taskId'] !== 'the id') throw new RpcError({ code: -32602, message: 'no such task' })
      if (method === 'tasks/result') {
        double.ask?.(client)
        delete double.ask
        await until(
          'it has ended',
          () => signal.aborted || ['completed', 'failed', 'cancelled'].includes(double.status)
        )
        if (signal.aborted) throw new GatewayError('cancelled', 'given up')
        return double.outcome()
      }
      if (method === 'tasks/cancel') {
        if (['completed', 'failed', 'cancelled'].includes(double.status))
          throw new RpcError({ code: -32602, message: 'it has ended' })
        double.status = 'cancelled'
      }
      return shown()
    },
    ...more
  }
  const shown = (): JsonObject => ({
    taskId: 'the id',
    status: double.status,
    ...(double.statusMessage !== undefined && { statusMessage: double.statusMessage }),
    createdAt: double.createdAt,
    lastUpdatedAt: 'l',
    ttl: 60_000,
    pollInterval: 100
  })
  return double
}

const thrown = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'nothing',
    (error: unknown) => error
  )

/** Time goes on until there is an answer. */
async function inTime<T>(setup: ModernSetup, promise: Promise<T>): Promise<T> {
  let over = false
  promise
    .finally(() => {
      over = true
    })
    .catch(() => {})
  await until('there is an answer', () => {
    setup.clock.move(25)
    return over
  })
  return await promise
}

async function taskOf(setup: ModernSetup, asking: Asking = { capabilities: taskClient }) {
  const made = await setup.call('tools/call', { name: 'one__x', arguments: { a: 1 } }, asking)
  const params = { taskId: made['taskId'] }
  return { made, params, get: () => inTime(setup, setup.call('tasks/get', params, { capabilities: taskClient })) }
}

t.test('only a tool that requires a task is called as one', async (t) => {
  const setup = await modernSetup(t, { one: maker(), two: maker({ capabilities: { tools: {} } }) })
  const { made } = await taskOf(setup)
  t.match(made, {
    resultType: 'task',
    status: 'working',
    ttlMs: 60_000,
    pollIntervalMs: 100,
    createdAt: 'c',
    lastUpdatedAt: 'l',
    _meta: { kept: 1 }
  })
  t.notMatch(made, { taskId: 'the id' })
  t.notOk('task' in made || 'ttl' in made || 'pollInterval' in made)
  for (const name of ['one__may', 'one__never', 'one__plain', 'two__x'])
    t.same(
      await setup.call('tools/call', { name }, { capabilities: taskClient }),
      { resultType: 'complete', ...ok },
      name
    )
  t.same(
    setup.requests('tools/call').map(({ params }) => params?.['task'] !== undefined),
    [true, false, false, false, false]
  )
  t.same(setup.requests('tools/call')[0]?.params?.['arguments'], { a: 1 })
})

t.test('an answer in place of a task is the answer', async (t) => {
  const setup = await modernSetup(t, {
    one: maker({ answer: () => ({ content: [{ type: 'resource_link', uri: 'test://x', name: 'x' }] }) }),
    two: {}
  })
  const done = {
    resultType: 'complete',
    content: [{ type: 'resource_link', uri: 'gatehouse://one/test://x', name: 'x' }]
  }
  t.same(await setup.call('tools/call', { name: 'one__x' }, { capabilities: taskClient }), done)
  t.same(await setup.call('tools/call', { name: 'one__x' }), done)
})

t.test('what a task ended with is in tasks/get: a result as completed, an error as failed', async (t) => {
  const failure = { content: [], isError: true }
  const error = { code: -1, message: 'broke', data: { x: 1 } }
  const ends: ReadonlyArray<readonly [status: string, outcome: () => Result, shown: JsonObject]> = [
    [
      'completed',
      () => ({ ...ok, _meta: { [relatedTaskKey]: { taskId: 'the id' } } }),
      { status: 'completed', result: ok }
    ],
    ['failed', () => failure, { status: 'completed', result: failure }],
    [
      'failed',
      () => {
        throw new RpcError(error)
      },
      { status: 'failed', error }
    ],
    [
      'failed',
      () => {
        throw new RpcError({
          code: -32_042,
          message: 'go',
          data: { elicitations: [{ mode: 'url', url: 'javascript:alert(1)' }] }
        })
      },
      { status: 'failed', error: { code: -32_603 } }
    ],
    [
      'cancelled',
      () => {
        throw new RpcError(error)
      },
      { status: 'cancelled' }
    ]
  ]
  for (const [status, outcome, shown] of ends) {
    const one = maker({ outcome })
    const setup = await modernSetup(t, { one, two: {} })
    const { params, get } = await taskOf(setup)
    const running = {
      resultType: 'complete',
      taskId: params.taskId,
      status: 'working',
      createdAt: 'c',
      lastUpdatedAt: 'l',
      ttlMs: 60_000,
      pollIntervalMs: 100
    }
    t.same(await get(), running)
    one.status = status
    t.match(await get(), { ...running, ...shown })
    t.match(await get(), { ...running, ...shown }, 'as often as it is asked')
    t.notMatch(JSON.stringify(await get()), /javascript:/, 'and nothing in it would not pass by itself')
  }
})

t.test('what a task asks is answered by tasks/update; what is asked anew has another key', async (t) => {
  const answers: unknown[] = []
  const one = maker({
    ask: (client) => {
      for (const n of [1, 2]) void client.ask(question).then((answer) => answers.push([n, answer]))
    }
  })
  const setup = await modernSetup(t, { one, two: {} })
  const { params, get } = await taskOf(setup, { capabilities: asker })
  t.match(await get(), { status: 'working' })
  t.equal(setup.requests('tasks/result').length, 0, 'as long as it does not ask, nothing waits for its result')
  one.status = 'input_required'
  const asked = await get()
  t.equal(asked['status'], 'input_required')
  const keys = Object.keys(asked['inputRequests'] as JsonObject)
  t.equal(keys.length, 2)
  t.same(Object.values(asked['inputRequests'] as JsonObject)[0], {
    method: 'elicitation/create',
    params: { message: '[one] Sure?', requestedSchema: { type: 'object', properties: {} } }
  })
  t.same((await get())['inputRequests'], asked['inputRequests'])
  t.equal(setup.requests('tasks/result').length, 1)

  const update = (inputResponses: unknown, who = 'ada') =>
    setup.call('tasks/update', { ...params, inputResponses }, { capabilities: taskClient, who })
  const [first = '', second = ''] = keys
  await t.rejects(update({ [first]: { action: 'accept' } }, 'bob'), { code: 'invalid_params' })
  await t.rejects(update({ [first]: { action: 'perhaps' } }), { code: 'invalid_params' })
  await t.rejects(update(7), { code: 'invalid_params' })
  t.same(answers, [])
  t.same(await update({ [first]: { action: 'accept', content: {} }, other: 1 }), { resultType: 'complete' })
  t.same(answers, [[1, { action: 'accept', content: {} }]])
  t.same(Object.keys((await get())['inputRequests'] as JsonObject), [second])
  t.same(await update({ [first]: { action: 'decline' }, [second]: { action: 'decline' } }), { resultType: 'complete' })
  t.same(
    answers,
    [
      [1, { action: 'accept', content: {} }],
      [2, { action: 'decline' }]
    ],
    'what was answered stays answered'
  )
  t.match(await get(), { status: 'working', inputRequests: undefined }, 'nothing that the client could do')
  one.status = 'completed'
  t.match(await get(), { status: 'completed', result: ok })
})

t.test('a task may only ask what its client declared when it was made', async (t) => {
  const refused: unknown[] = []
  const one = maker({
    ask: (client) => {
      client.ask(question).catch((error: unknown) => refused.push(error))
    }
  })
  const setup = await modernSetup(t, { one, two: {} })
  const { get } = await taskOf(setup)
  one.status = 'input_required'
  t.match(await get(), { status: 'working', inputRequests: undefined })
  t.match(refused, [{ error: { code: -32602 } }])
})

t.test("where questions name no call, they name their task; it is nobody else's question", async (t) => {
  const one = maker({ namesCalls: false })
  const setup = await modernSetup(t, { one, two: {} })
  const { params, get } = await taskOf(setup, { capabilities: asker })
  const connection = setup.connections.find(
    ({ upstream, handshake }) =>
      upstream === 'one' && handshake.exclusive === true && handshake.capabilities['elicitation'] !== undefined
  )
  t.ok(connection, 'it was declared what the client declared')
  const answer = connection?.events.ask(question)
  const [key = ''] = Object.keys((await get())['inputRequests'] as JsonObject)
  await setup.call(
    'tasks/update',
    { ...params, inputResponses: { [key]: { action: 'cancel' } } },
    { capabilities: taskClient }
  )
  t.same(await answer, { action: 'cancel' })
  const stranger = { ...question, params: { ...question.params, _meta: { [relatedTaskKey]: { taskId: 'another' } } } }
  t.same(
    await inTime(setup, connection?.events.ask(stranger) ?? Promise.reject(new Error('no connection'))),
    { action: 'cancel' },
    'nobody is there to be asked'
  )
})

t.test("what a task asks while another call runs is the task's, and what the call asks the call's", async (t) => {
  const one = maker()
  const answer = one.answer?.bind(one)
  one.answer = async (request, client, signal) => {
    if (request.params?.['name'] !== 'plain') return (await answer?.(request, client, signal)) ?? {}
    const { _meta, ...params } = question.params
    const answers = await Promise.all([client.ask(question), client.ask({ method: question.method, params })])
    return { content: [], structuredContent: { answers } }
  }
  const setup = await modernSetup(t, { one, two: {} })
  const { params, get } = await taskOf(setup, { capabilities: asker })
  const asked = await inTime(setup, setup.call('tools/call', { name: 'one__plain' }, { capabilities: asker }))
  t.equal(asked['resultType'], 'input_required')
  const [own = '', ...more] = Object.keys(asked['inputRequests'] as JsonObject)
  t.same(more, [])
  const [key = ''] = Object.keys((await get())['inputRequests'] as JsonObject)
  await setup.call(
    'tasks/update',
    { ...params, inputResponses: { [key]: { action: 'decline' } } },
    { capabilities: taskClient }
  )
  const { requestState } = asked
  const done = await setup.call(
    'tools/call',
    { name: 'one__plain', requestState, inputResponses: { [own]: { action: 'cancel' } } },
    { capabilities: asker }
  )
  t.same(done['structuredContent'], { answers: [{ action: 'decline' }, { action: 'cancel' }] })
})

t.test('what a task asks is declined when its client does not come back', async (t) => {
  const answers: unknown[] = []
  const one = maker({
    status: 'input_required',
    ask: (client) => {
      void client.ask(question).then((answer) => answers.push(answer))
    }
  })
  const setup = await modernSetup(t, { one, two: {} })
  const { get } = await taskOf(setup, { capabilities: asker })
  t.match(await get(), { status: 'input_required' })
  setup.clock.move(5 * 60_000)
  t.match(await get(), { status: 'input_required' }, 'who asks now and then has not gone')
  t.same(answers, [])
  for (let minute = 0; minute < 11; minute++) setup.clock.move(60_000)
  await until('the server is told', () => answers.length === 1)
  t.same(answers, [{ action: 'cancel' }])
})

t.test('a task is cancelled; one that has ended is no error, one that is unknown is', async (t) => {
  const one = maker()
  const setup = await modernSetup(t, { one, two: {} })
  const { params, get } = await taskOf(setup)
  const cancel = () => setup.call('tasks/cancel', params, { capabilities: taskClient })
  t.same(await cancel(), { resultType: 'complete' })
  t.match(await get(), { status: 'cancelled' })
  t.same(await cancel(), { resultType: 'complete' })
  one.answer = () => {
    throw new RpcError({ code: -32602, message: 'forgotten' })
  }
  t.match(await thrown(cancel()), { error: { code: -32602, message: 'forgotten' } })
})

t.test('a connection that broke is opened again with the capabilities that the task was created with', async (t) => {
  const one = maker()
  const setup = await modernSetup(t, { one, two: {} })
  const { get } = await taskOf(setup, { capabilities: asker })
  const [, made] = setup.connections.filter(({ upstream }) => upstream === 'one')
  one.broken = new GatewayError('upstream_lost', 'it broke')
  made?.events.closed(new Error('it broke'))
  await t.rejects(get(), { code: 'upstream_lost' })
  one.broken = undefined
  t.match(await get(), { status: 'working' })
  const all = setup.connections.filter(({ upstream }) => upstream === 'one')
  t.same(all.at(-1)?.handshake.capabilities, made?.handshake.capabilities)
  t.equal(all.length, 3, 'that of the listing, the first and the second')
})

t.test('what another connection has under the id of the task, but made at another time, is another task', async (t) => {
  const one = maker()
  const setup = await modernSetup(t, { one, two: {} })
  const { params, get } = await taskOf(setup)
  t.match(await get(), { status: 'working' })
  setup.connections.findLast(({ upstream }) => upstream === 'one')?.events.closed(new Error('it broke'))
  one.createdAt = 'later'
  for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update']) {
    await t.rejects(
      setup.call(method, { ...params, inputResponses: {} }, { capabilities: taskClient }),
      { code: 'invalid_params', data: { outcome: 'unknown' } },
      method
    )
  }
  t.equal(one.status, 'working')
  one.createdAt = 'c'
  t.match(await get(), { status: 'working' }, 'the very same is found')
})

t.test('a task that is not open any more is found on its own connection', async (t) => {
  const one = maker({ namesCalls: false })
  let made = 0
  let both: (() => void) | undefined
  const together = new Promise<void>((resolve) => {
    both = resolve
  })
  one.answer = async ({ method, params }) => {
    const at = { status: 'working', createdAt: 'c', lastUpdatedAt: 'l', ttl: null }
    if (method !== 'tools/call') return { ...at, taskId: params?.['taskId'] }
    const taskId = `task-${++made}`
    if (made === 2) both?.()
    await together
    return { task: { ...at, taskId } }
  }
  const setup = await modernSetup(t, { one, two: {} }, { type: 'stdio' })
  const make = () => taskOf(setup, { capabilities: asker })
  const parallel = await Promise.all([make(), make()])
  for (let n = 0; n < 64; n++) await make()
  const open = setup.connections.length
  for (const { params, get } of parallel) t.match(await get(), { status: 'working', taskId: params.taskId })
  t.equal(setup.connections.length, open)
  const asked = setup.connections.filter(({ requests }) => requests.some(({ method }) => method === 'tasks/get'))
  t.same(
    asked.map(({ requests }) => requests.findLast(({ method }) => method === 'tasks/get')?.params),
    [{ taskId: 'task-1' }, { taskId: 'task-2' }],
    'each on its own'
  )
})

t.test('a client without the extension gets the result when it is there; giving up cancels the task', async (t) => {
  const one = maker({ statusMessage: 'warming up' })
  const setup = await modernSetup(t, { one, two: {} })
  const heard: Notification[] = []
  const running = setup.call('tools/call', { name: 'one__x', _meta: { progressToken: 7 } }, { heard })
  await until('it is under way', () => heard.length === 1)
  setup.clock.move(100)
  await until('it is asked how it goes', () => setup.requests('tasks/get').length === 1)
  one.statusMessage = 'nearly there'
  await until('the next word', () => {
    setup.clock.move(100)
    return heard.length === 2
  })
  one.status = 'completed'
  t.same(await running, { ...ok, resultType: 'complete' })
  t.same(
    heard.map(({ params }) => params),
    [
      { progressToken: 7, progress: 1, message: 'warming up' },
      { progressToken: 7, progress: 2, message: 'nearly there' }
    ]
  )

  one.status = 'failed'
  one.outcome = () => {
    throw new RpcError({ code: -32050, message: 'broke' })
  }
  await t.rejects(
    setup.call('tools/call', { name: 'one__x' }),
    { code: 'upstream_protocol' },
    'a code that 2026-07-28 reserves'
  )
  one.outcome = () => {
    throw new RpcError({ code: 5, message: 'broke' })
  }
  t.match(await thrown(setup.call('tools/call', { name: 'one__x' })), { error: { code: 5, message: 'broke' } })

  one.status = 'working'
  const stop = new AbortController()
  const left = setup.call('tools/call', { name: 'one__x' }, { signal: stop.signal })
  await until('its result is waited for', () => setup.requests('tasks/result').length === 4)
  stop.abort()
  await t.rejects(left)
  await until('the task is cancelled', () => one.status === 'cancelled')
})

t.test('progress never falls, and the status message of a task is shortened', async (t) => {
  const one = maker({ statusMessage: 'x'.repeat(5_000) })
  const answer = one.answer?.bind(one)
  let caller: Client | undefined
  one.answer = (request, client, signal) => {
    if (request.method === 'tasks/result') caller = client
    return answer?.(request, client, signal) ?? {}
  }
  const setup = await modernSetup(t, { one, two: {} })
  const heard: Notification[] = []
  const running = setup.call('tools/call', { name: 'one__x', _meta: { progressToken: 7 } }, { heard })
  await until('it is under way', () => heard.length === 1 && caller !== undefined)
  t.equal(String(heard[0]?.params?.['message']).length, 1_000)
  for (const progress of [0.5, 1, 2, 3])
    caller?.notify({ method: 'notifications/progress', params: { progressToken: 7, progress } })
  one.status = 'completed'
  t.same(await running, { ...ok, resultType: 'complete' })
  t.same(
    heard.map(({ params }) => params?.['progress']),
    [1, 2, 3]
  )
})

t.test(
  'a server that is silent about a running task is waited for; one that has nothing to say of one that has ended is not',
  async (t) => {
    const one = maker()
    const answer = one.answer?.bind(one)
    let silences = 2
    one.answer = (request, client, signal) => {
      if (request.method !== 'tasks/result' || silences === 0) return answer?.(request, client, signal) ?? {}
      silences--
      throw new GatewayError('upstream_timeout', 'nothing came')
    }
    const setup = await modernSetup(t, { one, two: {} })
    const running = setup.call('tools/call', { name: 'one__x' })
    await until('it is asked for again, and again', () => setup.requests('tasks/result').length === 3)
    one.status = 'completed'
    t.same(await running, { ...ok, resultType: 'complete' })
    silences = 1
    await t.rejects(setup.call('tools/call', { name: 'one__x' }), { code: 'upstream_timeout' })
  }
)

t.test('discovery says that there are tasks', async (t) => {
  const setup = await modernSetup(
    t,
    { one: maker(), two: maker({ capabilities: { tools: {} } }) },
    { endpoints: { default: { upstreams: ['one'] }, without: { upstreams: ['two'] } } }
  )
  t.match(await setup.call('server/discover'), {
    capabilities: { extensions: { [tasksExtension]: {} }, tasks: undefined }
  })
  await t.rejects(setup.call('tasks/get', { taskId: 'x' }, { endpoint: 'without', capabilities: taskClient }), {
    code: 'unknown_method'
  })
  const { tools } = await setup.call('tools/list')
  t.notMatch(JSON.stringify(tools), /taskSupport/)
})
