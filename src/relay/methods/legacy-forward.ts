// The way of a request of a session to its upstream, and of the answer back.

import { GatewayError, type Request, type Result, RpcError } from '../../protocol/messages.ts'
import type { CallLimits } from '../../policy/call-limits.ts'
import { mapRelatedTask } from '../../protocol/translate/tasks.ts'
import type { Sessions } from '../../session/sessions.ts'
import { abortable, type Clock } from '../../time/clock.ts'
import { ConnectRequiredError } from '../../upstream/rpc/credential.ts'
import type { InputLoop } from '../bridge/input-loop.ts'
import type { SessionClients } from '../bridge/session-clients.ts'
import { redactError, type LegacyCall } from '../call/call.ts'
import type { ClientCatalogs, SessionViewer } from '../catalog/client-catalogs.ts'
import { urlElicitationForSession } from '../client/client-errors.ts'
import type { PagesAsked } from '../client/pages-asked.ts'
import type { SessionConnection, SessionConnections } from '../connections/session-connections.ts'
import type { ResourceSubscriptions } from '../subscriptions/resource-subscriptions.ts'
import type { SessionSubscribers } from '../subscriptions/session-subscribers.ts'
import type { SessionTasks } from '../tasks/session-tasks.ts'
import type { ListPages } from './list-pages.ts'
import type { Target } from './shared.ts'

/** The services of the methods of a session. */
export interface LegacyServices {
  readonly catalogs: ClientCatalogs<SessionViewer>
  readonly connections: SessionConnections
  readonly clients: SessionClients
  readonly inputLoop: InputLoop
  readonly tasks: SessionTasks
  readonly subscriptions: ResourceSubscriptions
  readonly subscribers: SessionSubscribers
  readonly sessions: Sessions
  readonly pages: ListPages
  readonly callLimits: CallLimits
  readonly pagesAsked: PagesAsked
  readonly wall: Pick<Clock, 'now'>
}

/**
 * The connection that serves the session at the target's upstream.
 * @throws GatewayError upstream_unavailable, too_many, cancelled
 */
export function connect(
  call: LegacyCall,
  { definition }: Target,
  { connections }: LegacyServices
): SessionConnection | Promise<SessionConnection> {
  const { borrowed } = call
  if (borrowed?.definition.hash === definition.hash) return borrowed
  // Any other connection would be taken from the process that has the session.
  if (borrowed !== undefined) throw listsChanged()
  return (
    connections.ready(definition, call.session) ??
    abortable(connections.lease(definition, call, call.session), call.signal).catch((error: unknown) => {
      throw redactError(error, definition)
    })
  )
}

/**
 * Sends the request once. A modern server that answers with input requests is sent it again, with the responses;
 * nothing else is repeated.
 * @throws RpcError, GatewayError: none that only 2026-07-28 knows
 */
export async function send(
  call: LegacyCall,
  connection: SessionConnection,
  request: Request,
  { connections, clients, inputLoop, tasks, pagesAsked }: LegacyServices,
  wrapsResult = false
): Promise<Result> {
  const { definition } = connection
  const outgoing = tasks.outgoing(call.session, connection, request)
  const client = clients.forCall(call, connection)
  try {
    const reconnect = (): Promise<SessionConnection> => connections.lease(definition, call, call.session)
    const result = await inputLoop.request(call, connection, outgoing, client, wrapsResult, reconnect)
    return mapRelatedTask(result, tasks.toClient(call.session, connection))
  } catch (error) {
    try {
      return urlElicitationForSession(error, call, outgoing, definition.name)
    } catch (refused) {
      const isSent = error instanceof ConnectRequiredError && refused instanceof RpcError
      throw redactError(isSent ? pagesAsked.noted(call, definition.name, error) : refused, definition)
    }
  } finally {
    client.endCall()
  }
}

/** `connect` and `send`, for requests that need nothing of the connection. */
export async function forwardLegacy(
  call: LegacyCall,
  target: Target,
  request: Request,
  services: LegacyServices
): Promise<Result> {
  return await send(call, await connect(call, target, services), request, services)
}

const listsChanged = (): GatewayError =>
  new GatewayError('unavailable', 'The lists of this endpoint have just changed. The request was not sent: retry.', {
    headers: { 'Retry-After': '1' }
  })
