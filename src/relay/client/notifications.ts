// Notifications of an upstream as a client gets them: only those that it wants, with ids that it knows and the name of
// the upstream.

import type { Endpoint } from '../../config/snapshot.ts'
import { atLeast, type Notification, type UpstreamName } from '../../protocol/messages.ts'
import { passesLogLevel } from '../../protocol/seams.ts'
import { hasCapability } from '../../protocol/translate/merge.ts'
import { withoutRelatedTask } from '../../protocol/translate/task-translate.ts'
import { mapRelatedTask, type TaskIdMap, withTaskId } from '../../protocol/translate/tasks.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { EndpointContext, ModernCall } from '../call/call.ts'
import { isAggregated } from './declared-capabilities.ts'
import { withUpstreamName } from './server-request.ts'

/**
 * @param taskId from the upstream's task ids to those that the client knows
 * @returns undefined for a log message below the session's level, and for tasks and elicitations by URL that the client
 * does not know
 */
export function notificationForSession(
  notification: Notification,
  upstream: UpstreamName,
  { endpoint }: EndpointContext,
  { session: { record } }: LiveSession,
  taskId: TaskIdMap
): Notification | undefined {
  const { method, params: given = {} } = notification
  const knowsTasks = atLeast(record.revision, '2025-11-25')
  if (method === 'notifications/tasks/status' && !knowsTasks) return undefined
  if (method === 'notifications/message' && !passesLogLevel(given['level'], record.logLevel)) return undefined
  // Nobody else was sent to a page that could be complete.
  if (
    method === 'notifications/elicitation/complete' &&
    !(knowsTasks && hasCapability(record.capabilities, ['elicitation', 'url']))
  )
    return undefined
  const own = method === 'notifications/tasks/status' ? withTaskId(given, taskId) : given
  const params = knowsTasks ? mapRelatedTask(own, taskId) : withoutRelatedTask(own)
  if (method === 'notifications/elicitation/complete')
    return { method, params: withUpstreamName(params, upstream, endpoint) }
  const shaped = params === given ? notification : { method, params }
  return method === 'notifications/message' ? withLogger(shaped, upstream, endpoint) : shaped
}

/**
 * 2026-07-28 server/utilities/logging: log messages only where the request asked for them. Nothing but them and
 * progress may come with
 * the response of a request.
 */
export function notificationForModern(
  notification: Notification,
  upstream: UpstreamName,
  { client: { logLevel }, endpoint }: Pick<ModernCall, 'client' | 'endpoint'>
): Notification | undefined {
  const { method, params } = notification
  if (method === 'notifications/progress') return notification
  if (method !== 'notifications/message' || logLevel === undefined || !passesLogLevel(params?.['level'], logLevel))
    return undefined
  return withLogger(notification, upstream, endpoint)
}

/** A log message that says which of several upstreams wrote it. */
function withLogger(notification: Notification, upstream: UpstreamName, endpoint: Endpoint): Notification {
  if (!isAggregated(endpoint)) return notification
  const { method, params } = notification
  const logger = typeof params?.['logger'] === 'string' ? `${upstream}/${params['logger']}` : upstream
  return { method, params: { ...params, logger } }
}
