// Tasks of clients of 2025-11-25 at servers of 2026-07-28, whose tasks are those of SEP-2663. There the client says
// which calls shall be tasks, here the server decides: a call that ended at once is stored as a task that has ended,
// and a task that the client did not ask for is waited for.

import { GatewayError, isObject, type JsonObject, type Request, type Result } from '../../protocol/messages.ts'
import type { Client, Upstream } from '../../protocol/seams.ts'
import { legacyTask, statusMessageOf, withRelatedTask } from '../../protocol/translate/task-translate.ts'
import { isTaskOver, readTask } from '../../protocol/translate/tasks.ts'
import type { Store } from '../../store/port.ts'
import { type Clock, timeoutSignal } from '../../time/clock.ts'
import type { ServerRequestQuotas } from '../../upstream/rpc/server-requests.ts'
import type { LegacyCall } from '../call/call.ts'
import type { MonotonicProgress } from '../call/monotonic-progress.ts'
import { cancelledTask, createModernTaskReader, taskFault, type TaskOfCall } from './await-modern-task.ts'
import { createTaskProgress, maxTaskMs, resultOfTask } from './await-task.ts'
import { createResultStore, maxStoredBytes } from './result-store.ts'

export interface ModernTasksOptions {
  readonly clock: Clock
  readonly store: Store
  readonly askRooms: Pick<ServerRequestQuotas, 'open'>
  readonly mint: () => string
  readonly taskId: (call: LegacyCall, upstream: Upstream, id: string) => string
}

export interface ModernTasks {
  /** `CreateTaskResult` of a call that became a task. @param wrapped whether its result will be wrapped */
  created(upstream: Upstream, task: Result, wrapped: boolean): Result
  /** The same for a call that is over. @param wanted `task` of the request */
  ended(call: LegacyCall, upstream: Upstream, result: Result, wanted: unknown): Promise<Result>
  /**
   * Waits for a task that the client does not know; cancels it where the wait fails.
   * @returns the result of the call
   */
  finished(call: LegacyCall, upstream: Upstream, task: Result, progress: MonotonicProgress): Promise<Result>
  /**
   * `tasks/get`, `tasks/result` and `tasks/cancel`, with an id that `created` or `ended` gave.
   * @param shape the result of a tool for the client
   */
  handle(
    call: LegacyCall,
    upstream: Upstream,
    request: Request,
    client: Client,
    shape: (result: Result, wrapped: boolean) => Result
  ): Promise<Result>
}

const maxResultTtlMs = 10 * 60_000
const cancelMs = 5_000

/** Whose id it is: the gateway's own, the upstream's, or the upstream's with a result that has to be wrapped. */
type Mark = 'own' | 'as' | 'wrap'
const marked = (mark: Mark, id: string): string => `${mark}.${id}`

