// What upstreams say to and ask of the clients of sessions, in the shape that each client's revision knows: during a
// call to its client, outside of calls over the session's own stream.

import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import { noteAgain } from '../../observe/call-notes.ts'
import type { JsonObject, Notification, ServerRequest } from '../../protocol/messages.ts'
import type { Client, ServerRequestOptions } from '../../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import { endedSession } from '../../session/session-end.ts'
import { quotaKeyOf, scopeOf, type EndpointContext, type LegacyCall } from '../call/call.ts'
import type { ClientCatalogs, SessionViewer } from '../catalog/client-catalogs.ts'
import type { SharedConnectionEvents } from '../catalog/listings.ts'
import type { OwnLists } from '../catalog/own-lists.ts'
import { declaredForSession } from '../client/declared-capabilities.ts'
import { notificationForSession, shapeServerRequest } from '../client/server-messages.ts'
import type { SessionConnection, SessionConnectionEvents } from '../connections/session-connections.ts'
import type { ResourceSubscriptions } from '../subscriptions/resource-subscriptions.ts'
import type { UpstreamScope } from '../tasks/session-task-ids.ts'
import type { SessionTasks } from '../tasks/session-tasks.ts'

/** The client of one call of a session. Tasks keep it for long after `endCall`, and then nothing of the call. */
export interface SessionCallClient extends Client {
  /** `sent` of a request that is sent no second time; undefined where the call has none. */
  readonly letGo?: Client['sent']
}

export type SessionClients = ReturnType<typeof createSessionClients>

export function createSessionClients({
  live,
  tasks,
  subscriptions,
  contextOf
}: {
  readonly live: LiveSessions
  readonly tasks: SessionTasks
  readonly subscriptions: ResourceSubscriptions
  /** The endpoint of a session in the configuration of now; undefined where it is gone. */
  readonly contextOf: (session: LiveSession) => EndpointContext | undefined
}) {
  const shaped = (
    session: LiveSession,
    endpoint: Endpoint,
    source: UpstreamScope,
    notification: Notification
  ): Notification | undefined =>
    notificationForSession(notification, source.definition.name, endpoint, session, tasks.toClient(session, source))

  const asked = (
    session: LiveSession,
    endpoint: Endpoint,
    source: UpstreamScope,
    request: ServerRequest,
    options: ServerRequestOptions | undefined,
    asker: Pick<Client, 'ask'>
  ): Promise<unknown> => {
    // No async function, which would keep `asker`, and with it its call, until a person has answered.
    try {
      const known = shapeServerRequest(request, source.definition.name, endpoint, session.session.record)
      return tasks.serverRequest(session, source, known, (outgoing) => asker.ask(outgoing, options))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Sends a notification to the session's own stream. */
  function notify(session: LiveSession, source: UpstreamScope, notification: Notification): void {
    const context = contextOf(session)
    const message = context === undefined ? undefined : shaped(session, context.endpoint, source, notification)
    if (message !== undefined) session.send(message)
  }

  const sharedEvents: SharedConnectionEvents = {
    sharedNotification(definition, scope, notification) {
      subscriptions.notification(definition, scope, notification)
      if (notification.method !== 'notifications/tasks/status') return
      // Sessions that were told of the task hear of it. Anything else, a log message above all, names nobody whom it is
      // for.
      const source = { definition, scope }
      const id = notification.params?.['taskId']
      for (const session of typeof id === 'string' ? tasks.sessionsOf(source, id) : []) {
        tasks.recordState(session, source, notification.params)
        notify(session, source, notification)
      }
    },
    lost: subscriptions.lost
  }

  return {
    /** During a call. After `endCall`, what its tasks still report goes to the session's own stream. */
    forCall(call: LegacyCall, connection: SessionConnection): SessionCallClient & { endCall(): void } {
      const { session, endpoint, client } = call
      const { era, capabilities } = connection.upstream
      // Functions below that referred to `call` or `client` would keep the arguments for as long as its tasks run.
      let own: LegacyCall | undefined = call
      return {
        // A modern server is shown a client of its own era, and asks by input requests (bridge/input-loop).
        era,
        capabilities: era === 'modern' ? declaredForSession(call, capabilities) : client.capabilities,
        logLevel: session.session.record.logLevel,
        quotaKey: quotaKeyOf(session.session.record.owner),
        letGo: client.sent && ((keptBytes) => own?.client.sent?.(keptBytes)),
        again: (why) => noteAgain(own?.record, why),
        notify(notification) {
          const message = shaped(session, endpoint, connection, notification)
          if (message === undefined) return
          if (own === undefined) live.get(session.key)?.send(message)
          else own.client.notify(message)
        },
        ask: (request, options) => asked(session, endpoint, connection, request, options, own?.client ?? session),
        endCall() {
          own = undefined
        }
      }
    },
    notify,
    /** Events of connections that several sessions use: a shared upstream's own, and those of one principal. */
    sharedEvents,
    /** Makes the events of all connections of a session. */
    events: (
      sessionLists: Pick<OwnLists, 'changed'>,
      catalogs: ClientCatalogs<SessionViewer>,
      updated: (session: LiveSession, definition: UpstreamDefinition, params: JsonObject) => void
    ): SessionConnectionEvents => ({
      ...sharedEvents,
      opened: subscriptions.opened,
      notification(session, definition, notification, isContinued) {
        const source = { definition, scope: scopeOf(definition, session) }
        const { method, params } = notification
        if (method === 'notifications/resources/updated') {
          const isKnown = subscriptions.notification(definition, source.scope, notification)
          if (!isKnown && isContinued && params !== undefined) updated(session, definition, params)
          return
        }
        if (method === 'notifications/tasks/status') tasks.recordState(session, source, params)
        notify(session, source, notification)
      },
      listChanged(session, definition, upstream, kind, noticedBy) {
        const context = contextOf(session)
        const viewKey = context === undefined ? undefined : catalogs.viewKeyOf({ ...context, session })
        sessionLists.changed(session, viewKey, definition, upstream, kind, noticedBy)
      },
      async serverRequest(session, definition, request, options) {
        const context = contextOf(session)
        if (context === undefined) throw endedSession()
        const source = { definition, scope: scopeOf(definition, session) }
        return await asked(session, context.endpoint, source, request, options, session)
      }
    })
  }
}
