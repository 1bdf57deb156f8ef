// Notifications of a server: they go to the client of a call while the call or its task runs, to the owner of the
// connection, or to the log. Their rate is limited.

import { createTokenBucket, jsonSizeOf } from '../../limits/limits.ts'
import { isObject, type Notification, type Result } from '../../protocol/messages.ts'
import { changedLists, otherLegacyNotifications } from '../../protocol/methods.ts'
import type { Client } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'
import type { LinkContext } from './transport.ts'
import type { Log } from '../../observe/log.ts'

// For each call: more than a person could follow, and fewer than would fill a client's queue.
const callLimit = { perSecond: 200, burst: 2_000 }
// For each connection: a server may change all its subscribed resources at once (the burst).
const connectionLimit = { perSecond: 100, burst: 1_000 }
const warningLimit = { perSecond: 20, burst: 50 }
/** The longest progress that is held back for the end of a call, in bytes as `jsonSizeOf` counts them. */
const maxHeldBytes = 4_096
const maxTasks = 256
/** How long a task's progress token stays valid if the server gives the task no time to live, in milliseconds. */
const defaultTtlMs = 3_600_000

export type CallNotifications = ReturnType<typeof createCallNotifications>

export function createCallNotifications(client: Client, clock: Clock, warnings: LimitedWarnings) {
  const bucket = createTokenBucket(clock, callLimit.perSecond, callLimit.burst)
  let flooded = false
  /** The newest progress above the rate limit: it replaces earlier ones. */
  let held: Notification | undefined

  return {
    notify(notification: Notification): void {
      if (bucket.take()) {
        held = undefined
        return client.notify(notification)
      }
      if (!flooded) warnings.warn({}, 'the upstream floods a call with notifications; only some are passed on')
      flooded = true
      if (notification.method !== 'notifications/progress') return
      // Nobody counts its memory.
      held = jsonSizeOf(notification.params, maxHeldBytes) <= maxHeldBytes ? notification : undefined
    },
    /** Ends the call: the latest progress is sent if it was held back. */
    end(): void {
      const last = held
      held = undefined
      if (last !== undefined) client.notify(last)
    }
  }
}

/** The receiver of progress of one request. */
export interface ProgressListener {
  /** The client's own progress token. */
  readonly token: unknown
  /** Creates the notifications of the call when the first one comes: most calls have none. */
  notifications(): CallNotifications
}

export type TaskListeners = ReturnType<typeof createTaskListeners>

/**
 * The token of a request that made a task stays valid after its answer, until the task ends (2025-11-25
 * basic/utilities/tasks "Task Progress Notifications").
 */
export function createTaskListeners(clock: Clock) {
  const tasks = new Map<number, ProgressListener & { readonly until: number }>()

  return {
    /** @param id the progress token at the server */
    keep(call: ProgressListener & { readonly id: number }, { task }: Result): void {
      if (!isObject(task)) return
      const notifications = call.notifications()
      const { ttl } = task
      const ttlMs = typeof ttl === 'number' && ttl > 0 ? ttl : defaultTtlMs
      tasks.set(call.id, { token: call.token, notifications: () => notifications, until: clock.now() + ttlMs })
      const [oldest] = tasks.keys()
      if (tasks.size > maxTasks && oldest !== undefined) tasks.delete(oldest)
    },
    get(id: number): ProgressListener | undefined {
      const task = tasks.get(id)
      if (task === undefined || clock.now() < task.until) return task
      tasks.delete(id)
      return undefined
    },
    end: () => tasks.clear()
  }
}

/** @returns a function that handles a notification which belongs to no call */
export function createConnectionNotifications({
  events,
  clock,
  log,
  warnings
}: Pick<LinkContext, 'events' | 'clock' | 'log' | 'warnings'>): (notification: Notification) => void {
  const bucket = createTokenBucket(clock, connectionLimit.perSecond, connectionLimit.burst)

  return (notification) => {
    // No rate limit: the owner of the connection coalesces list changes.
    const list = changedLists.get(notification.method)
    if (list !== undefined) return events.listChanged(list, 'server')
    if (!otherLegacyNotifications.has(notification.method))
      return log.debug('dropped a notification of the upstream whose method is not known')
    if (bucket.take()) return events.notification(notification)
    warnings.warn({}, 'the upstream floods its connection with notifications; some are left out')
  }
}

export type LimitedWarnings = ReturnType<typeof createLimitedWarnings>

/** Warnings about one connection, limited so that a server cannot fill the log. */
export function createLimitedWarnings(upstream: string, clock: Clock, log: Log) {
  const bucket = createTokenBucket(clock, warningLimit.perSecond, warningLimit.burst)
  let omitted = 0

  function end(): void {
    if (omitted > 0) log.warn({ upstream, warnings: omitted }, 'left out warnings about the upstream: too many at once')
    omitted = 0
  }

  return {
    /** @param fields a function where making them takes time: it is called only for what is logged */
    warn(fields: object | (() => object), text: string): void {
      if (!bucket.take()) {
        omitted++
        return
      }
      end()
      log.warn({ upstream, ...(typeof fields === 'function' ? (fields as () => object)() : fields) }, text)
    },
    end
  }
}
