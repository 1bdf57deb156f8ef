// Clients of 2026-07-28 and a real server whose tools are tasks of 2025-11-25, over Streamable HTTP and over stdio.

import { type Teardown, until } from '../../kit/until.ts'
import t from 'tap'
import { gateway, type TestGateway } from '../../kit/gateway.ts'
import { eventsOf } from '../../kit/client.ts'
import { modernRequest } from '../../kit/modern-client.ts'
import { redis } from '../../kit/redis.ts'
import { httpTaskServer, made, stdioTaskServer } from '../../kit/task-server.ts'
import { startUpstream } from '../../kit/upstream.ts'

const ada = 'gh_key_of_ada_0123456789'
const bob = 'gh_key_of_bob_0123456789'
const tasks = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
const asker = { elicitation: { form: {} } }

async function acme(t: Teardown, upstream: unknown) {
  const other = await startUpstream()
  t.teardown(() => other.close())
  const { url } = await gateway(t, {
    upstreams: { up: upstream, other: { type: 'http', url: other.url } },
    endpoints: { default: { upstreams: ['up', 'other'] } },
    auth: {
      keys: [
        { name: 'ada', key: ada },
        { name: 'bob', key: bob }
      ]
    }
  })
  const send = async (method: string, params: Record<string, unknown>, capabilities = {}, more = {}) => {
    const { text, json } = await modernRequest(url(), method, params, { token: ada, capabilities, ...more })
    return json ?? eventsOf(text).at(-1)
  }
  const call = async (name: string, capabilities = {}, more = {}) =>
    await send('tools/call', { name: `up__${name}`, arguments: {} }, capabilities, more)
  const get = async (taskId: string, capabilities: Record<string, unknown> = tasks) =>
    (await send('tasks/get', { taskId }, capabilities)).result
  return { url, send, call, get }
}

for (const [over, upstreamOf] of [
  ['Streamable HTTP', httpTaskServer],
  ['stdio', async () => stdioTaskServer]
] as const) {
  t.test(`over ${over}: a tool that is a task is one for a client that knows the extension`, async (t) => {
    const { send, call, get } = await acme(t, await upstreamOf(t))
    const { result } = await call('toil', tasks)
    t.match(result, {
      resultType: 'task',
      status: 'working',
      pollIntervalMs: 20,
      createdAt: String,
      lastUpdatedAt: String
    })
    t.equal(typeof result.ttlMs, 'number')
    t.notMatch(Object.keys(result), ['ttl'])
    const { taskId } = result
    t.match(await get(taskId), {
      resultType: 'complete',
      status: 'working',
      statusMessage: 'toil is under way',
      taskId
    })
    t.match(await call('finish'), { result: { content: [{ text: 'finished' }] } })
    const done = await get(taskId)
    t.match(done, {
      resultType: 'complete',
      status: 'completed',
      taskId,
      result: { structuredContent: made.structuredContent }
    })
    t.equal(done.result.content[1].uri, 'gatehouse://up/test://made')
    t.notOk(done.result._meta, 'what task it belongs to is said beside it')
    t.match(await send('tasks/cancel', { taskId }, tasks), { result: { resultType: 'complete' } }, 'one that has ended')
    t.match(await get(taskId), { status: 'completed' })
  })

  t.test(`over ${over}: input requests of a task are in tasks/get, and answered by tasks/update`, async (t) => {
    const { send, call, get } = await acme(t, await upstreamOf(t))
    const capabilities = { ...tasks, ...asker }
    const { taskId } = (await call('confirm', capabilities)).result
    const asked = await until('it asks', async () => {
      const task = await get(taskId, capabilities)
      return task.status === 'input_required' ? task : undefined
    })
    const [[key, question]] = Object.entries(asked.inputRequests) as [[string, unknown]]
    t.same(question, {
      method: 'elicitation/create',
      params: { message: '[up] Sure?', requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } } } }
    })
    t.same(
      Object.keys((await get(taskId, tasks)).inputRequests),
      [key],
      'the same question under the same key, whatever this request declares'
    )
    t.match(await send('tasks/update', { taskId, inputResponses: { [key]: { action: 'perhaps' } } }, capabilities), {
      error: { code: -32602 }
    })
    t.match(await send('tasks/update', { taskId, inputResponses: 7 }, capabilities), { error: { code: -32602 } })
    t.same(
      (
        await send(
          'tasks/update',
          { taskId, inputResponses: { [key]: { action: 'accept', content: { sure: true } }, other: 1 } },
          capabilities
        )
      ).result.resultType,
      'complete'
    )
    const done = await until('it has ended', async () => {
      const task = await get(taskId, capabilities)
      return task.status === 'completed' ? task : undefined
    })
    t.same(JSON.parse(done.result.content[0].text), { action: 'accept', content: { sure: true } })
    t.equal(done.inputRequests, undefined)
  })

  t.test(
    `over ${over}: a client that does not know the extension waits for the result, and gets its progress`,
    async (t) => {
      const { url, call } = await acme(t, await upstreamOf(t))
      const stop = new AbortController()
      const running = modernRequest(
        url(),
        'tools/call',
        { name: 'up__toil', arguments: {} },
        { token: ada, meta: { progressToken: 'p' }, signal: stop.signal }
      )
      let ended = false
      running
        .finally(() => {
          ended = true
        })
        .catch(() => {})
      await until('it is finished', async () => {
        await call('finish')
        return ended
      })
      const messages = eventsOf((await running).text)
      t.match(messages.at(-1), {
        result: {
          resultType: 'complete',
          structuredContent: made.structuredContent,
          content: [{}, { uri: 'gatehouse://up/test://made' }]
        }
      })
      const progress = {
        method: 'notifications/progress',
        params: { progressToken: 'p', progress: 1, message: 'toil is under way' }
      }
      t.match(messages.slice(0, -1), [progress])
      t.equal(messages.length, 2)
    }
  )

  t.test(`over ${over}: server requests of such a call become input_required, like those of any call`, async (t) => {
    const { send, call } = await acme(t, await upstreamOf(t))
    const { result } = await call('confirm', asker)
    t.match(result, { resultType: 'input_required', requestState: String })
    const [key] = Object.keys(result.inputRequests)
    const answer = await send(
      'tools/call',
      {
        name: 'up__confirm',
        arguments: {},
        requestState: result.requestState,
        inputResponses: { [key ?? '']: { action: 'accept', content: { sure: false } } }
      },
      asker
    )
    t.match(answer.result, { resultType: 'complete' })
    t.same(JSON.parse(answer.result.content[0].text), { action: 'accept', content: { sure: false } })
  })

  t.test(`over ${over}: a task is cancelled, and stays so`, async (t) => {
    const { send, call, get } = await acme(t, await upstreamOf(t))
    const { taskId } = (await call('toil', tasks)).result
    t.match(await send('tasks/cancel', { taskId }, tasks), { result: { resultType: 'complete' } })
    t.match(await get(taskId), { status: 'cancelled' })
    t.equal((await get(taskId)).result, undefined)
  })

  t.test(`over ${over}: a task is its owner's, and what is none is unknown`, async (t) => {
    const { send, call } = await acme(t, await upstreamOf(t))
    const { taskId } = (await call('toil', tasks)).result
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const params = { taskId, inputResponses: {} }
      t.match(await send(method, params, tasks, { token: bob }), { error: { code: -32602 } })
      t.match(await send(method, { ...params, taskId: `${taskId}x` }, tasks), { error: { code: -32602 } })
      t.match(await send(method, params), { error: { code: -32021, data: { requiredCapabilities: tasks } } })
      t.match(await send(method, params, tasks), { result: { resultType: 'complete' } })
    }
  })
}

