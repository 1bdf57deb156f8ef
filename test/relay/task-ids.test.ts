// Tasks where the two sides do not fit, or do not mean well: revisions, capabilities, the lists of a server that knows
// only the gateway, and ids of tasks that clients host.

import { startGateway } from './kit.ts'
import t, { type Test } from 'tap'
import { keyOf } from '../kit/acme-gateway.ts'
import { legacyClient, send, type LegacyClient, type Listening } from '../kit/client.ts'
import type { Json } from '../kit/mcp-server.ts'
import { until } from '../kit/until.ts'
import { isCall, isMethod, startUpstream, type HttpUpstream, type Seen } from '../kit/upstream.ts'

const relatedTask = 'io.modelcontextprotocol/related-task'
const tools = ['job', 'echo', 'ask'].map((name) => ({
  name,
  inputSchema: { type: 'object' },
  execution: { taskSupport: 'optional' }
}))
const capable = { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }
const taskOf = (taskId: string, status = 'working', ttl: number | null = 60_000): Json => ({
  taskId,
  status,
  ttl,
  createdAt: '2025-11-25T10:00:00Z',
  lastUpdatedAt: '2025-11-25T10:00:00Z',
  'x-kept': [1]
})
const paramsOf = ({ message }: Seen): Json => (message?.['params'] ?? {}) as Json

interface Jobs extends HttpUpstream {
  /** Id -> status. */
  readonly tasks: Map<string, string>
}

/** A server that makes a task of every call of `job` that asks for one, and lists all tasks to everybody. */
async function jobs(t: Test, capabilities: Json = capable): Promise<Jobs> {
  const upstream = await startUpstream({ tools, capabilities })
  t.teardown(() => upstream.close())
  const tasks = new Map<string, string>()
  const on = (match: (seen: Seen) => boolean, result: (params: Json) => Json) =>
    upstream.override(
      match,
      (response, seen) => {
        response
          .setHeader('content-type', 'application/json')
          .end(JSON.stringify({ jsonrpc: '2.0', id: seen.message?.['id'], result: result(paramsOf(seen)) }))
      },
      Infinity
    )
  on(isCall('job'), (params) => {
    if (params['task'] === undefined) return { content: [{ type: 'text', text: 'done at once' }] }
    const id = `job-${tasks.size + 1}`
    tasks.set(id, 'working')
    return { task: taskOf(id), _meta: { 'x-kept': 1 } }
  })
  on(isMethod('tasks/get'), ({ taskId }) => taskOf(String(taskId), tasks.get(String(taskId))))
  on(isMethod('tasks/list'), ({ cursor }) => {
    const all = [...tasks].map(([id, status]) => taskOf(id, status))
    const from = Number(cursor ?? 0)
    return { tasks: all.slice(from, from + 2), ...(from + 2 < all.length && { nextCursor: String(from + 2) }) }
  })
  return { ...upstream, tasks }
}

const at = ({ url }: HttpUpstream, more: object = {}) => ({ type: 'http', url, ...more })
const single = { default: { upstreams: ['up'], prefix: '' } }
const create = async (client: LegacyClient, name = 'job'): Promise<Json & { taskId: string }> =>
  (await client.request('tools/call', { name, task: { ttl: 60_000 } })).json.result.task
const statusesOf = ({ messages }: Listening): Json[] =>
  messages.filter(({ method }) => method === 'notifications/tasks/status').map(({ params }) => params)
const status = (taskId: string, now = 'working'): Json => ({
  jsonrpc: '2.0',
  method: 'notifications/tasks/status',
  params: taskOf(taskId, now)
})

t.test('everything of a task but its id is as the server wrote it', async (t) => {
  const upstream = await jobs(t)
  const { url } = await startGateway(t, { upstreams: { up: at(upstream) }, endpoints: single })
  const ada = await legacyClient(url(), keyOf.ada)
  const { result } = (await ada.request('tools/call', { name: 'job', task: { ttl: 60_000 } })).json
  const { taskId } = result.task
  t.same(result, { task: { ...taskOf('job-1'), taskId }, _meta: { 'x-kept': 1 } })
  t.match(taskId, /^[A-Za-z0-9_-]{40,200}$/)
  t.same((await ada.request('tasks/get', { taskId })).json.result, { ...taskOf('job-1'), taskId })
  t.same(upstream.seen.filter(isMethod('tasks/get')).map(paramsOf), [{ taskId: 'job-1' }])
  t.same(
    (await ada.request('tools/call', { name: 'job' })).json.result,
    { content: [{ type: 'text', text: 'done at once' }] },
    'without the parameter it is a call'
  )
})

