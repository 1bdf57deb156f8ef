// Tasks of 2025-11-25 (basic/utilities/tasks) and of the extension of 2026-07-28 (SEP-2663) in each other's words. Ids, and who asks
// whom, are the relay's business. Pure.

import { isObject } from './messages.ts'
import type { JsonObject, RpcErrorObject } from './messages.ts'
import { relatedTask } from './tasks.ts'

/** What a task ended with, as `tasks/result` of 2025-11-25 answers: a result, whatever it says, or a JSON-RPC error. */
export type TaskOutcome = { readonly result: JsonObject } | { readonly error: RpcErrorObject }

/** Said by a task of the extension, and known to no other kind. */
const inlined: ReadonlySet<string> = new Set(['result', 'error', 'inputRequests', 'resultType', '_meta'])

/**
 * A task of 2025-11-25, as `tasks/get` answers with it, as the extension has it: without what it asks or ended with.
 * `failed` becomes `completed` by its outcome, if at all; see `modernOutcome`.
 */
export function modernTask (task: JsonObject): JsonObject {
  const { ttl, pollInterval, _meta, ...rest } = task
  // Required, and an integer or null; whoever does not say keeps it as long as it likes.
  return { ...rest, ttlMs: isTime(ttl) ? ttl : null, ...isTime(pollInterval) && { pollIntervalMs: pollInterval } }
}

/**
 * A task that has ended, with what it ended with: a result is `completed`, its `isError` too; a JSON-RPC error is `failed` (SEP-2663
 * "Task Status"). A cancelled one says nothing more.
 * @param task of 2025-11-25
 */
export function modernOutcome (task: JsonObject, outcome: TaskOutcome | undefined): JsonObject {
  const shown = modernTask(task)
  if (outcome === undefined || task['status'] === 'cancelled') return shown
  return 'error' in outcome ? { ...shown, status: 'failed', error: outcome.error } : { ...shown, status: 'completed', result: withoutRelatedTask(outcome.result) }
}

/**
 * A task of the extension (`CreateTaskResult`, `tasks/get`, `notifications/tasks`) as 2025-11-25 has it: what it ended with is asked for by
 * `tasks/result`, and a tool's own error is `failed` ("Task Execution Errors").
 */
export function legacyTask (task: JsonObject): JsonObject {
  const rest = Object.fromEntries(Object.entries(task).filter(([name]) => !inlined.has(name) && name !== 'ttlMs' && name !== 'pollIntervalMs'))
  const { status, result, ttlMs, pollIntervalMs } = task
  return {
    ...rest,
    status: status === 'completed' && isObject(result) && result['isError'] === true ? 'failed' : status,
    ttl: isTime(ttlMs) ? ttlMs : null,
    ...isTime(pollIntervalMs) && { pollInterval: pollIntervalMs }
  }
}

/**
 * What `tasks/result` of 2025-11-25 answers for a task of the extension; undefined as long as it runs, and for one that was cancelled,
 * which ended with nothing.
 */
export function legacyOutcome (task: JsonObject): TaskOutcome | undefined {
  const { status, result, error } = task
  if (status === 'completed' && isObject(result)) {
    const { resultType: _type, ...own } = result
    return { result: own }
  }
  if (status !== 'failed') return undefined
  return { error: taskError(error) }
}

/** `error` of a task that failed, whatever its server put there. */
export function taskError (error: unknown): RpcErrorObject {
  if (!isObject(error) || typeof error['code'] !== 'number') return { code: -32603, message: 'The task failed, and its server does not say how.' }
  return { ...error, code: error['code'], message: typeof error['message'] === 'string' ? error['message'] : 'The task failed.' }
}

/** A result or a request that belongs to a task of 2025-11-25 says so ("Associating Task-Related Messages"). */
export function withRelated<T extends JsonObject> (value: T, taskId: string): T {
  const meta = value['_meta']
  return { ...value, _meta: { ...isObject(meta) ? meta : {}, [relatedTask]: { taskId } } }
}

/** For the extension, where the id stands beside it. */
export function withoutRelatedTask<T extends JsonObject> (value: T): T {
  const meta = value['_meta']
  if (!isObject(meta) || !(relatedTask in meta)) return value
  const { [relatedTask]: _told, ...rest } = meta
  const { _meta, ...others } = value
  return (Object.keys(rest).length === 0 ? others : { ...value, _meta: rest }) as T
}

/** The id of the task that a request or a notification of 2025-11-25 belongs to. */
export function relatedTaskOf (params: JsonObject | undefined): string | undefined {
  const meta = params?.['_meta']
  const related = isObject(meta) ? meta[relatedTask] : undefined
  const id = isObject(related) ? related['taskId'] : undefined
  return typeof id === 'string' ? id : undefined
}

/**
 * How long to wait before asking again: what the server suggests, within reason. Either spelling; milliseconds.
 * @param ranMs since when it is asked: of a task that takes seconds, an eighth of that is no loss
 */
export function pollAfter (task: JsonObject, ranMs = 0): number {
  const said = task['pollIntervalMs'] ?? task['pollInterval']
  const shortest = Math.min(shortestPollMs.later, Math.max(shortestPollMs.first, ranMs / 8))
  return Math.min(longestPollMs, Math.max(shortest, isTime(said) ? said : defaultPollMs))
}

const shortestPollMs = { first: 20, later: 500 }
const longestPollMs = 10_000
const defaultPollMs = 1_000

/** `statusMessage` as it is told while the task runs: a sentence, however much its server wrote. */
export function statusOf ({ statusMessage }: JsonObject): string | undefined {
  return typeof statusMessage === 'string' ? statusMessage.slice(0, longestStatus) : undefined
}

const longestStatus = 1_000

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0
