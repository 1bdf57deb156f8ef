// The client of a session as an upstream sees it: during a call, and outside of calls over the session's own stream.
// What an upstream says or asks is put into the shape that the client's revision knows.

import { GatewayError, type Notification, type ServerRequest } from '../../protocol/messages.ts'
import type { Client, ServerRequestOptions } from '../../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { EndpointContext, LegacyCall } from '../call/call.ts'
import { declaredForSession } from '../client/declared-capabilities.ts'
import { notificationForSession, shapeServerRequest } from '../client/server-messages.ts'
import type { SessionConnection } from '../connections/session-connections.ts'
import type { UpstreamScope } from '../tasks/session-task-ids.ts'
import type { SessionTasks } from '../tasks/session-tasks.ts'

export interface SessionClients {
  /** During a call. After `endCall`, what its tasks still report goes to the session's own stream. */
  forCall(call: LegacyCall, connection: SessionConnection): Client & { endCall(): void }
  /** To the session's own stream. */
  notify(session: LiveSession, source: UpstreamScope, notification: Notification): void
  /** Over the session's own stream. @throws GatewayError session_unknown, RpcError */
  ask(
    session: LiveSession,
    source: UpstreamScope,
    request: ServerRequest,
    options: ServerRequestOptions | undefined
  ): Promise<unknown>
}

export interface SessionClientsOptions {
  readonly live: LiveSessions
  readonly tasks: SessionTasks
  /** The endpoint of a session in the configuration of now; undefined where it is gone. */
  readonly contextOf: (session: LiveSession) => EndpointContext | undefined
}

export function createSessionClients({ live, tasks, contextOf }: SessionClientsOptions): SessionClients {
  const shaped = (
    session: LiveSession,
    context: EndpointContext,
    source: UpstreamScope,
    notification: Notification
  ): Notification | undefined =>
    notificationForSession(notification, source.definition.name, context, session, tasks.toClient(session, source))

  const shapedRequest = (
    session: LiveSession,
    { endpoint }: EndpointContext,
    { definition }: UpstreamScope,
    request: ServerRequest
  ): ServerRequest => shapeServerRequest(request, definition.name, endpoint, session.session.record)

  return {
    forCall(call, connection) {
      const { session, client } = call
      const { era, capabilities } = connection.upstream
      let ended = false
      return {
        // A modern server is shown a client of its own era, and asks by input requests (bridge/input-loop).
        era,
        capabilities: era === 'modern' ? declaredForSession(call, capabilities) : client.capabilities,
        logLevel: session.session.record.logLevel,
        notify(notification) {
          const message = shaped(session, call, connection, notification)
          if (message === undefined) return
          if (ended) live.get(session.key)?.send(message)
          else client.notify(message)
        },
        ask: async (request, options) =>
          await tasks.serverRequest(
            session,
            connection,
            shapedRequest(session, call, connection, request),
            async (known) => await client.ask(known, options)
          ),
        endCall() {
          ended = true
        }
      }
    },
    notify(session, source, notification) {
      const context = contextOf(session)
      const message = context === undefined ? undefined : shaped(session, context, source, notification)
      if (message !== undefined) session.send(message)
    },
    async ask(session, source, request, options) {
      const context = contextOf(session)
      if (context === undefined) throw new GatewayError('session_unknown', 'The session of the client ended.')
      return await tasks.serverRequest(
        session,
        source,
        shapedRequest(session, context, source, request),
        async (known) => await session.ask(known, options)
      )
    }
  }
}