t.test('what is too long for an id makes no task: neither kept nor listed, and nothing to ask for', async (t) => {
  const upstream = await jobs(t)
  const { url } = await startGateway(t, { upstreams: { up: at(upstream) }, endpoints: single })
  const ada = await legacyClient(url(), keyOf.ada)
  const seen: unknown[] = []
  for (const id of ['x'.repeat(1_025), 'y'.repeat(1_024)]) {
    upstream.tasks.set(id, 'working')
    upstream.override(isCall('echo'), (response, { message }) => {
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify({ jsonrpc: '2.0', id: message?.['id'], result: { task: taskOf(id) } }))
    })
    const { taskId } = await create(ada, 'echo')
    const { result, error } = (await ada.request('tasks/get', { taskId })).json
    seen.push([result?.status ?? error.code, (await ada.request('tasks/list')).json.result.tasks.length])
  }
  t.same(seen, [
    [-32602, 0],
    ['working', 1]
  ])
})

t.test(
  'a client of an older revision has no tasks: nothing is promised, the parameter means nothing, the methods do not exist',
  async (t) => {
    const upstream = await jobs(t)
    const { url } = await startGateway(t, { upstreams: { up: at(upstream) }, endpoints: single })
    for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18']) {
      const old = await legacyClient(url(), keyOf.ada, revision)
      t.notOk(old.initialized.json.result.capabilities.tasks)
      t.match((await old.request('tools/call', { name: 'job', task: {} })).json.result, {
        content: [{ text: 'done at once' }]
      })
      for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/list'])
        t.match((await old.request(method, { taskId: 'x' })).json.error, { code: -32601 }, `${revision} ${method}`)
    }
    t.equal(upstream.tasks.size, 0)
    const ada = await legacyClient(url(), keyOf.ada)
    t.same(ada.initialized.json.result.capabilities.tasks, capable.tasks)
    t.ok((await create(ada)).taskId)
  }
)

t.test(
  'what no upstream of the endpoint can is not promised and not found; one that cannot is called as usual',
  async (t) => {
    const [rich, poor] = [
      await jobs(t, { ...capable, tasks: { requests: { tools: { call: {} } } } }),
      await jobs(t, { tools: {} })
    ]
    const { url } = await startGateway(t, {
      upstreams: { rich: at(rich), poor: at(poor) },
      endpoints: { default: { upstreams: ['rich', 'poor'] }, poor: { upstreams: ['poor'] } }
    })
    const ada = await legacyClient(url(), keyOf.ada)
    t.same(ada.initialized.json.result.capabilities.tasks, { requests: { tools: { call: {} } } })
    const { taskId } = await create(ada, 'rich__job')
    t.match((await ada.request('tasks/get', { taskId })).json.result, { status: 'working' })
    for (const method of ['tasks/cancel', 'tasks/list'])
      t.match((await ada.request(method, { taskId })).json.error, { code: -32601 })
    t.match((await ada.request('tools/call', { name: 'poor__job', task: {} })).json.result, {
      content: [{ text: 'done at once' }]
    })
    const none = await legacyClient(url('poor'), keyOf.ada)
    t.notOk(none.initialized.json.result.capabilities.tasks)
    t.match((await none.request('tasks/get', { taskId })).json.error, { code: -32601 })
  }
)

t.test('a server that lists the tasks of everybody to the gateway shows nobody those of others', async (t) => {
  for (const isolation of ['session', 'shared']) {
    const upstream = await jobs(t)
    const { url } = await startGateway(t, { upstreams: { up: at(upstream, { isolation }) }, endpoints: single })
    const [ada, bob] = [await legacyClient(url(), keyOf.ada), await legacyClient(url(), keyOf.bob)]
    const [own, foreign] = [(await create(ada)).taskId, (await create(bob)).taskId]
    const again = await legacyClient(url(), keyOf.ada)
    for (const [client, id] of [
      [ada, own],
      [bob, foreign],
      [again, own]
    ] as const) {
      const { tasks, nextCursor } = (await client.request('tasks/list')).json.result
      t.same([tasks.map(({ taskId }: Json) => taskId), nextCursor], [[id], undefined], isolation)
    }
    t.match((await bob.request('tasks/get', { taskId: own })).json.error, { code: -32602 })
  }
})

