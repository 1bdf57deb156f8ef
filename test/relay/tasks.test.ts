// Tasks of 2025-11-25 through the gateway, between a client and a server of the official SDK: what the client sees is
// what the server made, under an id that only this principal can use.

import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore
} from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  CreateTaskResultSchema,
  ElicitRequestSchema,
  type CallToolResult,
  type ClientCapabilities,
  type ElicitRequest,
  type TaskStatus
} from '@modelcontextprotocol/sdk/types.js'
import t, { type Test } from 'tap'
import { authOf, keyOf } from '../kit/acme-gateway.ts'
import { forgingIssuer } from '../kit/forging-issuer.ts'
import { gateway } from '../kit/gateway.ts'
import { httpTaskServer, made, stdioTaskServer } from '../kit/task-server.ts'
import { until } from '../kit/until.ts'

const relatedTask = 'io.modelcontextprotocol/related-task'

type Tasks = NonNullable<ClientCapabilities['tasks']>
const hosting: Tasks = {
  list: {},
  cancel: {},
  requests: { sampling: { createMessage: {} }, elicitation: { create: {} } }
}

interface Host {
  readonly client: Client
  readonly elicited: ElicitRequest[]
  /** Ids of the tasks that the client hosts. */
  hosted(): string[]
  create(tool: string): Promise<string>
  status(taskId: string): Promise<TaskStatus>
  call(tool: string): Promise<string>
}

