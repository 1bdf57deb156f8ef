// A real server with tasks of 2025-11-25, on the SDK: over Streamable HTTP inside the test, or over stdio as `node
// task-server.ts`.

import { type Teardown } from './until.ts'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  InMemoryTaskMessageQueue,
  InMemoryTaskStore
} from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { ElicitResultSchema, type CallToolResult } from '@modelcontextprotocol/sdk/types.js'

/** What a task of `work` ends with. */
export const made: CallToolResult = {
  content: [
    { type: 'text', text: 'made' },
    { type: 'resource_link', uri: 'test://made', name: 'made' }
  ],
  structuredContent: { made: true }
}

export function createTaskServer(taskStore = new InMemoryTaskStore()): McpServer {
  const server = new McpServer(
    { name: 'tasks', version: '1' },
    {
      capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
      taskStore,
      taskMessageQueue: new InMemoryTaskMessageQueue(),
      defaultTaskPollInterval: 20
    }
  )
  const running: Array<() => Promise<void>> = []

  /** Tasks that run until `finish` is called. */
  for (const [name, taskSupport] of [
    ['work', 'optional'],
    ['toil', 'required']
  ] as const) {
    server.experimental.tasks.registerToolTask(
      name,
      { description: 'Works until it is told to finish', execution: { taskSupport } },
      {
        async createTask(extra) {
          const task = await extra.taskStore.createTask({ ttl: 60_000, pollInterval: 20 })
          await extra.taskStore.updateTaskStatus(task.taskId, 'working', `${name} is under way`)
          running.push(async () => {
            await extra.taskStore.storeTaskResult(task.taskId, 'completed', made)
          })
          return { task }
        },
        getTask: async (extra) => await extra.taskStore.getTask(extra.taskId),
        getTaskResult: async (extra) => (await extra.taskStore.getTaskResult(extra.taskId)) as CallToolResult
      }
    )
  }

  /** A task that needs a word of the user. */
  server.experimental.tasks.registerToolTask(
    'confirm',
    { description: 'Asks before it is done', execution: { taskSupport: 'required' } },
    {
      async createTask(extra) {
        const task = await extra.taskStore.createTask({ ttl: 60_000, pollInterval: 20 })
        const { taskId } = task
        const ask = async (): Promise<void> => {
          await extra.taskStore.updateTaskStatus(taskId, 'input_required')
          const answer = await server.server.request(
            {
              method: 'elicitation/create',
              params: {
                message: 'Sure?',
                requestedSchema: { type: 'object', properties: { sure: { type: 'boolean' } } }
              }
            },
            ElicitResultSchema,
            { relatedTask: { taskId } }
          )
          await extra.taskStore.storeTaskResult(taskId, 'completed', {
            content: [{ type: 'text', text: JSON.stringify(answer) }]
          })
        }
        ask().catch(async (error: unknown) => {
          await extra.taskStore.storeTaskResult(taskId, 'failed', {
            content: [{ type: 'text', text: String(error) }],
            isError: true
          })
        })
        return { task }
      },
      getTask: async (extra) => await extra.taskStore.getTask(extra.taskId),
      getTaskResult: async (extra) => (await extra.taskStore.getTaskResult(extra.taskId)) as CallToolResult
    }
  )

  server.registerTool('finish', { description: 'Finishes all that works' }, async () => {
    for (const finish of running.splice(0)) await finish()
    return { content: [{ type: 'text', text: 'finished' }] }
  })

  /** Lets the client sample as a task of its own, and waits for it. */
  server.registerTool('delegate', { description: 'Has the client sample as a task' }, async () => {
    const seen: string[] = []
    const params = {
      messages: [{ role: 'user' as const, content: { type: 'text' as const, text: 'a haiku' } }],
      maxTokens: 10
    }
    for await (const message of server.server.experimental.tasks.createMessageStream(params, {
      task: { ttl: 60_000 }
    })) {
      if (message.type === 'taskCreated') seen.push(`created ${message.task.taskId}`)
      else if (message.type === 'taskStatus') seen.push(message.task.status)
      else if (message.type === 'result') seen.push(JSON.stringify(message.result))
      else seen.push(`error ${message.error.message}`)
    }
    const listed = await server.server.experimental.tasks
      .listTasks()
      .then(({ tasks }) => tasks.map(({ taskId }) => taskId), String)
    return { content: [{ type: 'text', text: JSON.stringify({ seen, listed }) }] }
  })
  return server
}

/** Over Streamable HTTP on a free port. @returns what an upstream is configured with */
export async function httpTaskServer(t: Teardown): Promise<{ type: 'http'; url: string }> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const http = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const known = sessions.get(String(request.headers['mcp-session-id']))
    if (known !== undefined) return void known.handleRequest(request, response)
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => {
        sessions.set(id, transport)
      }
    })
    const store = new InMemoryTaskStore()
    t.teardown(() => store.cleanup()) // Its timers would hold up the end of the test.
    void createTaskServer(store)
      .connect(transport)
      .then(() => transport.handleRequest(request, response))
  })
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  t.teardown(
    () =>
      new Promise((resolve) => {
        http.close(resolve)
        http.closeAllConnections()
      })
  )
  return { type: 'http', url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp` }
}

export const stdioTaskServer = { command: process.execPath, args: [new URL(import.meta.url).pathname] }

if (import.meta.main) {
  process.stdin.once('end', () => process.exit(0)) // The store's timers would hold it up.
  await createTaskServer().connect(new StdioServerTransport())
}
