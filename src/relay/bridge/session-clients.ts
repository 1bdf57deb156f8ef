// The client of a session as an upstream sees it: during a call, and outside of calls over the session's own stream.
// What an upstream says or asks is put into the shape that the client's revision knows.

import { GatewayError, type Notification, type ServerRequest } from '../../protocol/messages.ts'
import type { Client, ServerRequestOptions } from '../../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import { scopeOf, type EndpointContext, type LegacyCall } from '../call/call.ts'
import { declaredForSession } from '../client/declared-capabilities.ts'
import { notificationForSession, shapeServerRequest } from '../client/server-messages.ts'
import type { SessionConnection, SessionConnectionEvents } from '../connections/session-connections.ts'
import type { UpstreamScope } from '../tasks/session-task-ids.ts'
import type { SessionTasks } from '../tasks/session-tasks.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { SessionLists } from '../catalog/session-lists.ts'
import type { ClientCatalogs, SessionViewer } from '../catalog/client-catalogs.ts'
import type { SharedConnectionEvents } from '../catalog/listings.ts'
import type { ResourceSubscriptions } from '../subscriptions/resource-subscriptions.ts'

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

export interface SessionEventsOptions {
  readonly tasks: SessionTasks
  readonly subscriptions: ResourceSubscriptions
  readonly clients: SessionClients
}

/** Of connections that several sessions use: a shared upstream's own, and those of one principal. */
export function createSharedEvents({ tasks, subscriptions, clients }: SessionEventsOptions): SharedConnectionEvents {
  return {
    sharedNotification(definition, scope, notification) {
      subscriptions.notification(definition, scope, notification)
      if (notification.method !== 'notifications/tasks/status') return
      // Sessions that were told of the task hear of it. Anything else, a log message above all, names nobody whom it is
      // for.
      const source = { definition, scope }
      const id = notification.params?.['taskId']
      for (const session of typeof id === 'string' ? tasks.sessionsOf(source, id) : []) {
        tasks.noted(session, source, notification.params)
        clients.notify(session, source, notification)
      }
    },
    lost: subscriptions.lost
  }
}

export function createSessionEvents(
  { tasks, subscriptions, clients }: SessionEventsOptions,
  shared: SharedConnectionEvents,
  sessionLists: Pick<SessionLists, 'changed'>,
  catalogs: ClientCatalogs<SessionViewer>,
  contextOf: (session: LiveSession) => EndpointContext | undefined
): SessionConnectionEvents {
  return {
    ...shared,
    opened({ definition, scope, upstream }) {
      subscriptions.opened(definition, scope, upstream)
    },
    notification(session: LiveSession, definition: UpstreamDefinition, notification: Notification) {
      const source = { definition, scope: scopeOf(definition, session) }
      if (notification.method === 'notifications/resources/updated') {
        return subscriptions.notification(definition, source.scope, notification)
      }
      if (notification.method === 'notifications/tasks/status') tasks.noted(session, source, notification.params)
      clients.notify(session, source, notification)
    },
    listChanged(session, definition, upstream, kind) {
      const context = contextOf(session)
      const viewKey = context === undefined ? undefined : catalogs.viewKeyOf({ ...context, session })
      sessionLists.changed(session, viewKey, definition, upstream, kind)
    },
    serverRequest: (session, definition, request, options) =>
      clients.ask(session, { definition, scope: scopeOf(definition, session) }, request, options)
  }
}
