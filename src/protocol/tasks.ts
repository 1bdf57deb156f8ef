// Where task ids stand in messages of 2025-11-25 (basic/utilities/tasks), and how they are replaced. A message without one comes back as
// the very same object.

import { isObject } from './messages.ts'
import type { JsonObject } from './messages.ts'

export const relatedTask = 'io.modelcontextprotocol/related-task'

export type TaskIdMap = (id: string) => string

/** The members of a task that we look at. */
export interface TaskState {
  readonly taskId: string
  readonly status: string
  /** Milliseconds; undefined: kept for good, or not said. */
  readonly ttl: number | undefined
}

const maxTaskId = 1_024

/** @returns undefined for what is no task */
export function readTask (value: unknown): TaskState | undefined {
  // It is kept, sealed and sent around: a longer one is no id.
  if (!isObject(value) || typeof value['taskId'] !== 'string' || value['taskId'].length > maxTaskId) return undefined
  const { taskId, status, ttl } = value
  return { taskId, status: typeof status === 'string' ? status : 'working', ttl: typeof ttl === 'number' ? ttl : undefined }
}

/**
 * A tool of an upstream that has no tasks, on an endpoint where others have: by itself its `execution.taskSupport` meant nothing
 * ("Tool-Level Negotiation"), beside the capability of the others it would be a promise.
 */
export function withoutTaskSupport (tool: JsonObject): JsonObject {
  const { execution } = tool
  if (!isObject(execution) || (execution['taskSupport'] !== 'optional' && execution['taskSupport'] !== 'required')) return tool
  const { taskSupport: _left, ...rest } = execution
  return { ...tool, execution: rest }
}

/** Nothing changes in a task after these ("Task Status Lifecycle"). */
export const ended = ({ status }: TaskState): boolean => status === 'completed' || status === 'failed' || status === 'cancelled'

/** `taskId` of params, or of a task itself. */
export function withTaskId<T extends JsonObject> (value: T, map: TaskIdMap): T {
  const id = value['taskId']
  if (typeof id !== 'string') return value
  const mapped = map(id)
  return mapped === id ? value : { ...value, taskId: mapped }
}

/** `_meta["io.modelcontextprotocol/related-task"].taskId` of params or of a result ("Associating Task-Related Messages"). */
export function withRelatedTask<T extends JsonObject | undefined> (value: T, map: TaskIdMap): T {
  const meta = value?.['_meta']
  if (!isObject(meta)) return value
  const related = meta[relatedTask]
  if (!isObject(related)) return value
  const mapped = withTaskId(related, map)
  return mapped === related ? value : { ...value, _meta: { ...meta, [relatedTask]: mapped } }
}

/** `task.taskId` of a CreateTaskResult; any other result as it is. */
export function withCreatedTask<T extends JsonObject> (result: T, map: TaskIdMap): T {
  const task = result['task']
  if (!isObject(task)) return result
  const mapped = withTaskId(task, map)
  return mapped === task ? result : { ...result, task: mapped }
}

/** The tasks of a `tasks/list` result that are to be seen. */
export function withTaskList<T extends JsonObject> (result: T, seen: (id: string) => boolean, map: TaskIdMap): T {
  const tasks = result['tasks']
  if (!Array.isArray(tasks)) return { ...result, tasks: [] }
  return { ...result, tasks: tasks.flatMap((task: unknown) => isObject(task) && typeof task['taskId'] === 'string' && seen(task['taskId']) ? [withTaskId(task, map)] : []) }
}
