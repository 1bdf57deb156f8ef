// A server of 2025-11-25 over stdio that numbers its tasks, each process for itself: `node numbered-tasks-server.ts`.
// They are done at once, with what `who` says and the process; that of `ask` only when its server request was answered.
// `die` ends the process.

import { createInterface } from 'node:readline'
import type { Json } from './mcp-server.ts'

export const countingServer = (...more: string[]): Json => ({
  command: process.execPath,
  args: [new URL(import.meta.url).pathname, ...more]
})

const related = 'io.modelcontextprotocol/related-task'

function serve(): void {
  const tasks = new Map<string, Json>()
  const send = (message: Json): void => {
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }
  const tools = ['toil', 'ask', 'die'].map((name) => ({
    name,
    inputSchema: { type: 'object' },
    ...(name !== 'die' && { execution: { taskSupport: 'required' } })
  }))
  const methods: Record<string, (params: Json, id: unknown) => Json | undefined> = {
    initialize: () => ({
      protocolVersion: '2025-11-25',
      capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
      serverInfo: { name: 'counting', version: '1' }
    }),
    'tools/list': () => ({ tools }),
    // eslint-disable-next-line typescript/no-explicit-any
    'tools/call'({ name, arguments: { who } = {} as any }) {
      if (name === 'die') process.exit(0)
      const taskId = `task-${tasks.size + 1}`
      tasks.set(taskId, {
        taskId,
        status: name === 'ask' ? 'input_required' : 'completed',
        createdAt: new Date().toISOString(),
        lastUpdatedAt: new Date().toISOString(),
        ttl: 60_000,
        pollInterval: 20,
        'x-who': `${String(who)} ${process.pid}`
      })
      return { task: tasks.get(taskId) }
    },
    'tasks/get': ({ taskId }) => tasks.get(String(taskId)),
    'tasks/cancel': ({ taskId }) => tasks.get(String(taskId)),
    'tasks/list': () => ({ tasks: [...tasks.values()] }),
    'tasks/result'({ taskId }) {
      const task = tasks.get(String(taskId))
      if (task?.['status'] === 'input_required')
        send({
          id: `ask ${String(taskId)}`,
          method: 'elicitation/create',
          params: {
            message: 'Sure?',
            requestedSchema: { type: 'object', properties: {} },
            _meta: { [related]: { taskId } }
          }
        })
      else if (task !== undefined)
        return { content: [{ type: 'text', text: task['x-who'] }], _meta: { [related]: { taskId } } }
      return undefined
    }
  }
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params = {} } = JSON.parse(line) as Json & { params?: Json }
    if (id === undefined || typeof method !== 'string') return
    const result = methods[method]?.(params, id)
    if (result !== undefined) send({ id, result })
    else if (method !== 'tasks/result')
      send({ id, error: { code: method.startsWith('tasks/') ? -32602 : -32601, message: 'none such' } })
  })
}

if (process.argv[1] === new URL(import.meta.url).pathname) serve()