t.test('a tool that may be a task is called plainly', async (t) => {
  const { url, call, send } = await acme(t, await httpTaskServer(t))
  const {
    result: { tools }
  } = await send('tools/list', {})
  t.notOk(
    tools.some((tool: { execution?: unknown }) => tool.execution !== undefined),
    'of which 2026-07-28 knows nothing'
  )
  const running = modernRequest(
    url(),
    'tools/call',
    { name: 'up__work', arguments: {} },
    { token: ada, capabilities: tasks }
  )
  let ended = false
  running
    .finally(() => {
      ended = true
    })
    .catch(() => {})
  await until('it is finished', async () => {
    await call('finish')
    return ended
  })
  t.match((await running).json, { result: { resultType: 'complete' } })
})

t.test('a task is answered by the process that holds its connection; when that is gone, by any other', async (t) => {
  const store = await redis(t)
  const options = {
    store: store.url,
    upstreams: { up: stdioTaskServer },
    endpoints: { default: { upstreams: ['up'], prefix: '' } },
    auth: {
      keys: [
        { name: 'ada', key: ada },
        { name: 'bob', key: bob }
      ]
    },
    limits: { drainMs: 100 }
  }
  const [one, two] = [await gateway(t, options), await gateway(t, options)]
  const capabilities = { ...tasks, ...asker }
  const at = async (acme: TestGateway, method: string, params: Record<string, unknown>, token = ada) =>
    (await modernRequest(acme.url(), method, params, { token, capabilities })).json
  const { taskId } = (await at(one, 'tools/call', { name: 'confirm', arguments: {} })).result
  const asked = await until('it asks', async () => {
    const task = (await at(two, 'tasks/get', { taskId })).result
    return task?.status === 'input_required' ? task : undefined
  })
  const [key = ''] = Object.keys(asked.inputRequests)
  t.match(await at(two, 'tasks/get', { taskId }, bob), { error: { code: -32602 } })
  t.match(await at(two, 'tasks/update', { taskId, inputResponses: { [key]: { action: 'decline' } } }), {
    result: { resultType: 'complete' }
  })
  const done = await until('it has ended', async () => {
    const task = (await at(two, 'tasks/get', { taskId })).result
    return task?.status === 'completed' ? task : undefined
  })
  t.same(JSON.parse(done.result.content[0].text), { action: 'decline' })
  await one.close()
  t.match(await at(two, 'tasks/get', { taskId }), { error: { code: -32602 } }, "its process went with the gateway's")
})
