// The tasks extension (io.modelcontextprotocol/tasks, SEP-2663), which the SDK has no server for: put in front of it,
// it takes what is about tasks and leaves the rest. Tools, names and behaviour are those that the scenarios tasks-*
// describe.

import { randomUUID } from 'node:crypto'

export const tasksExtension = 'io.modelcontextprotocol/tasks'

type Json = Record<string, unknown>

export interface RpcRequest {
  readonly id?: string | number
  readonly method: string
  readonly params?: Json | undefined
}

/** The member of a response that is not its id. */
export type Outcome =
  | { readonly result: Json }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: Json } }

interface Task {
  readonly taskId: string
  readonly createdAt: string
  lastUpdatedAt: string
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  inputRequests?: Json
  result?: Json
  error?: Json
  timer?: NodeJS.Timeout
}

const lifetimeMs = 300_000
const pollMs = 100
const invalidParams = -32602
const missingCapability = -32021

const text = (value: string): Json => ({ content: [{ type: 'text', text: value }] })
const form = (message: string): Json => ({
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message,
    requestedSchema: { type: 'object', properties: { name: { type: 'string' }, confirm: { type: 'boolean' } } }
  }
})

/** @returns a handler that answers undefined to what is not about tasks */
export function createTasks(): (request: RpcRequest) => Outcome | undefined {
  const tasks = new Map<string, Task>()

  function create(begin: (task: Task) => void): Outcome {
    const now = new Date().toISOString()
    const task: Task = { taskId: randomUUID(), createdAt: now, lastUpdatedAt: now, status: 'working' }
    tasks.set(task.taskId, task)
    begin(task)
    const { inputRequests: _requests, result: _result, error: _error, ...created } = shown(task)
    return { result: { ...created, resultType: 'task' } }
  }

  /** The named tool as a task; undefined for one that never is. */
  function start(
    name: unknown,
    { arguments: args, inputResponses }: { arguments?: Json; inputResponses?: Record<string, { content?: Json }> }
  ): Outcome | undefined {
    switch (name) {
      case 'slow_compute':
        return create((task) => {
          task.timer = setTimeout(
            () => become(task, 'completed', { result: text(`${String(args?.['label'])} is computed.`) }),
            Number(args?.['seconds'] ?? 0) * 1_000
          )
          task.timer.unref()
        })
      case 'failing_job':
        return create((task) =>
          become(task, 'completed', { result: { ...text('The job failed, as it always does.'), isError: true } })
        )
      case 'protocol_error_job':
        return create((task) => become(task, 'failed', { error: { code: -32603, message: 'The job broke.' } }))
      case 'confirm_delete':
        return create((task) =>
          become(task, 'input_required', {
            inputRequests: { [randomUUID()]: form(`Delete ${String(args?.['filename'])}?`) }
          })
        )
      case 'multi_input':
        return create((task) =>
          become(task, 'input_required', {
            inputRequests: { [randomUUID()]: form('First?'), [randomUUID()]: form('Second?') }
          })
        )
      case 'test_tool_with_task': {
        const told = inputResponses?.['user_name']?.content
        return told === undefined
          ? undefined
          : create((task) => become(task, 'completed', { result: text(`Hello, ${String(told['name'])}!`) }))
      }
      default:
        return undefined
    }
  }

  function answer(task: Task, responses: Json): void {
    const rest = Object.fromEntries(Object.entries(task.inputRequests ?? {}).filter(([key]) => !(key in responses)))
    if (Object.keys(rest).length > 0) task.inputRequests = rest
    else become(task, 'completed', { result: text(JSON.stringify(responses)) })
  }

  return ({ method, params = {} }) => {
    const capabilities = ((params['_meta'] as Json | undefined)?.['io.modelcontextprotocol/clientCapabilities'] ??
      {}) as { extensions?: Json }
    const knowsTasks = capabilities.extensions?.[tasksExtension] !== undefined
    if (method === 'tools/call') {
      if (knowsTasks) return start(params['name'], params)
      return taskOnly.has(params['name']) ? undeclared : undefined
    }
    if (method !== 'tasks/get' && method !== 'tasks/update' && method !== 'tasks/cancel') return undefined
    if (!knowsTasks) return undeclared
    const task = tasks.get(String(params['taskId']))
    if (task === undefined) return { error: { code: invalidParams, message: 'There is no such task.' } }
    if (method === 'tasks/get') return { result: { resultType: 'complete', ...shown(task) } }
    if (method === 'tasks/cancel' && !ended.has(task.status)) become(task, 'cancelled')
    if (method === 'tasks/update' && task.status === 'input_required') answer(task, params['inputResponses'] as Json)
    return { result: { resultType: 'complete' } }
  }
}

const taskOnly: ReadonlySet<unknown> = new Set(['failing_job', 'protocol_error_job', 'confirm_delete', 'multi_input'])
const ended: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled'])

const undeclared: Outcome = {
  error: {
    code: missingCapability,
    message: 'The client did not declare tasks.',
    data: { requiredCapabilities: { extensions: { [tasksExtension]: {} } } }
  }
}

const shown = ({ timer: _timer, ...task }: Task): Json => ({ ...task, ttlMs: lifetimeMs, pollIntervalMs: pollMs })

function become(task: Task, status: Task['status'], members: Partial<Task> = {}): void {
  clearTimeout(task.timer)
  delete task.inputRequests
  Object.assign(task, members, { status, lastUpdatedAt: new Date().toISOString() })
}