t.test('the list goes through the upstreams page by page, past one that is down', async (t) => {
  const [one, down, two] = [await jobs(t), await jobs(t), await jobs(t)]
  const { url } = await startGateway(t, {
    upstreams: { one: at(one), down: at(down), two: at(two) },
    endpoints: { default: { upstreams: ['one', 'down', 'two'] } }
  })
  const ada = await legacyClient(url(), keyOf.ada)
  const ids: string[] = []
  for (const name of ['one', 'one', 'one', 'two']) ids.push((await create(ada, `${name}__job`)).taskId)
  const walk = async (): Promise<string[][]> => {
    const pages: string[][] = []
    for (let cursor: string | undefined, first = true; first || cursor !== undefined; first = false) {
      const { tasks, nextCursor } = (await ada.request('tasks/list', cursor === undefined ? {} : { cursor })).json
        .result
      pages.push(tasks.map(({ taskId }: Json) => taskId))
      cursor = nextCursor
    }
    return pages
  }
  t.same(await walk(), [ids.slice(0, 2), ids.slice(2, 3), [], ids.slice(3)])
  await down.close()
  t.same(await walk(), [ids.slice(0, 2), ids.slice(2, 3), ids.slice(3)])
})

t.test(
  'status notifications reach the session, or where a connection is shared those sessions that know the task, under their own id',
  async (t) => {
    for (const isolation of ['session', 'shared']) {
      const upstream = await jobs(t)
      const { url } = await startGateway(t, { upstreams: { up: at(upstream, { isolation }) }, endpoints: single })
      const clients = [await legacyClient(url(), keyOf.ada), await legacyClient(url(), keyOf.bob)] as const
      const streams = await Promise.all(clients.map((client) => client.listen()))
      const { taskId } = await create(clients[0])
      await until('the upstream can be heard', () => upstream.streams() >= (isolation === 'session' ? 2 : 1))
      upstream.broadcast(status('job-1', 'completed'))
      await streams[0]?.next(({ method }) => method === 'notifications/tasks/status')
      t.same(streams.map(statusesOf), [[{ ...taskOf('job-1', 'completed'), taskId }], []], isolation)
    }
  }
)

t.test('a task that runs keeps its connection open; one that has ended does not', async (t) => {
  const upstream = await jobs(t)
  // A process that is held up for longer than this could find both idle.
  const { url } = await startGateway(t, { upstreams: { up: at(upstream, { idleMs: 3_000 }) }, endpoints: single })
  const [busy, idle] = [await legacyClient(url(), keyOf.ada), await legacyClient(url(), keyOf.ada)]
  const ended = (): unknown[] =>
    upstream.seen.filter(({ method }) => method === 'DELETE').map(({ headers }) => headers['mcp-session-id'])
  const { taskId } = await create(busy)
  const used = upstream.seen.findLast(isCall('job'))?.headers['mcp-session-id']
  for (let round = 0; round < 2; round++) {
    await idle.request('tools/call', { name: 'echo' })
    const other = upstream.seen.findLast(isCall('echo'))?.headers['mcp-session-id']
    await until('the connection without a task is closed', () => ended().includes(other))
  }
  t.notOk(ended().includes(used))
  upstream.tasks.set('job-1', 'completed')
  await busy.request('tasks/get', { taskId })
  await until('it is closed too', () => ended().includes(used))
})

t.test(
  'a result is waited for longer than an upstream may be silent, as long as it says that the task runs',
  async (t) => {
    const upstream = await jobs(t)
    // What is not silent has to be answered within it, on a busy machine too.
    const { url } = await startGateway(t, { upstreams: { up: at(upstream, { timeoutMs: 2_500 }) }, endpoints: single })
    const ada = await legacyClient(url(), keyOf.ada)
    const { taskId } = await create(ada)
    // An override that comes later is looked at later, so this one answers once the two silent ones are used up.
    upstream.override(isMethod('tasks/result'), () => {}, 2)
    upstream.override(isMethod('tasks/result'), (response, { message }) => {
      response.setHeader('content-type', 'application/json').end(
        JSON.stringify({
          jsonrpc: '2.0',
          id: message?.['id'],
          result: { content: [], _meta: { [relatedTask]: { taskId: 'job-1' } } }
        })
      )
    })
    t.same((await ada.request('tasks/result', { taskId })).json.result, {
      content: [],
      _meta: { [relatedTask]: { taskId } }
    })
    upstream.tasks.set('job-1', 'failed')
    upstream.override(isMethod('tasks/result'), () => {})
    t.match(
      (await ada.request('tasks/result', { taskId })).json.error,
      { data: { reason: 'upstream_timeout' } },
      'a task that has ended has no reason to be silent'
    )
  }
)

