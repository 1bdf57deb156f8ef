// Progress of tasks: the token of the request that made a task stays good until the task ends, which is after the request has been
// answered (2025-11-25 basic/utilities/tasks "Task Progress Notifications").

import { isObject } from '../protocol/messages.ts'
import type { Result } from '../protocol/messages.ts'
import type { Clock } from './clock.ts'
import type { Hearing } from './hearing.ts'

/** Whoever made the request, and the token that it gave. */
export interface Listener {
  readonly token: unknown
  readonly hearing: Hearing
}

export interface TaskProgress {
  /** Remembers who made this request for a task, if it asked for progress, and a task was made. */
  keep (id: number, listener: Listener, result: Result): void
  /** Who is to hear of progress under this token of ours. */
  listener (id: number): Listener | undefined
  end (): void
}

const maxTasks = 256
/** Where the server does not say how long it keeps the task. */
const defaultTtlMs = 3_600_000

export function createTaskProgress (clock: Clock): TaskProgress {
  const kept = new Map<number, { readonly listener: Listener, readonly until: number }>()

  return {
    keep (id, listener, result) {
      const { task } = result
      if (listener.token === undefined || !isObject(task)) return
      const ttl = task['ttl']
      kept.set(id, { listener, until: clock.now() + (typeof ttl === 'number' && ttl > 0 ? ttl : defaultTtlMs) })
      const [oldest] = kept.keys()
      // A task more than anybody follows: the oldest goes on in silence.
      if (kept.size > maxTasks && oldest !== undefined) kept.delete(oldest)
    },
    listener (id) {
      const found = kept.get(id)
      if (found === undefined || clock.now() < found.until) return found?.listener
      kept.delete(id)
      return undefined
    },
    end: () => kept.clear()
  }
}
