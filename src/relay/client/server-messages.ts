// Requests and notifications of an upstream as a client gets them: only those that it declared or wants, in the form of
// its revision, with ids and URIs that it knows and the name of the upstream.

import type { Endpoint } from '../../config/snapshot.ts'
import {
  atLeast,
  isObject,
  type JsonObject,
  type Notification,
  rpcCodes,
  RpcError,
  type ServerRequest,
  type UpstreamName
} from '../../protocol/messages.ts'
import { wrapUri } from '../../protocol/naming.ts'
import { shapeRequestedSchema, shapeSamplingMessages } from '../../protocol/translate/revision-shape.ts'
import { rewriteMessages } from '../../protocol/translate/rewrite.ts'
import { mapRelatedTask, type TaskIdMap, withoutRelatedTask, withTaskId } from '../../protocol/translate/tasks.ts'
import { type AskedClient, isAggregated } from './declared-capabilities.ts'
import { passesLogLevel } from '../../protocol/seams.ts'
import { hasCapability } from '../../protocol/methods.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { ModernCall } from '../call/call.ts'

/** @throws RpcError -32602 where the client did not declare what is asked for, or its revision has no form for it */
export function shapeServerRequest(
  { method, params: given }: ServerRequest,
  upstream: UpstreamName,
  endpoint: Endpoint,
  client: AskedClient
): ServerRequest {
  if (given === undefined) return { method }
  // Before 2025-11-25 a client knows no tasks: the gateway follows the one that this request is about.
  const params = atLeast(client.revision, '2025-11-25') ? given : withoutRelatedTask(given)
  const shape =
    method === 'elicitation/create' ? shapeElicitation : method === 'sampling/createMessage' ? shapeSampling : undefined
  return { method, params: shape?.(params, upstream, endpoint, client) ?? params }
}

type ShapeParams = (params: JsonObject, upstream: UpstreamName, endpoint: Endpoint, client: AskedClient) => JsonObject

const shapeElicitation: ShapeParams = (params, upstream, endpoint, { revision, capabilities }) => {
  const { mode = 'form' } = params
  if (mode !== 'form' && mode !== 'url') throw refusal('"mode" of an elicitation must be "form" or "url".')
  const hasModes = atLeast(revision, '2025-11-25')
  const declared = isObject(capabilities['elicitation']) ? capabilities['elicitation'] : {}
  const byUrl = isObject(declared['url'])
  // 2025-11-25 client/elicitation: an empty object means form mode only; -32602 is what a client would answer.
  if (mode === 'url' ? !(byUrl && hasModes) : byUrl && !isObject(declared['form'])) {
    const inMode = mode === 'url' ? 'URL' : 'form'
    throw refusal(
      `This client did not declare, in revision ${revision}, "elicitation.${mode}", ` +
        `so it cannot be asked in ${inMode} mode.`
    )
  }
  // Clients open what they are sent: javascript: and file: must not reach them.
  if (mode === 'url' && !isWebUrl(params['url']))
    throw refusal('"url" of an elicitation must be an https:// or http:// URL.')
  const { url: _url, ...form } = params
  const { mode: _mode, ...withoutMode } = form
  const shaped = withUpstreamName(mode === 'url' ? params : hasModes ? form : withoutMode, upstream, endpoint)
  if (!isObject(shaped['requestedSchema'])) return shaped
  const requestedSchema = shapeRequestedSchema(shaped['requestedSchema'], revision)
  if (requestedSchema === undefined)
    throw refusal(`The client speaks revision ${revision}, which has no form for a choice of several values.`)
  return { ...shaped, requestedSchema }
}

const shapeSampling: ShapeParams = (params, upstream, endpoint, { revision, capabilities }) => {
  const declared = isObject(capabilities['sampling']) ? capabilities['sampling'] : {}
  // 2025-11-25 client/sampling: a client that has not declared sampling.tools must be sent none.
  const takesTools = isObject(declared['tools']) && atLeast(revision, '2025-11-25')
  if (!takesTools && (params['tools'] !== undefined || params['toolChoice'] !== undefined)) {
    throw refusal(
      `This client did not declare, in revision ${revision}, "sampling.tools", ` +
        `so it cannot be asked for sampling with tools.`
    )
  }
  const messages = Array.isArray(params['messages'])
    ? shapeSamplingMessages(params['messages'], revision)
    : params['messages']
  if (messages === undefined && params['messages'] !== undefined) {
    throw refusal(`The client speaks revision ${revision}, which has no form for some of the content of the messages.`)
  }
  const shaped = messages === params['messages'] ? params : { ...params, messages }
  if (!isAggregated(endpoint)) return shaped
  const rewritten = rewriteMessages(shaped, (uri) => wrapUri(upstream, uri))
  return rewritten['includeContext'] === undefined ? rewritten : { ...rewritten, includeContext: 'none' }
}

/** Is it the URL of a web page? Nothing else may be opened. */
export const isWebUrl = (url: unknown): boolean =>
  typeof url === 'string' && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

const refusal = (message: string): RpcError => new RpcError({ code: rpcCodes.invalidParams, message })

/** Adds the name of the upstream that asks (2025-11-25 client/elicitation), and an id unique at the endpoint. */
export function withUpstreamName(elicitation: JsonObject, upstream: UpstreamName, endpoint: Endpoint): JsonObject {
  if (!isAggregated(endpoint)) return elicitation
  const { message, elicitationId } = elicitation
  return {
    ...elicitation,
    ...(typeof message === 'string' && { message: `[${upstream}] ${message}` }),
    // Names of upstreams differ, so no id of one can look like that of another.
    ...(typeof elicitationId === 'string' && { elicitationId: `${upstream}:${elicitationId}` })
  }
}

/**
 * @param taskId from the upstream's task ids to those that the client knows
 * @returns undefined for a log message below the session's level, and for tasks and elicitations by URL that the client
 * does not know
 */
export function notificationForSession(
  notification: Notification,
  upstream: UpstreamName,
  endpoint: Endpoint,
  { session: { record } }: LiveSession,
  taskId: TaskIdMap
): Notification | undefined {
  const { method, params: given = {} } = notification
  const isLog = method === 'notifications/message'
  const isStatus = method === 'notifications/tasks/status'
  const isComplete = method === 'notifications/elicitation/complete'
  const knowsTasks = atLeast(record.revision, '2025-11-25')
  if (isStatus && !knowsTasks) return undefined
  if (isLog && !passesLogLevel(given['level'], record.logLevel)) return undefined
  // Nobody else was sent to a page that could be complete.
  if (isComplete && !(knowsTasks && hasCapability(record.capabilities, ['elicitation', 'url']))) return undefined
  const own = isStatus ? withTaskId(given, taskId) : given
  const params = knowsTasks ? mapRelatedTask(own, taskId) : withoutRelatedTask(own)
  if (isComplete) return { method, params: withUpstreamName(params, upstream, endpoint) }
  const shaped = params === given ? notification : { method, params }
  return isLog ? withLogger(shaped, upstream, endpoint) : shaped
}

/**
 * 2026-07-28 server/utilities/logging: log messages only where the request asked for them. Nothing but them and
 * progress may come with the response of a request.
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

/** Says which of several upstreams wrote it. */
function withLogger(notification: Notification, upstream: UpstreamName, endpoint: Endpoint): Notification {
  if (!isAggregated(endpoint)) return notification
  const { method, params } = notification
  const logger = typeof params?.['logger'] === 'string' ? `${upstream}/${params['logger']}` : upstream
  return { method, params: { ...params, logger } }
}
