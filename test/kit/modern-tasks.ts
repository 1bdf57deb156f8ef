// The tasks extension (io.modelcontextprotocol/tasks, SEP-2663) for the scripted modern server: tasks in memory,
// finished on demand.

import { randomUUID } from 'node:crypto'
import type { Json } from './mcp-server.ts'

export const tasksExtension = 'io.modelcontextprotocol/tasks'

export interface ModernTask {
  readonly taskId: string
  readonly createdAt: string
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  lastUpdatedAt: string
  inputRequests?: Json
  result?: Json
  error?: Json
}

export interface ModernTasks {
  readonly all: Map<string, ModernTask>
  /** @returns what `tools/call` is answered with; with `inputRequests` the task asks at once */
  create(inputRequests?: Json): Json
  /** Completes all that work. */
  finish(result: Json): void
  /** @returns the result of a `tasks/*` method; undefined for an unknown task */
  handle(method: string, params: Json): Json | undefined
}

const lifetimeMs = 60_000
const pollMs = 20

/** @param changed told of each task that is another than before, as `notifications/tasks` shows it */
export function createModernTasks(changed: (task: Json) => void): ModernTasks {
  const all = new Map<string, ModernTask>()
  const shown = (task: ModernTask): Json => ({ ...task, ttlMs: lifetimeMs, pollIntervalMs: pollMs })

  function become(task: ModernTask, status: ModernTask['status'], members: Partial<ModernTask> = {}): void {
    delete task.inputRequests
    Object.assign(task, members, { status, lastUpdatedAt: new Date().toISOString() })
    changed(shown(task))
  }

  return {
    all,
    create(inputRequests) {
      const now = new Date().toISOString()
      const task: ModernTask = {
        taskId: randomUUID(),
        status: inputRequests === undefined ? 'working' : 'input_required',
        createdAt: now,
        lastUpdatedAt: now
      }
      if (inputRequests !== undefined) task.inputRequests = inputRequests
      all.set(task.taskId, task)
      const { inputRequests: _asked, ...created } = shown(task)
      return { resultType: 'task', ...created }
    },
    finish(result) {
      for (const task of all.values()) if (task.status === 'working') become(task, 'completed', { result })
    },
    handle(method, params) {
      const task = all.get(String(params['taskId']))
      if (task === undefined) return undefined
      if (method === 'tasks/get') return { resultType: 'complete', ...shown(task) }
      if (method === 'tasks/cancel' && (task.status === 'working' || task.status === 'input_required'))
        become(task, 'cancelled')
      if (method === 'tasks/update' && task.status === 'input_required') {
        become(task, 'completed', {
          result: { content: [{ type: 'text', text: JSON.stringify(params['inputResponses']) }], isError: false }
        })
      }
      return { resultType: 'complete' }
    }
  }
}
