// A server of 2026-07-28 over stdio that numbers its tasks, each process for itself:
// `node numbered-modern-tasks-server.ts`. A task of `toil` works until `finish`; both say who asked and the process.
// `die` ends the process. `confirm` asks first, and takes the answer only with a state of its own process.

import { createInterface } from 'node:readline'
import type { Json } from './mcp-server.ts'

export const numberingServer = (...more: string[]): Json => ({
  command: process.execPath,
  args: [new URL(import.meta.url).pathname, ...more]
})

const tasksKey = 'io.modelcontextprotocol/tasks'

function serve(): void {
  const tasks = new Map<string, Json>()
  const listens = new Map<unknown, unknown[]>()
  const send = (message: Json): void => {
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }
  const hints = { ttlMs: 0, cacheScope: 'private' }
  const told = (id: unknown): Json => ({ _meta: { 'io.modelcontextprotocol/subscriptionId': id } })
  // eslint-disable-next-line typescript/no-explicit-any
  const methods: Record<string, (params: any, id: unknown) => Json | undefined> = {
    'server/discover': () => ({
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: {}, extensions: { [tasksKey]: {} } },
      ...hints
    }),
    'tools/list': () => ({
      tools: ['toil', 'finish', 'die', 'confirm'].map((name) => ({ name, inputSchema: { type: 'object' } })),
      ...hints
    }),
    'tools/call'({ name, arguments: { who } = {}, requestState, inputResponses }) {
      if (name === 'die') process.exit(0)
      const content = [{ type: 'text', text: `${String(who)} ${process.pid}` }]
      if (name === 'confirm' && inputResponses !== undefined)
        return requestState === `of ${process.pid}` ? { content } : undefined
      if (name === 'confirm') {
        const params = { mode: 'form', message: 'Sure?', requestedSchema: { type: 'object', properties: {} } }
        const inputRequests = { sure: { method: 'elicitation/create', params } }
        return { resultType: 'input_required', inputRequests, requestState: `of ${process.pid}` }
      }
      if (name === 'finish') {
        for (const [taskId, task] of tasks) {
          Object.assign(task, { status: 'completed', result: { content: [{ type: 'text', text: task['x-who'] }] } })
          for (const [id, ids] of listens)
            if (ids.includes(taskId)) send({ method: 'notifications/tasks', params: { ...task, ...told(id) } })
        }
        return { resultType: 'complete', content }
      }
      const taskId = `task-${tasks.size + 1}`
      const now = new Date().toISOString()
      const task = {
        taskId,
        status: 'working',
        createdAt: now,
        lastUpdatedAt: now,
        ttlMs: 60_000,
        pollIntervalMs: 20
      }
      tasks.set(taskId, { ...task, 'x-who': content[0]?.text })
      return { resultType: 'task', ...task }
    },
    'tasks/get': ({ taskId }) => tasks.get(taskId),
    'tasks/update': ({ taskId }) => tasks.get(taskId) && { resultType: 'complete' },
    'tasks/cancel'({ taskId }) {
      const task = tasks.get(taskId)
      return task && Object.assign(task, { status: 'cancelled' }) && { resultType: 'complete' }
    },
    'subscriptions/listen'({ notifications }, id) {
      listens.set(id, notifications.taskIds ?? [])
      send({ method: 'notifications/subscriptions/acknowledged', params: { notifications, ...told(id) } })
      return undefined
    }
  }
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params = {} } = JSON.parse(line) as Json & { params?: Json }
    if (id === undefined || typeof method !== 'string') return
    const result = methods[method]?.(params, id)
    if (result !== undefined) send({ id, result: { resultType: 'complete', ...result } })
    else if (method !== 'subscriptions/listen')
      send({ id, error: { code: method.startsWith('tasks/') ? -32602 : -32601, message: 'none such' } })
  })
}

if (process.argv[1] === new URL(import.meta.url).pathname) serve()
