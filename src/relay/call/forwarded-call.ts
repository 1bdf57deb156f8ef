// A call of 2026-07-28 on its way to the process that holds what it is about: a parked call, a task on a connection of
// that process, or the child process that asked for input.

import type { Principal } from '../../auth/principal.ts'
import {
  type ClientCapabilities,
  type EndpointName,
  GatewayError,
  type Notification,
  type Request,
  type Result,
  type TenantId,
  type UpstreamName
} from '../../protocol/messages.ts'
import type { LogLevel } from '../../protocol/seams.ts'
import type { Bus } from '../../session/bus/bus.ts'
import { lossError } from '../../session/parked-calls.ts'
import { type ContextOf, type ModernCall, quotaKeyOf } from './call.ts'

/** A call as one process sends it to another. */
interface Forwarded {
  readonly tenant: TenantId
  readonly endpoint: EndpointName
  readonly upstream: UpstreamName
  readonly principal: Pick<Principal, 'kind' | 'issuer' | 'subject' | 'clientId'>
  readonly request: Request
  readonly capabilities: ClientCapabilities
  readonly logLevel?: LogLevel | undefined
  readonly outgoing?: Request | undefined
}

/**
 * Has another process answer the call.
 * @param node the process that holds what the call is about
 * @param outgoing the request as its upstream is to get it, where the other process has nothing to add
 * @throws GatewayError invalid_state where it is gone; whatever that process answers
 */
export async function forwardToNode(
  bus: Pick<Bus, 'request'>,
  call: ModernCall,
  upstream: UpstreamName,
  node: string,
  outgoing?: Request
): Promise<Result> {
  const { tenant, endpoint, request, client, signal } = call
  const { kind, issuer, subject, clientId } = call.principal
  const { capabilities, logLevel } = client
  const principal = { kind, issuer, subject, clientId }
  const forwarded: Forwarded = {
    tenant: tenant.id,
    endpoint: endpoint.name,
    upstream,
    principal,
    request,
    capabilities,
    logLevel,
    outgoing
  }
  const caller = quotaKeyOf(call.principal)
  const answer = await bus.request(node, 'modern', { tenant: tenant.id, caller }, forwarded, {
    notify: (notification) => client.notify(notification as Notification),
    signal
  })
  return answer as Result
}

/**
 * The call that another process forwarded. That it did proves nothing of who asks: the sealed state or task id in the
 * request has to.
 * @throws GatewayError invalid_state where the endpoint is gone
 */
export async function forwardedCallOf(
  message: unknown,
  { notify, signal }: { readonly notify: (notification: Notification) => void; readonly signal: AbortSignal },
  contextOf: ContextOf
): Promise<{ readonly call: ModernCall; readonly upstream: UpstreamName; readonly outgoing: Request | undefined }> {
  const { tenant, endpoint, upstream, principal, request, capabilities, logLevel, outgoing } = message as Forwarded
  const context = await contextOf.load(tenant, endpoint, principal)
  if (context === undefined) throw lossError('replaced')
  const call: ModernCall = {
    ...context,
    request,
    principal: { ...principal, tenant, scopes: new Set(), groups: [], roles: [], expiresAt: undefined },
    client: {
      era: 'modern',
      capabilities,
      logLevel,
      notify,
      ask: () => Promise.reject(new GatewayError('method_not_found', 'The client takes no requests.'))
    },
    signal
  }
  return { call, upstream, outgoing }
}
