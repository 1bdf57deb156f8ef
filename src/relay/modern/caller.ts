// The caller of a modern request as one upstream sees it: what it may know of its capabilities, and what of its words get through.

import type { Endpoint } from '../../config/snapshot.ts'
import { reaches } from '../../protocol/levels.ts'
import { tasksExtension, uiExtension } from '../../protocol/merge.ts'
import { isObject } from '../../protocol/messages.ts'
import type { ClientCapabilities, JsonObject, Notification, Request } from '../../protocol/messages.ts'
import type { Client } from '../../protocol/seams.ts'
import { relatedTask } from '../../protocol/tasks.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import { nobody } from '../../upstream/exchange.ts'
import { aggregated } from '../asking.ts'
import type { ModernCall } from '../call.ts'
import { conversationKey, conversationOf } from './conversations.ts'

/**
 * What the client declared, minus what does not pass from end to end: tasks of 2025-11-25, extensions that we do not know, and on endpoints
 * of several servers what would mean all of them.
 */
export function passedOn (capabilities: ClientCapabilities, endpoint: Endpoint): ClientCapabilities {
  const { tasks: _old, experimental, extensions, roots, sampling, ...passed }: JsonObject = capabilities
  if (experimental !== undefined && !aggregated(endpoint)) passed['experimental'] = experimental
  if (isObject(roots)) {
    const { listChanged: _gone, ...rest } = roots
    passed['roots'] = rest
  }
  if (isObject(sampling)) {
    const { context, ...rest } = sampling
    passed['sampling'] = context === undefined || aggregated(endpoint) ? rest : sampling
  }
  if (isObject(extensions)) {
    const known = [uiExtension, tasksExtension].filter((name) => isObject(extensions[name]))
    if (known.length > 0) passed['extensions'] = Object.fromEntries(known.map((name) => [name, extensions[name]]))
  }
  return passed
}

/** What a listen stream keeps of its request: of the body only its conversation, and what passes on of the capabilities. @throws GatewayError invalid_params */
export function bare ({ snapshot, tenant, endpoint, principal, signal, request, client: { capabilities, notify } }: ModernCall): ModernCall {
  const conversation = conversationOf({ request })
  const params = conversation === null ? {} : { params: { _meta: { [conversationKey]: conversation } } }
  return { snapshot, tenant, endpoint, principal, signal, request: { method: request.method, ...params }, client: { era: 'modern', capabilities: passedOn(capabilities, endpoint), notify, ask: nobody.ask } }
}

/** @param over the call has ended: nobody listens any more */
export function callerOf (call: ModernCall, upstream: UpstreamName, over: () => boolean): Client {
  const { client, endpoint } = call
  return {
    era: 'modern',
    capabilities: passedOn(client.capabilities, endpoint),
    logLevel: client.logLevel,
    notify (notification) {
      const news = over() ? undefined : shapeNews(notification, upstream, call)
      if (news !== undefined) client.notify(news)
    },
    // 2026-07-28 has no requests of servers; those of older ones, which were declared nothing, are refused.
    ask: nobody.ask
  }
}

/** Progress, and log messages where the request asked for them (2026-07-28 server/utilities/logging); nothing else rides the answer of a request. */
export function shapeNews (notification: Notification, upstream: UpstreamName, { client, endpoint }: ModernCall): Notification | undefined {
  const { method, params } = notification
  if (method === 'notifications/progress') return notification
  if (method !== 'notifications/message' || client.logLevel === undefined || !reaches(params?.['level'], client.logLevel)) return undefined
  if (!aggregated(endpoint)) return notification
  const logger = typeof params?.['logger'] === 'string' ? `${upstream}/${params['logger']}` : upstream
  return { method, params: { ...params, logger } }
}

// Of the trace context, baggage may carry anything to anybody (W3C Baggage, "Privacy of the baggage header").
const keptHere = new Set(['baggage', relatedTask, conversationKey])

/** The request without what is for us alone: members of `_meta` that must not cross over, and the `task` of 2025-11-25, which means nothing now. */
export function cleaned (request: Request): Request {
  const { params } = request
  if (params === undefined) return request
  const meta = params['_meta']
  const crosses = isObject(meta) && Object.keys(meta).some((key) => keptHere.has(key))
  if (!crosses && !('task' in params)) return request
  const { task: _ignored, ...rest } = params
  return { method: request.method, params: crosses ? { ...rest, _meta: Object.fromEntries(Object.entries(meta).filter(([key]) => !keptHere.has(key))) } : rest }
}
