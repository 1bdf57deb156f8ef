// Progress of tasks: the token of the request that made a task stays valid after its answer, until the task ends
// (2025-11-25 basic/utilities/tasks "Task Progress Notifications").

import { isObject, type Result } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import type { CallNotifications } from './notifications.ts'

interface TaskListener {
  /** The client's own progress token. */
  readonly token: unknown
  readonly notifications: CallNotifications
}

export interface TaskListeners {
  /** Remembers who listens under the progress token `id`, if the result of its request is a task. */
  keep(id: number, listener: TaskListener, result: Result): void
  listener(id: number): TaskListener | undefined
  end(): void
}

const maxTasks = 256
/** Where the server does not say how long it keeps the task. */
const defaultTtlMs = 3_600_000

export function createTaskListeners(clock: Clock): TaskListeners {
  const tasks = new Map<number, { readonly listener: TaskListener; readonly until: number }>()

  return {
    keep(id, listener, { task }) {
      if (!isObject(task)) return
      const { ttl } = task
      tasks.set(id, { listener, until: clock.now() + (typeof ttl === 'number' && ttl > 0 ? ttl : defaultTtlMs) })
      const [oldest] = tasks.keys()
      // Progress of the oldest is dropped from now on.
      if (tasks.size > maxTasks && oldest !== undefined) tasks.delete(oldest)
    },
    listener(id) {
      const task = tasks.get(id)
      if (task === undefined || clock.now() < task.until) return task?.listener
      tasks.delete(id)
      return undefined
    },
    end: () => tasks.clear()
  }
}
