// Tasks of 2025-11-25 (basic/utilities/tasks): where ids stand in messages, and their translation to the tasks
// extension of 2026-07-28 (SEP-2663) and back. A message without a task is returned as it is.

import { isObject, metaOf, rpcCodes, type JsonObject, type RpcErrorObject } from '../messages.ts'
import { firstOf } from '../own-text.ts'

export const relatedTaskKey = 'io.modelcontextprotocol/related-task'

export type TaskIdMap = (id: string) => string

const maxTaskId = 1_024

/**
 * The members of a task that the gateway uses; undefined where the value is not a task.
 * @returns `ttl`: milliseconds; undefined: no limit, or not given
 */
export function readTask(value: unknown) {
  // Ids are stored, sealed and sent, so their length is limited.
  if (!isObject(value) || typeof value['taskId'] !== 'string' || value['taskId'].length > maxTaskId) return undefined
  const { taskId, status, ttl } = value
  return {
    taskId,
    status: typeof status === 'string' ? status : 'working',
    ttl: typeof ttl === 'number' ? ttl : undefined
  }
}

/**
 * A tool of an upstream without tasks. Alone its `execution.taskSupport` means nothing ("Tool-Level Negotiation"), but
 * on an endpoint whose other upstreams have tasks it would be a false promise.
 */
export function withoutTaskSupport(tool: JsonObject): JsonObject {
  const { execution } = tool
  if (!isObject(execution) || (execution['taskSupport'] !== 'optional' && execution['taskSupport'] !== 'required'))
    return tool
  const { taskSupport: _left, ...rest } = execution
  return { ...tool, execution: rest }
}

/** A task in one of these states does not change any more ("Task Status Lifecycle"). */
export const isTaskOver = ({ status }: { readonly status: string }): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled'

/** `taskId` of params, or of a task itself. */
export function withTaskId<T extends JsonObject>(value: T, map: TaskIdMap): T {
  const id = value['taskId']
  if (typeof id !== 'string') return value
  const mapped = map(id)
  return mapped === id ? value : { ...value, taskId: mapped }
}

/** Replaces the task id in `_meta` of params or of a result ("Associating Task-Related Messages"). */
export function mapRelatedTask<T extends JsonObject | undefined>(value: T, map: TaskIdMap): T {
  const related = metaOf(value)[relatedTaskKey]
  if (!isObject(related)) return value
  const mapped = withTaskId(related, map)
  return mapped === related ? value : { ...value, _meta: { ...metaOf(value), [relatedTaskKey]: mapped } }
}

/** `task.taskId` of a CreateTaskResult. */
export function withCreatedTask<T extends JsonObject>(result: T, map: TaskIdMap): T {
  const { task } = result
  if (!isObject(task)) return result
  const mapped = withTaskId(task, map)
  return mapped === task ? result : { ...result, task: mapped }
}

/** A `tasks/list` result with the visible tasks only. */
export function withTaskList<T extends JsonObject>(result: T, seen: (id: string) => boolean, map: TaskIdMap): T {
  const { tasks } = result
  if (!Array.isArray(tasks)) return { ...result, tasks: [] }
  return {
    ...result,
    tasks: tasks.flatMap((task: unknown) =>
      isObject(task) && typeof task['taskId'] === 'string' && seen(task['taskId']) ? [withTaskId(task, map)] : []
    )
  }
}

/** A result or a request that names the task of 2025-11-25 that it belongs to. */
export const withRelatedTask = <T extends JsonObject>(value: T, taskId: string): T => ({
  ...value,
  _meta: { ...metaOf(value), [relatedTaskKey]: { taskId } }
})

/** The extension carries the id outside of `_meta`. */
export function withoutRelatedTask<T extends JsonObject>(value: T): T {
  const { _meta, ...others } = value
  if (!isObject(_meta) || !(relatedTaskKey in _meta)) return value
  const { [relatedTaskKey]: _related, ...rest } = _meta
  return (Object.keys(rest).length === 0 ? others : { ...value, _meta: rest }) as T
}

/** The id of the task that a request or a notification of 2025-11-25 belongs to. */
export function relatedTaskOf(params: JsonObject | undefined): string | undefined {
  const related = metaOf(params)[relatedTaskKey]
  const id = isObject(related) ? related['taskId'] : undefined
  return typeof id === 'string' ? id : undefined
}

/** The outcome of a task, as `tasks/result` of 2025-11-25 returns it. */
export type TaskOutcome = { readonly result: JsonObject } | { readonly error: RpcErrorObject }

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
 * A task of 2025-11-25 that is over, with its outcome: a result is `completed`, even with `isError`; a JSON-RPC error
 * is `failed` (SEP-2663 "Task Status"). A cancelled task has no outcome.
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
  const { result, error: _error, inputRequests: _asked, resultType: _type, _meta, ...known } = task
  const { status, ttlMs, pollIntervalMs, ...rest } = known
  return {
    ...rest,
    status: status === 'completed' && isObject(result) && result['isError'] === true ? 'failed' : status,
    ttl: isTime(ttlMs) ? ttlMs : null,
    ...(isTime(pollIntervalMs) && { pollInterval: pollIntervalMs })
  }
}

/**
 * Returns the answer of `tasks/result` of 2025-11-25 for a task of the extension; undefined while it runs, and if
 * cancelled.
 */
export function legacyOutcome({ status, result, error }: JsonObject): TaskOutcome | undefined {
  if (status === 'completed' && isObject(result)) {
    const { resultType: _type, ...own } = result
    return { result: own }
  }
  return status === 'failed' ? { error: taskError(error) } : undefined
}

/** `error` of a failed task, repaired where its server sent something else than a JSON-RPC error. */
export function taskError(error: unknown): RpcErrorObject {
  if (!isObject(error) || typeof error['code'] !== 'number')
    return { code: rpcCodes.internalError, message: 'The task failed, and its server did not say why.' }
  const { code, message } = error
  return { ...error, code, message: typeof message === 'string' ? message : 'The task failed.' }
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
export const statusMessageOf = ({ statusMessage }: JsonObject): string | undefined =>
  typeof statusMessage === 'string' ? firstOf(statusMessage, longestStatus) : undefined

const longestStatus = 1_000

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0
