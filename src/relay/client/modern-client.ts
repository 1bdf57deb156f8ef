// The sender of a request of 2026-07-28 as one upstream sees it: which capabilities it has, and which notifications it
// gets.

import type { UpstreamName } from '../../protocol/messages.ts'
import { type Client, noClient } from '../../protocol/seams.ts'
import type { ModernCall } from '../call/call.ts'
import { declaredForCaller } from './declared-capabilities.ts'
import { notificationForModern } from './notifications.ts'
import { conversationKey, conversationOf } from './request-meta.ts'

/** What a listen stream keeps of its call: of the body only the conversation. @throws GatewayError invalid_params */
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
    notify(notification) {
      const shaped = isOver() ? undefined : notificationForModern(notification, upstream, call)
      if (shaped !== undefined) call.client.notify(shaped)
    },
    // 2026-07-28 has no server requests; legacy connections that could send some were told of no capabilities.
    ask: noClient.ask
  }
}