export function createModernTasks({ clock, store, askRooms, mint, taskId }: ModernTasksOptions): ModernTasks {
  const stored = createResultStore(store, mint)
  const reader = createModernTaskReader({ clock, askRooms, mint })

  async function cancel(of: TaskOfCall, shownId: string): Promise<Result> {
    const { call, upstream, id, client } = of
    const task = await reader.read(of)
    const state = readTask(task)
    if (state === undefined || isTaskOver(state)) throw taskOver()
    await upstream.request({ method: 'tasks/cancel', params: { taskId: id } }, client, call.signal)
    // There it is a wish; here it is done when it is answered, and stays so ("Task Cancellation" of both).
    const lastUpdatedAt = new Date(clock.now()).toISOString()
    const cancelled = { ...legacyTask(task), taskId: shownId, status: 'cancelled', lastUpdatedAt }
    const { ttlMs } = task
    const keptMs = Math.min(maxTaskMs, typeof ttlMs === 'number' ? Math.max(1, ttlMs) : maxTaskMs)
    await stored.mark(call, upstream, taskId(call, upstream, shownId), inBrief(cancelled), keptMs)
    return cancelled
  }

  return {
    created: (upstream, task, wrapped) => {
      const state = readTask(task)
      if (state === undefined) throw taskFault(upstream, 'made a task without an id')
      return { task: { ...legacyTask(task), taskId: marked(wrapped ? 'wrap' : 'as', state.taskId) } }
    },

    async ended(call, upstream, result, wanted) {
      const wantedMs = isObject(wanted) && typeof wanted['ttl'] === 'number' ? wanted['ttl'] : 0
      const ttl = Math.min(wantedMs > 0 ? wantedMs : maxResultTtlMs, maxResultTtlMs)
      const now = new Date(clock.now()).toISOString()
      const status = result['isError'] === true ? 'failed' : 'completed'
      const taskOf = (id: string): JsonObject => ({ taskId: id, status, createdAt: now, lastUpdatedAt: now, ttl })
      const made = await stored.add(call, upstream, taskOf, result, ttl).catch((error: unknown) => {
        // The error of the store would invite to try again, and the tool would run twice.
        throw new GatewayError(
          'internal',
          `Upstream ${upstream.name} has answered, but the gateway could not keep the answer as a task.`,
          { cause: error, data: { outcome: 'unknown', upstream: upstream.name } }
        )
      })
      if (made !== undefined) return { task: made.task }
      const what =
        `has done its work, but its answer is longer than ${maxStoredBytes / 1024 / 1024} MiB, the most that is kept ` +
        'as a task. Call it without "task" to have such answers'
      throw taskFault(upstream, what, { outcome: 'unknown' })
    },

    async finished(call, upstream, task, progress) {
      const state = readTask(task)
      if (state === undefined) throw taskFault(upstream, 'made a task without an id')
      const { client } = progress
      const id = state.taskId
      const tell = createTaskProgress(progress)
      const outcome = await reader
        .outcome({ call, upstream, id, client }, { known: task, tell })
        .catch((error: unknown) => {
          const request = { method: 'tasks/cancel', params: { taskId: id } }
          // Where that fails, the server works on for nobody until the task's time is over.
          upstream.request(request, { ...client, notify() {} }, timeoutSignal(cancelMs)).catch(() => {})
          throw error
        })
      return resultOfTask(outcome)
    },

    async handle(call, upstream, { method, params }, client, shape) {
      const shownId = String(params?.['taskId'])
      const [, mark, id] = /^(own|as|wrap)\.(.*)$/s.exec(shownId) ?? []
      const clientId = taskId(call, upstream, shownId)
      const known = await stored.find(call, upstream, mark === 'own' ? shownId : clientId)
      if (id === undefined || (mark === 'own' && known === undefined))
        throw new GatewayError('invalid_params', 'Unknown task: its time is over, or newer ones have taken its place.')
      const of = { call, upstream, id, client }
      switch (method) {
        case 'tasks/get':
          return known?.task ?? { ...legacyTask(await reader.read(of)), taskId: shownId }
        case 'tasks/cancel':
          if (known !== undefined) throw taskOver()
          return await cancel(of, shownId)
        case 'tasks/result': {
          if (known === undefined) {
            const result = resultOfTask(await reader.outcome(of, { shown: clientId }))
            return withRelatedTask(shape(result, mark === 'wrap'), shownId)
          }
          const { result } = known
          return withRelatedTask(resultOfTask(result === undefined ? { error: cancelledTask } : { result }), shownId)
        }
        default:
          throw new GatewayError('method_not_found', `Method not found: ${method}`)
      }
    }
  }
}

/** What is kept of a cancelled task: what 2025-11-25 says of it, in reasonable length. */
function inBrief(task: JsonObject): JsonObject {
  const { taskId, status, createdAt, lastUpdatedAt, ttl, pollInterval } = task
  const statusMessage = statusMessageOf(task)
  return {
    taskId,
    status,
    ...(statusMessage !== undefined && { statusMessage }),
    createdAt: String(createdAt).slice(0, 64),
    lastUpdatedAt,
    ttl,
    ...(pollInterval !== undefined && { pollInterval })
  }
}

const taskOver = (): GatewayError =>
  new GatewayError('invalid_params', 'The task has ended: it cannot be cancelled any more.')