t.test('ids of tasks that the client hosts: each upstream has its own, and only for what it asked', async (t) => {
  const [one, two] = [await jobs(t), await jobs(t)]
  const { url } = await startGateway(t, {
    upstreams: { one: at(one), two: at(two) },
    endpoints: { default: { upstreams: ['one', 'two'] } }
  })
  const ada = await legacyClient(url(), keyOf.ada, '2025-11-25', {
    sampling: {},
    tasks: { list: {}, requests: { sampling: { createMessage: {} } } }
  })
  const stream = await ada.listen()
  let asked = 0
  /** Has an upstream ask; the client answers. @returns what the client was asked, and what the upstream was answered */
  async function ask(
    name: string,
    method: string,
    params: Json,
    answer: Json
    // eslint-disable-next-line typescript/no-explicit-any
  ): Promise<{ question: any; answer: Json }> {
    let answered = false
    const call = ada
      .request(
        'tools/call',
        { name: `${name}__ask`, arguments: { method, params } },
        { headers: { accept: 'application/json' } }
      )
      .finally(() => {
        answered = true
      })
    const questions = (): any[] => stream.messages.filter((message) => 'id' in message && 'method' in message) // eslint-disable-line typescript/no-explicit-any
    await until('a question, or an answer without one', () => questions().length > asked || answered)
    const question = questions()[asked]
    if (question !== undefined) {
      asked++
      await send(url(), {
        headers: ada.headers,
        body: JSON.stringify({ jsonrpc: '2.0', id: question.id, result: answer })
      })
    }
    return { question, answer: JSON.parse((await call).json.result.content[0].text) }
  }
  const idOf = ({ answer }: { answer: Json }): string => String(((answer['result'] as Json)['task'] as Json)['taskId'])

  const sampling = { messages: [], maxTokens: 1, task: { ttl: 1_000 } }
  const [first, second] = [
    await ask('one', 'sampling/createMessage', sampling, { task: taskOf('mine') }),
    await ask('two', 'sampling/createMessage', sampling, { task: taskOf('other') })
  ]
  t.same(first.question.params.task, { ttl: 1_000 })
  t.same(first.answer['result'], { task: { ...taskOf('mine'), taskId: idOf(first) } })
  t.notOk([idOf(first), idOf(second)].some((id) => id === 'mine' || id === 'other'))

  const got = await ask('one', 'tasks/get', { taskId: idOf(first) }, taskOf('mine', 'completed'))
  t.equal(got.question.params.taskId, 'mine')
  t.same(got.answer['result'], { ...taskOf('mine', 'completed'), taskId: idOf(first) })
  const result = await ask(
    'one',
    'tasks/result',
    { taskId: idOf(first) },
    { model: 'm', _meta: { [relatedTask]: { taskId: 'mine' } } }
  )
  t.same((result.answer['result'] as Json)['_meta'], { [relatedTask]: { taskId: idOf(first) } })
  const listed = await ask(
    'one',
    'tasks/list',
    {},
    { tasks: [taskOf('mine'), taskOf('other'), taskOf('own business')] }
  )
  t.same((listed.answer['result'] as Json)['tasks'], [{ ...taskOf('mine'), taskId: idOf(first) }])

  for (const taskId of ['mine', 'other', idOf(second), 'x', '']) {
    const refused = await ask('one', 'tasks/get', { taskId }, {})
    t.equal(refused.question, undefined)
    t.match(refused.answer, { error: { code: -32602 } })
  }
  await ada.notify('notifications/tasks/status', taskOf('mine', 'completed'))
  await ada.notify('notifications/tasks/status', taskOf('own business'))
  const told = ({ server }: HttpUpstream): unknown[] =>
    server.received.filter(({ method }) => method === 'notifications/tasks/status').map(({ params }) => params)
  await until('the one that asked is told', () => told(one).length === 1)
  t.same([told(one), told(two)], [[{ ...taskOf('mine', 'completed'), taskId: idOf(first) }], []])
})