async function host(t: Test, url: string, key: string, tasks?: Tasks): Promise<Host> {
  const store = new InMemoryTaskStore()
  const client = new Client(
    { name: 'host', version: '1' },
    {
      capabilities: { sampling: {}, elicitation: {}, ...(tasks !== undefined && { tasks }) },
      ...(tasks !== undefined && { taskStore: store, taskMessageQueue: new InMemoryTaskMessageQueue() })
    }
  )
  const elicited: ElicitRequest[] = []
  client.setRequestHandler(ElicitRequestSchema, (request) => {
    elicited.push(request)
    return { action: 'accept' as const, content: { sure: true } }
  })
  client.setRequestHandler(CreateMessageRequestSchema, async ({ params }, extra) => {
    const result = {
      model: 'm',
      role: 'assistant' as const,
      content: { type: 'text' as const, text: 'five seven five' }
    }
    if (params.task === undefined || extra.taskStore === undefined) return result
    const task = await extra.taskStore.createTask({ ttl: 60_000, pollInterval: 20 })
    await extra.taskStore.storeTaskResult(task.taskId, 'completed', result)
    return { task: await extra.taskStore.getTask(task.taskId) }
  })
  t.teardown(async () => {
    store.cleanup()
    await client.close()
  })
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${key}` } } })
  )
  await client.listTools()
  return {
    client,
    elicited,
    hosted: () => store.getAllTasks().map(({ taskId }) => taskId),
    create: async (tool) =>
      (
        await client.request(
          { method: 'tools/call', params: { name: tool, task: { ttl: 60_000 } } },
          CreateTaskResultSchema
        )
      ).task.taskId,
    status: async (taskId) => (await client.experimental.tasks.getTask(taskId)).status,
    call: async (tool) => {
      const { content } = (await client.callTool({ name: tool })) as CallToolResult
      return content[0]?.type === 'text' ? content[0].text : ''
    }
  }
}

const ways: Record<string, (t: Test) => Promise<unknown>> = {
  'Streamable HTTP': httpTaskServer,
  stdio: async () => stdioTaskServer
}

for (const [way, configured] of Object.entries(ways)) {
  t.test(`over ${way}`, async (t) => {
    const upstreams = { one: await configured(t), two: await configured(t) }
    const made_ = await gateway(t, {
      upstreams,
      endpoints: { default: { upstreams: ['one'], prefix: '' }, both: { upstreams: ['one', 'two'] } },
      auth: authOf(await forgingIssuer(t, { resource: 'urn:none', now: Date.now() }))
    })
    const url = made_.url()

    await t.test('a task is created, polled, finished and its result fetched', async (t) => {
      const { client, create, status, call } = await host(t, url, keyOf.ada)
      t.same(client.getServerCapabilities()?.tasks, { list: {}, cancel: {}, requests: { tools: { call: {} } } })
      t.equal((await client.listTools()).tools.find(({ name }) => name === 'work')?.execution?.taskSupport, 'optional')
      const taskId = await create('work')
      t.equal(await status(taskId), 'working')
      const result = client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)
      t.equal(await call('finish'), 'finished', 'while the result is waited for')
      t.same(await result, { ...made, _meta: { [relatedTask]: { taskId } } })
      t.equal(await status(taskId), 'completed')
      t.same(
        (await client.experimental.tasks.listTasks()).tasks.map((task) => task.taskId),
        [taskId],
        'always under the same id'
      )
      await t.rejects(client.experimental.tasks.cancelTask(taskId), { code: -32602 }, "the server's own refusal")
    })

    await t.test('a task is cancelled', async (t) => {
      const { client, create, status } = await host(t, url, keyOf.ada)
      const taskId = await create('work')
      t.match(await client.experimental.tasks.cancelTask(taskId), { taskId, status: 'cancelled' })
      t.equal(await status(taskId), 'cancelled')
    })

    await t.test(
      'what a task asks of the user names the task as the client knows it, and the answer reaches it',
      async (t) => {
        const { client, create, status, elicited } = await host(t, url, keyOf.ada)
        const taskId = await create('confirm')
        await until('input is required', async () => (await status(taskId)) === 'input_required')
        const result = await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)
        t.match(result, { content: [{ text: '{"action":"accept","content":{"sure":true}}' }] })
        t.same(
          elicited.map(({ params }) => params._meta?.[relatedTask]),
          [{ taskId }]
        )
      }
    )

    await t.test('a client hosts tasks for the server, under an id that says nothing of its own', async (t) => {
      const ada = await host(t, url, keyOf.ada, hosting)
      const { seen, listed } = JSON.parse(await ada.call('delegate')) as { seen: string[]; listed: string[] }
      t.match(seen.at(-1), 'five seven five')
      const [own] = ada.hosted()
      const shown = seen[0]?.replace('created ', '')
      t.ok(own !== undefined && shown !== undefined && shown !== own)
      t.same(listed, [shown], 'the same id in the list')
      const plain = await host(t, url, keyOf.ada)
      t.match(
        await plain.call('delegate'),
        /error|not support/,
        'a capability that the client did not declare is not declared for it'
      )
    })

    await t.test('behind an endpoint of several upstreams each task reaches its own', async (t) => {
      const { client, create, status, call } = await host(t, made_.url('both'), keyOf.ada)
      const tasks = [await create('one__work'), await create('two__work')]
      t.equal(await call('two__finish'), 'finished')
      t.same(await Promise.all(tasks.map(status)), ['working', 'completed'])
      const uri = (await client.experimental.tasks.getTaskResult(tasks[1] ?? '', CallToolResultSchema)).content[1]
      t.match(uri, { uri: 'gatehouse://two/test://made' }, 'with URIs as in an ordinary result')
      const first = await client.experimental.tasks.listTasks()
      const second = await client.experimental.tasks.listTasks(first.nextCursor)
      t.same(
        [...first.tasks, ...second.tasks].map(({ taskId }) => taskId),
        tasks
      )
      t.equal(second.nextCursor, undefined)
      for (const cursor of ['x', `${first.nextCursor ?? ''}x`, taskIdOf(tasks)])
        await t.rejects(client.experimental.tasks.listTasks(cursor), { code: -32602 }, 'a cursor of nobody')
    })

    await t.test('an id is worth nothing to anybody else, at another endpoint, or changed', async (t) => {
      const ada = await host(t, url, keyOf.ada)
      const taskId = await ada.create('work')
      const bob = await host(t, url, keyOf.bob)
      const elsewhere = await host(t, made_.url('both'), keyOf.ada)
      const forged = `${taskId.slice(0, -1)}${taskId.endsWith('A') ? 'B' : 'A'}`
      for (const [who, id] of [
        [bob, taskId],
        [elsewhere, taskId],
        [ada, forged],
        [ada, 'x'],
        [ada, '']
      ] as const) {
        const { tasks } = who.client.experimental
        await t.rejects(tasks.getTask(id), { code: -32602 })
        await t.rejects(tasks.getTaskResult(id, CallToolResultSchema), { code: -32602 })
        await t.rejects(tasks.cancelTask(id), { code: -32602 })
      }
      t.same((await bob.client.experimental.tasks.listTasks()).tasks, [])
      t.equal(await ada.status(taskId), 'working', 'the owner is served')
    })
  })
}

const taskIdOf = (tasks: readonly string[]): string => tasks[0] ?? ''
