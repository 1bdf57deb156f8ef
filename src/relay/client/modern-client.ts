// A request of 2026-07-28 and its sender as one upstream sees them: without what is for the gateway alone, and with the
// notifications that the client wants.

import { noteAgain } from '../../observe/call-notes.ts'
import {
  type ClientCapabilities,
  GatewayError,
  isObject,
  metaOf,
  type Request,
  type UpstreamName
} from '../../protocol/messages.ts'
import { type Client, noClient } from '../../protocol/seams.ts'
import { callerScopeOf, quotaKeyOf, type ModernCall, type ModernViewer } from '../call/call.ts'
import { declaredForCaller } from './declared-capabilities.ts'
import { notificationForModern } from './server-messages.ts'
import { withoutParam } from '../../protocol/translate/rewrite.ts'
import { relatedTaskKey } from '../../protocol/translate/tasks.ts'

/**
 * Returns the part of a call that a listen stream keeps: of the body only the conversation.
 * @throws GatewayError invalid_params
 */
export function listenCallOf({
  snapshot,
  tenant,
  endpoint,
  principal,
  signal,
  request,
  client
}: ModernCall): ModernCall {
  const conversation = conversationOf({ request })
  const params = conversation === null ? {} : { params: { _meta: { [conversationKey]: conversation } } }
  const capabilities = declaredForCaller({ client, endpoint }, 'modern')
  return {
    snapshot,
    tenant,
    endpoint,
    principal,
    signal,
    request: { method: request.method, ...params },
    client: { era: 'modern', capabilities, notify: client.notify, ask: noClient.ask }
  }
}

/** @param isOver once the call has ended, nobody reads its notifications */
export function modernClientOf(call: ModernCall, upstream: UpstreamName, isOver: () => boolean): Client {
  return {
    era: 'modern',
    capabilities: declaredForCaller(call, 'modern'),
    logLevel: call.client.logLevel,
    quotaKey: quotaKeyOf(call.principal),
    again: (why) => noteAgain(call.record, why),
    notify(notification) {
      const shaped = isOver() ? undefined : notificationForModern(notification, upstream, call)
      if (shaped !== undefined) call.client.notify(shaped)
    },
    // 2026-07-28 has no server requests; legacy connections that could send some were told of no capabilities.
    ask: noClient.ask
  }
}

/**
 * The member of `_meta` with the handle of a conversation, by which a client of 2026-07-28 keeps apart what legacy
 * servers remember of it.
 */
export const conversationKey = 'io.gatehouse/conversation'

/** @returns null where the client names none; @throws GatewayError invalid_params */
export function conversationOf({ request }: Pick<ModernCall, 'request'>): string | null {
  const name = metaOf(request.params)[conversationKey]
  if (name === undefined) return null
  if (!isConversation(name)) {
    throw new GatewayError(
      'invalid_params',
      `"_meta.${conversationKey}" must be a string of 1 to 128 printable ASCII characters.`
    )
  }
  return name
}

/**
 * A conversation of a caller: the connections that serve it at a server, one after the other.
 * @param declared to a server that is told at the handshake; default: whatever its client declares
 * @throws GatewayError invalid_params
 */
export const conversationScopeOf = (call: Required<ModernViewer>, declared: ClientCapabilities = {}): string =>
  callerScopeOf(call, conversationOf(call), ...(Object.keys(declared).length === 0 ? [] : [declared]))

/** Has the request a name of a conversation that none can have? */
export const isOfNoConversation = ({ request }: Pick<ModernCall, 'request'>): boolean => {
  const name = metaOf(request.params)[conversationKey]
  return name !== undefined && !isConversation(name)
}

const isConversation = (name: unknown): name is string => typeof name === 'string' && /^[\x20-\x7e]{1,128}$/.test(name)

// Of the trace context, baggage may carry anything to anybody (W3C Baggage, "Privacy of the baggage header").
const privateKeys: ReadonlySet<string> = new Set(['baggage', relatedTaskKey, conversationKey])

/**
 * Returns the request without private members of `_meta`, and without `task` of 2025-11-25, which means nothing now.
 */
export function forwardableRequest(request: Request): Request {
  const { params } = request
  if (params === undefined) return request
  const meta = params['_meta']
  const isPrivate = isObject(meta) && Object.keys(meta).some((key) => privateKeys.has(key))
  if (!isPrivate && !('task' in params)) return request
  const { task: _task, ...rest } = params
  if (!isPrivate) return { method: request.method, params: rest }
  const _meta = Object.fromEntries(Object.entries(meta).filter(([key]) => !privateKeys.has(key)))
  return { method: request.method, params: { ...rest, _meta } }
}

/** Returns the request for legacy servers, which have no `inputResponses` and no `requestState`. */
export const withoutInputResponses = (request: Request): Request =>
  withoutParam(withoutParam(request, 'inputResponses'), 'requestState')
