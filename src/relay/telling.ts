// What a server tells a client outside of results, made fit for that client: which messages it wants, who says them, and ids that it knows.

import type { UpstreamName } from '../protocol/ids.ts'
import { reaches } from '../protocol/levels.ts'
import { isObject } from '../protocol/messages.ts'
import type { Notification } from '../protocol/messages.ts'
import { atLeast } from '../protocol/revisions.ts'
import { withoutRelatedTask } from '../protocol/task-bridge.ts'
import { withRelatedTask, withTaskId } from '../protocol/tasks.ts'
import type { LiveSession } from '../session/live.ts'
import { namedCompletion } from './asking.ts'
import type { Place } from './call.ts'

/**
 * A notification of an upstream as the client gets it.
 * @param taskId from the upstream's task ids to those that the client knows
 * @returns undefined for what the client did not ask for or cannot know: a log message below its level, the end of an elicitation by URL, tasks
 */
export function shapeNews (notification: Notification, upstream: UpstreamName, { endpoint }: Place, { session }: LiveSession, taskId: (id: string) => string): Notification | undefined {
  const { method } = notification
  const { revision, capabilities } = session.record
  const knowsTasks = atLeast(revision, '2025-11-25')
  if (method === 'notifications/tasks/status' && !knowsTasks) return undefined
  if (method === 'notifications/message' && !reaches(notification.params?.['level'], session.record.logLevel)) return undefined
  const own = method === 'notifications/tasks/status' && notification.params !== undefined ? withTaskId(notification.params, taskId) : notification.params
  const params = knowsTasks ? withRelatedTask(own, taskId) : own && withoutRelatedTask(own)
  const known = params === notification.params || params === undefined ? notification : { method, params }
  if (method === 'notifications/elicitation/complete') {
    // Nobody else was sent to a page that could be complete.
    const waits = knowsTasks && isObject(capabilities['elicitation']) && isObject(capabilities['elicitation']['url'])
    return waits ? namedCompletion(known, upstream, endpoint) : undefined
  }
  if (method !== 'notifications/message' || endpoint.members.length === 1) return known
  const logger = typeof params?.['logger'] === 'string' ? `${upstream}/${params['logger']}` : upstream
  return { method, params: { ...params, logger } }
}
