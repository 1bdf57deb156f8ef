// The tools that are tasks (2025-11-25 basic/utilities/tasks), under the names of the scenarios tasks-* of 2026-07-28.

import { setTimeout as pause } from 'node:timers/promises'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import {
  ElicitResultSchema,
  ErrorCode,
  McpError,
  type CallToolRequest,
  type CallToolResult,
  type CreateTaskResult,
  type ServerNotification,
  type ServerRequest,
  type Tool
} from '@modelcontextprotocol/sdk/types.js'
import { nothing } from './schemas.ts'

interface Job {
  readonly description: string
  readonly inputSchema: Tool['inputSchema']
  /** @throws what ends the task without a result */
  work(args: Record<string, unknown>, ask: (message: string) => Promise<string>): Promise<CallToolResult>
}

const answer = (value: string): CallToolResult => ({ content: [{ type: 'text', text: value }] })

const jobs: Readonly<Record<string, Job>> = {
  slow_compute: {
    description: 'Takes its time',
    inputSchema: { type: 'object', properties: { seconds: { type: 'number' }, label: { type: 'string' } } },
    async work({ seconds, label }) {
      await pause(Number(seconds ?? 0) * 1_000, undefined, { ref: false })
      return answer(`${String(label)} is computed.`)
    }
  },
  failing_job: {
    description: 'Fails, always',
    inputSchema: nothing,
    work: async () => ({ ...answer('The job failed, as it always does.'), isError: true })
  },
  protocol_error_job: {
    description: 'Breaks, always',
    inputSchema: nothing,
    work: () => Promise.reject(new Error('The job broke.'))
  },
  confirm_delete: {
    description: 'Asks before it deletes nothing',
    inputSchema: { type: 'object', properties: { filename: { type: 'string' } } },
    work: async ({ filename }, ask) => answer(await ask(`Delete ${String(filename)}?`))
  },
  multi_input: {
    description: 'Asks two things at once',
    inputSchema: nothing,
    work: async (_args, ask) => answer((await Promise.all([ask('First?'), ask('Second?')])).join(' '))
  },
  test_tool_with_task: {
    description: 'Asks for a name as a task',
    inputSchema: nothing,
    work: async (_args, ask) => answer(`Hello, ${await ask('What is your name?')}!`)
  }
}

const lifetimeMs = 300_000
const pollMs = 100

export const jobTools = Object.entries(jobs).map(([name, { description, inputSchema }]) => ({
  name,
  description,
  inputSchema,
  execution: { taskSupport: 'required' as const }
}))

/** @returns undefined where the tool is none of these @throws McpError -32601 where it was not called as a task */
export async function startJob(
  server: Server,
  { name, arguments: args, task }: CallToolRequest['params'],
  { taskStore: store }: RequestHandlerExtra<ServerRequest, ServerNotification>
): Promise<CreateTaskResult | undefined> {
  const job = jobs[name]
  if (job === undefined) return undefined
  if (task === undefined || store === undefined)
    throw new McpError(ErrorCode.MethodNotFound, `${name} works as a task only`)
  const made = await store.createTask({ ttl: task.ttl ?? lifetimeMs, pollInterval: pollMs })
  const { taskId } = made
  let open = 0
  async function ask(message: string): Promise<string> {
    if (open++ === 0) await store?.updateTaskStatus(taskId, 'input_required')
    const properties = { name: { type: 'string' as const }, confirm: { type: 'boolean' as const } }
    const answered = await server.request(
      { method: 'elicitation/create', params: { message, requestedSchema: { type: 'object', properties } } },
      ElicitResultSchema,
      { relatedTask: { taskId } }
    )
    if (--open === 0) await store?.updateTaskStatus(taskId, 'working')
    return JSON.stringify(answered)
  }
  job
    .work(args ?? {}, ask)
    .then(
      async (result) => await store.storeTaskResult(taskId, result.isError === true ? 'failed' : 'completed', result),
      async (error: unknown) => await store.updateTaskStatus(taskId, 'failed', String(error))
    )
    .catch(() => {}) // It was cancelled and takes no other end, or its session is gone: nobody waits for it any more.
  return { task: made }
}
