// The way of a session's request to the upstream that it was routed to, and of the answer back.

import type { Request, Result } from '../../protocol/messages.ts'
import { mapRelatedTask } from '../../protocol/translate/tasks.ts'
import { abortable } from '../../time/clock.ts'
import type { InputLoop } from '../bridge/input-loop.ts'
import type { SessionClients } from '../bridge/session-clients.ts'
import { type LegacyCall, redactError } from '../call/call.ts'
import type { ClientCatalogs, SessionViewer } from '../catalog/client-catalogs.ts'
import { urlElicitationForSession } from '../client/client-errors.ts'
import type { SessionConnection, SessionConnections } from '../connections/session-connections.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { ResourceSubscriptions } from '../subscriptions/resource-subscriptions.ts'
import type { SessionSubscribers } from '../subscriptions/session-subscribers.ts'
import type { SessionTasks } from '../tasks/session-tasks.ts'
import type { Target } from './shared.ts'

/** What the methods of a session work with. */
export interface LegacyServices {
  readonly catalogs: ClientCatalogs<SessionViewer>
  readonly connections: SessionConnections
  readonly clients: SessionClients
  readonly inputLoop: InputLoop
  readonly tasks: SessionTasks
  readonly subscriptions: ResourceSubscriptions
  readonly subscribers: SessionSubscribers
  readonly sessions: Sessions
}

/**
 * The connection that serves the session at the target's upstream.
 * @throws GatewayError upstream_unavailable, too_many, cancelled
 */
export async function connect(
  call: LegacyCall,
  { definition }: Pick<Target, 'definition'>,
  { connections }: LegacyServices
): Promise<SessionConnection> {
  // Policy (may this principal use this route?) and the limits of the principal and the tenant belong here, before
  // anything is opened; the principal's own credentials for the upstream belong into the scope of the connection.
  try {
    return (
      connections.ready(definition, call.session) ??
      (await abortable(connections.lease(definition, call, call.session), call.signal))
    )
  } catch (error) {
    throw redactError(error, definition)
  }
}

/**
 * Sends the request at most once, as often as a modern server asks for input, which it then is sent again with.
 * @throws RpcError, GatewayError: none that only 2026-07-28 knows
 */
export async function send(
  call: LegacyCall,
  connection: SessionConnection,
  request: Request,
  { connections, clients, inputLoop, tasks }: LegacyServices,
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
      throw redactError(refused, definition)
    }
  } finally {
    client.endCall()
  }
}

/** `connect` and `send`, for requests that need nothing of the connection. */
export async function forwardLegacy(
  call: LegacyCall,
  target: Pick<Target, 'definition'>,
  request: Request,
  services: LegacyServices
): Promise<Result> {
  return await send(call, await connect(call, target, services), request, services)
}
