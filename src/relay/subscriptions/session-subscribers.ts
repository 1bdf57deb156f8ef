// Sessions as subscribers of resource-subscriptions.ts: each session is one.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { JsonObject, Notification } from '../../protocol/messages.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import { endedSession } from '../../session/session-end.ts'
import { scopeOf } from '../call/call.ts'
import type { ClientCatalogs, SessionViewer } from '../catalog/client-catalogs.ts'
import { readableRoute, type Viewer } from '../catalog/visible.ts'
import type { SessionConnections } from '../connections/session-connections.ts'
import type { Clock } from '../../time/clock.ts'
import type { UpstreamScope } from '../tasks/session-task-ids.ts'
import type { ResourceSubscriptions } from './resource-subscriptions.ts'
import { personOf, type SubscribedScope, type Subscriber } from './subscription-index.ts'

/** The connections that serve a session at an upstream, for its subscriptions. */
export const subscribedScopeOf = (definition: UpstreamDefinition, session: LiveSession): SubscribedScope => ({
  definition,
  scope: scopeOf(definition, session),
  exclusive: definition.isolation === 'session'
})

export type SessionSubscribers = ReturnType<typeof createSessionSubscribers>

/**
 * @param clients.notify to the session's own stream
 * @param contextOf the endpoint of a session in the configuration of now; undefined where it is gone
 */
export function createSessionSubscribers(
  subscriptions: ResourceSubscriptions,
  live: LiveSessions,
  connections: SessionConnections,
  catalogs: ClientCatalogs<SessionViewer>,
  clients: { notify(session: LiveSession, source: UpstreamScope, notification: Notification): void },
  contextOf: (session: LiveSession) => Viewer | undefined,
  wall: Pick<Clock, 'now'>
) {
  const subscribers = new Map<string, Subscriber>()

  function viewerOf(key: string): (SessionViewer & { readonly session: LiveSession }) | undefined {
    const session = live.get(key)
    const context = session === undefined ? undefined : contextOf(session)
    return session === undefined || context === undefined ? undefined : { ...context, session }
  }

  const subscriberOf = ({ key, memory }: LiveSession): Subscriber => ({
    memory,
    person: personOf(memory.share),
    tenant: memory.share.tenant,
    get over() {
      return live.get(key) === undefined
    },
    get listening() {
      return live.get(key)?.isListening() === true
    },
    updated(definition, params: JsonObject, shown) {
      const viewer = viewerOf(key)
      if (viewer === undefined) return
      const catalog = catalogs.of(viewer)
      const uri = shown ?? catalog.uriMap(definition.name)(String(params['uri']))
      // A reload may have taken it from the endpoint, or from its caller; or a condition refuses it now.
      if (readableRoute(viewer, catalog, uri, wall.now()) === undefined) return
      const source = { definition, scope: scopeOf(definition, viewer.session) }
      clients.notify(viewer.session, source, {
        method: 'notifications/resources/updated',
        params: { ...params, uri }
      })
    },
    async connect(definition) {
      const viewer = viewerOf(key)
      if (viewer === undefined) throw endedSession()
      return (await connections.lease(definition, viewer, viewer.session)).upstream
    },
    successorOf({ name }) {
      const viewer = viewerOf(key)
      const next = viewer?.tenant.upstreams.get(name)
      const isServed = viewer?.endpoint.members.some(({ upstream }) => upstream === name) === true
      return viewer === undefined || next === undefined || !isServed
        ? undefined
        : subscribedScopeOf(next, viewer.session)
    }
  })

  return {
    /** @throws GatewayError session_unknown where the session ended */
    of(session: LiveSession): Subscriber {
      const { key } = session
      const known = subscribers.get(key)
      if (known !== undefined) return known
      // Created only while the session lives: its end removes it.
      if (live.get(key) === undefined) throw endedSession()
      const subscriber = subscriberOf(session)
      subscribers.set(key, subscriber)
      return subscriber
    },
    /** In an upstream session that another process began: what was subscribed to there is known to its server alone. */
    updated: (session: LiveSession, definition: UpstreamDefinition, params: JsonObject): void =>
      subscriberOf(session).updated(definition, params, undefined),
    /** The client listens: its connections stay open, or are opened again. */
    touch({ key }: LiveSession) {
      const subscriber = subscribers.get(key)
      if (subscriber !== undefined) subscriptions.touch(subscriber)
    },
    /** The session ended. */
    drop(sessionKey: string) {
      const subscriber = subscribers.get(sessionKey)
      subscribers.delete(sessionKey)
      if (subscriber !== undefined) subscriptions.drop(subscriber)
    }
  }
}
