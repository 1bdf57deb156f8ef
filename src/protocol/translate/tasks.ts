// Finds and replaces task ids in messages of 2025-11-25 (basic/utilities/tasks). A message without one is returned as
// it is.

import { isObject, type JsonObject } from '../messages.ts'

export const relatedTaskKey = 'io.modelcontextprotocol/related-task'

export type TaskIdMap = (id: string) => string

/** The members of a task that the gateway uses. */
export interface TaskState {
  readonly taskId: string
  readonly status: string
  /** Milliseconds; undefined: no limit, or not given. */
  readonly ttl: number | undefined
}

const maxTaskId = 1_024

/** @returns undefined where the value is not a task */
export function readTask(value: unknown): TaskState | undefined {
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
export const isTaskOver = ({ status }: TaskState): boolean =>
  status === 'completed' || status === 'failed' || status === 'cancelled'

/** `taskId` of params, or of a task itself. */
export function withTaskId<T extends JsonObject>(value: T, map: TaskIdMap): T {
  const id = value['taskId']
  if (typeof id !== 'string') return value
  const mapped = map(id)
  return mapped === id ? value : { ...value, taskId: mapped }
}

/**
 * `_meta["io.modelcontextprotocol/related-task"].taskId` of params or of a result ("Associating Task-Related
 * Messages").
 */
export function mapRelatedTask<T extends JsonObject | undefined>(value: T, map: TaskIdMap): T {
  const meta = value?.['_meta']
  if (!isObject(meta)) return value
  const related = meta[relatedTaskKey]
  if (!isObject(related)) return value
  const mapped = withTaskId(related, map)
  return mapped === related ? value : { ...value, _meta: { ...meta, [relatedTaskKey]: mapped } }
}

/** `task.taskId` of a CreateTaskResult; any other result as it is. */
export function withCreatedTask<T extends JsonObject>(result: T, map: TaskIdMap): T {
  const task = result['task']
  if (!isObject(task)) return result
  const mapped = withTaskId(task, map)
  return mapped === task ? result : { ...result, task: mapped }
}

/** A `tasks/list` result with the visible tasks only. */
export function withTaskList<T extends JsonObject>(result: T, seen: (id: string) => boolean, map: TaskIdMap): T {
  const tasks = result['tasks']
  if (!Array.isArray(tasks)) return { ...result, tasks: [] }
  return {
    ...result,
    tasks: tasks.flatMap((task: unknown) =>
      isObject(task) && typeof task['taskId'] === 'string' && seen(task['taskId']) ? [withTaskId(task, map)] : []
    )
  }
}
