// What happens on the upstream connections of sessions outside of calls, and whom it reaches.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Notification } from '../../protocol/messages.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { EndpointContext } from '../call/call.ts'
import { scopeOf } from '../call/scopes.ts'
import type { ClientCatalogs, SessionViewer } from '../catalog/client-catalogs.ts'
import type { SharedConnectionEvents } from '../catalog/listings.ts'
import type { SessionLists } from '../catalog/session-lists.ts'
import type { SessionConnectionEvents } from '../connections/session-connections.ts'
import type { ResourceSubscriptions } from '../subscriptions/resource-subscriptions.ts'
import type { SessionTasks } from '../tasks/session-tasks.ts'
import type { SessionClients } from './session-clients.ts'

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
