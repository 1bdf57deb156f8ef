// Translates tasks of 2025-11-25 (basic/utilities/tasks) to the tasks extension of 2026-07-28 (SEP-2663) and back. Ids
// are the relay's business.

import { type JsonObject, type RpcErrorObject, isObject, rpcCodes } from '../messages.ts'
import { relatedTaskKey } from './tasks.ts'

/** What a task ended with, as `tasks/result` of 2025-11-25 returns it: a result or a JSON-RPC error. */
export type TaskOutcome = { readonly result: JsonObject } | { readonly error: RpcErrorObject }

/** Members of a task of the extension that a task of 2025-11-25 does not have. */
const inlined: ReadonlySet<string> = new Set(['result', 'error', 'inputRequests', 'resultType', '_meta'])

/**
 * A task of 2025-11-25, as `tasks/get` returns it, for the extension: without input requests and outcome, which
 * `modernOutcome` adds.
 */
export function modernTask(task: JsonObject): JsonObject {
  const { ttl, pollInterval, _meta, ...rest } = task
  // The extension requires an integer, or null for no limit.
  return { ...rest, ttlMs: isTime(ttl) ? ttl : null, ...(isTime(pollInterval) && { pollIntervalMs: pollInterval }) }
}

/**
 * A task that is over, with its outcome: a result is `completed`, even with `isError`; a JSON-RPC error is `failed`
 * (SEP-2663 "Task Status"). A cancelled task has no outcome.
 * @param task of 2025-11-25
 */
export function modernOutcome(task: JsonObject, outcome: TaskOutcome | undefined): JsonObject {
  const shown = modernTask(task)
  if (outcome === undefined || task['status'] === 'cancelled') return shown
  return 'error' in outcome
    ? { ...shown, status: 'failed', error: outcome.error }
    : { ...shown, status: 'completed', result: withoutRelatedTask(outcome.result) }
}

/**
 * A task of the extension (`CreateTaskResult`, `tasks/get`, `notifications/tasks`) for 2025-11-25: without its outcome,
 * which `tasks/result` returns. A tool's own error is `failed` ("Task Execution Errors").
 */
export function legacyTask(task: JsonObject): JsonObject {
  const rest = Object.fromEntries(
    Object.entries(task).filter(([name]) => !inlined.has(name) && name !== 'ttlMs' && name !== 'pollIntervalMs')
  )
  const { status, result, ttlMs, pollIntervalMs } = task
  return {
    ...rest,
    status: status === 'completed' && isObject(result) && result['isError'] === true ? 'failed' : status,
    ttl: isTime(ttlMs) ? ttlMs : null,
    ...(isTime(pollIntervalMs) && { pollInterval: pollIntervalMs })
  }
}

/**
 * What `tasks/result` of 2025-11-25 returns for a task of the extension; undefined while the task runs, and for a
 * cancelled one.
 */
export function legacyOutcome(task: JsonObject): TaskOutcome | undefined {
  const { status, result, error } = task
  if (status === 'completed' && isObject(result)) {
    const { resultType: _type, ...own } = result
    return { result: own }
  }
  if (status !== 'failed') return undefined
  return { error: taskError(error) }
}

/** `error` of a failed task, repaired where its server sent something else than a JSON-RPC error. */
export function taskError(error: unknown): RpcErrorObject {
  if (!isObject(error) || typeof error['code'] !== 'number')
    return { code: rpcCodes.internalError, message: 'The task failed, and its server did not say why.' }
  return {
    ...error,
    code: error['code'],
    message: typeof error['message'] === 'string' ? error['message'] : 'The task failed.'
  }
}

/** A result or a request that names the task of 2025-11-25 that it belongs to ("Associating Task-Related Messages"). */
export function withRelatedTask<T extends JsonObject>(value: T, taskId: string): T {
  const meta = value['_meta']
  return { ...value, _meta: { ...(isObject(meta) ? meta : {}), [relatedTaskKey]: { taskId } } }
}

/** The extension carries the id outside of `_meta`. */
export function withoutRelatedTask<T extends JsonObject>(value: T): T {
  const meta = value['_meta']
  if (!isObject(meta) || !(relatedTaskKey in meta)) return value
  const { [relatedTaskKey]: _related, ...rest } = meta
  const { _meta, ...others } = value
  return (Object.keys(rest).length === 0 ? others : { ...value, _meta: rest }) as T
}

/** The id of the task that a request or a notification of 2025-11-25 belongs to. */
export function relatedTaskOf(params: JsonObject | undefined): string | undefined {
  const meta = params?.['_meta']
  const related = isObject(meta) ? meta[relatedTaskKey] : undefined
  const id = isObject(related) ? related['taskId'] : undefined
  return typeof id === 'string' ? id : undefined
}

/**
 * How long to wait before the next `tasks/get`, in milliseconds: the server's `pollInterval` or `pollIntervalMs`,
 * within bounds.
 * @param ranMs how long the task has been polled: the shortest wait grows with it, so that short tasks are noticed soon
 */
export function pollDelayMs(task: JsonObject, ranMs = 0): number {
  const said = task['pollIntervalMs'] ?? task['pollInterval']
  const shortest = Math.min(shortestPollMs.later, Math.max(shortestPollMs.first, ranMs / 8))
  return Math.min(longestPollMs, Math.max(shortest, isTime(said) ? said : defaultPollMs))
}

const shortestPollMs = { first: 20, later: 500 }
const longestPollMs = 10_000
const defaultPollMs = 1_000

/** `statusMessage` of a task, shortened. */
export function statusMessageOf({ statusMessage }: JsonObject): string | undefined {
  return typeof statusMessage === 'string' ? statusMessage.slice(0, longestStatus) : undefined
}

const longestStatus = 1_000

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0
