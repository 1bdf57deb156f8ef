// The relay for sessions, revisions up to 2025-11-25: composes what serves them.

import { isConfiguredPrincipal, type Principal } from '../auth/principal.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { createMemoryAccount } from '../limits/memory.ts'
import type { Notification, Result } from '../protocol/messages.ts'
import type { Bus } from '../session/bus/bus.ts'
import type { LiveSession, LiveSessions } from '../session/live-sessions.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import type { Pool } from '../upstream/pool/pool.ts'
import type { ServerRequestQuotas } from '../upstream/rpc/server-requests.ts'
import { createInputLoop } from './bridge/input-loop.ts'
import { createSessionClients } from './bridge/session-clients.ts'
import {
  checkProgressToken,
  methodNotFound,
  quotaKeyOf,
  type ContextOf,
  type EndpointContext,
  type LegacyCall,
  type Runtime
} from './call/call.ts'
import { createSessionCatalogs, definitionsOf, type DeclaringClient } from './catalog/client-catalogs.ts'
import { createCatalogCache } from './catalog/cache/catalog-cache.ts'
import { createListings } from './catalog/listings.ts'
import { createOwnLists } from './catalog/own-lists.ts'
import { tellListChanges, tellViewChanges } from './catalog/view-changes.ts'
import type { Viewer } from './catalog/visible.ts'
import { createPagesAsked, type PagesAsked } from './client/pages-asked.ts'
import { createEndedSessions } from './connections/ended-sessions.ts'
import { createKeptSessions } from './connections/kept-sessions.ts'
import { createLogLevels } from './connections/log-level.ts'
import { createSharedConnections } from './connections/shared-connections.ts'
import { reportEndpoint } from './methods/report.ts'
import { isBoundRequest, upstreamForBorrower } from './methods/bound-requests.ts'
import { legacyMethods } from './methods/legacy.ts'
import type { LegacyServices } from './methods/legacy-forward.ts'
import { legacyTaskMethods } from './methods/legacy-tasks.ts'
import { createListPages } from './methods/list-pages.ts'
import { createResourceSubscriptions } from './subscriptions/resource-subscriptions.ts'
import { createSessionSubscribers } from './subscriptions/session-subscribers.ts'
import { createSessionTasks } from './tasks/session-tasks.ts'

const methods = new Map([...legacyMethods, ...legacyTaskMethods])

/** How long `initialize` waits for what servers list for the capabilities of its client, in milliseconds. */
const maxViewWaitMs = 1_000

export type LegacyRelay = ReturnType<typeof createLegacyRelay>

export function createLegacyRelay({
  runtime,
  pool,
  store,
  sealer,
  sessions,
  live,
  bus,
  serverRequestQuotas,
  contextOf: contextNow
}: {
  readonly runtime: Runtime
  readonly pool: Pool
  readonly store: Store
  readonly sealer: Sealer
  readonly sessions: Sessions
  readonly live: LiveSessions
  readonly bus: Bus
  readonly serverRequestQuotas: ServerRequestQuotas
  readonly contextOf: ContextOf
}) {
  const { clock, wall, clientInfo, log, newId, callLimits, memory = createMemoryAccount() } = runtime
  /** Who came last with the session, for what is not the answer to a request. */
  const principals = new WeakMap<LiveSession, Principal>()
  const contextOf = (session: LiveSession): Viewer | undefined =>
    viewerOf(contextNow(session.tenant, session.endpoint, session.session.record.owner), principals.get(session))

  const isRevoked = (session: LiveSession): boolean => isRevokedAt(session, contextOf(session))

  const tasks = createSessionTasks({ sealer, store, sessions: live, pool, clock, log })
  const subscriptions = createResourceSubscriptions(pool, clock, log)
  const clients = createSessionClients({ live, tasks, subscriptions, contextOf })
  const listings = createListings({ pool, store, clock, log, clientInfo, memory, events: clients.sharedEvents })
  const sessionLists = createOwnLists(listings, clock, log)
  const catalogOf = createCatalogCache(listings, log, memory)
  const catalogs = createSessionCatalogs(catalogOf, listings, sessionLists)
  const [levels, kept] = [createLogLevels(log), createKeptSessions(store, sealer, runtime, sessions.keepers)]
  const endedSessions = createEndedSessions({ ...runtime, pool, kept, contextOf: contextNow, sessions })
  const events = clients.events(sessionLists, catalogs, (session, ...update) => subscribers.updated(session, ...update))
  const own = { pool, live, listings, levels, kept, clientInfo, events }
  const { connections, borrowed, recall } = createSharedConnections(own, bus, sessionLists, runtime)
  const subscribers = createSessionSubscribers(subscriptions, live, connections, catalogs, clients, contextOf, wall)
  const inputLoop = createInputLoop({ clock, store, newId, listings, serverRequestQuotas, tasks })
  const services: LegacyServices = {
    catalogs,
    connections,
    clients,
    inputLoop,
    tasks,
    subscriptions,
    subscribers,
    sessions,
    pages: createListPages(sealer, memory),
    callLimits,
    pagesAsked: createPagesAsked(),
    wall
  }

  tellListChanges(listings, { live, contextOf, catalogs, ownLists: sessionLists, bus })
  live.onDrop((key) => {
    sessionLists.forget(key)
    subscribers.drop(key)
    tasks
      .drop(key)
      .then(() => connections.release(key))
      .catch((err: unknown) => log.warn({ err }, 'connections of an ended session did not close cleanly'))
  })

  return {
    /** What the relays of both eras use, because it belongs to no caller. */
    shared: { listings, catalogOf, levels, subscriptions },
    /** What `initialize` answers such a client. Waits for unknown listings up to `limits.coldStartMs`. */
    async describe(context: Viewer, declaring: DeclaringClient) {
      const viewKey = catalogs.viewKeyOf({ ...context, session: undefined, declaring })
      const definitions = definitionsOf(context)
      const { coldStartMs } = context.snapshot.limits
      await listings.awaitListings(definitions, coldStartMs)
      // The lists themselves are waited for longer.
      const waitMs = Math.min(coldStartMs, maxViewWaitMs)
      if (viewKey !== undefined) await listings.awaitViews(definitions, waitMs, viewKey)
      const { capabilities, instructions } = catalogOf(context, viewKey)
      return { capabilities, instructions, serverInfo: clientInfo }
    },
    /** @throws GatewayError method_not_found; whatever the method throws */
    call(call: LegacyCall): Promise<Result> {
      if (principals.get(call.session) !== call.principal) principals.set(call.session, call.principal)
      const method = methods.get(call.request.method)
      if (method === undefined) throw methodNotFound(call.request.method)
      checkProgressToken(call)
      return method(call, services)
    },
    /** Does the request have to run where those before it of its session ran? */
    isBound: (call: Parameters<typeof isBoundRequest>[0]): boolean => isBoundRequest(call, catalogs, listings),
    /** For such a call at another process than that: a connection on which it runs here all the same. */
    borrowFor: (call: LegacyCall) =>
      borrowed.use(call.session, upstreamForBorrower(call, catalogs, listings), call.endpoint),
    /** A notification of a client that is about none of its requests. */
    notify: (session: LiveSession, said: Notification): void => notifyServers(services, session, said),
    /** A client that keeps its stream open keeps its connections. */
    touch(context: Viewer, session: LiveSession): void {
      if (context.principal !== undefined) principals.set(session, context.principal)
      for (const each of [connections, subscribers]) each.touch(session)
      contextOf(session) // Who only listens has not gone, and keeps what they have connected.
      const viewKey = catalogs.viewKeyOf({ ...context, session })
      for (const definition of definitionsOf(context)) listings.markUsed(definition, viewKey)
    },
    /** Has this process connections of the session's own? */
    holds: connections.has,
    /** Before this process stops. @returns how many others have calls in sessions that it has at servers */
    recall,
    /** Another process is the home of the session now, and goes on with its upstream sessions. */
    leave: connections.leave,
    /** Opens the listings of an endpoint before anybody asks. */
    warm: (context: EndpointContext): Promise<void> =>
      listings.awaitListings(definitionsOf(context), context.snapshot.limits.coldStartMs),
    /** What an endpoint offers, after `warm`. Never rejects. */
    report: (at: EndpointContext) => reportEndpoint(at, listings, catalogOf({ ...at, isBeforeRules: true }, undefined)),
    /** After a reload: forgets what is gone. @param hashes of all definitions that there are now */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const session of live.all()) if (isRevoked(session)) tasks.cancelAll(session.key)
      listings.retain(hashes)
      subscriptions.retain(hashes)
    },
    /** After a reload: ends sessions whose endpoint is gone, and tells the others which of their lists differ. */
    tellChanges(before: Snapshot, next: Snapshot): void {
      tellViewChanges(before, live, contextOf, catalogs)
      endedSessions.reloaded(before, next)
    },
    /** What a person has connected is another thing than before. @param person as `quotaKeyOf` */
    tellPerson: (person: string) => tellSessions(sessionsOf(live, person), services.pagesAsked, contextOf),
    /** After a reload, once their calls have ended: closes what this process holds for callers who are gone. */
    letGo(): void {
      for (const session of [...live.all()]) {
        try {
          if (isRevoked(session)) live.drop(session.key)
        } catch (err) {
          log.warn({ err, tenant: session.tenant }, 'a session whose caller is gone did not end cleanly')
        }
      }
    },
    close: (): void => [endedSessions, listings, subscriptions, tasks, borrowed].forEach((each) => each.close())
  }
}

function notifyServers({ connections, tasks }: LegacyServices, session: LiveSession, said: Notification): void {
  // The roots are the session's own: no connection that others use hears of them.
  if (said.method === 'notifications/roots/list_changed') return connections.notify(session, said)
  if (said.method !== 'notifications/tasks/status') return
  const hosted = tasks.hostedFor(session, said)
  if (hosted !== undefined) connections.notify(session, hosted.notification, hosted.upstream)
}

const sessionsOf = (live: Pick<LiveSessions, 'all'>, person: string): LiveSession[] =>
  [...live.all()].filter(({ session }) => quotaKeyOf(session.record.owner) === person)

function tellSessions(
  sessions: readonly LiveSession[],
  pages: PagesAsked,
  contextOf: (session: LiveSession) => EndpointContext | undefined
): void {
  for (const session of sessions) {
    const context = contextOf(session)
    if (context === undefined) continue
    session.listsChanged(['tools', 'prompts', 'resources'])
    pages.completed(session, context)
  }
}

const viewerOf = (context: EndpointContext | undefined, principal: Principal | undefined): Viewer | undefined =>
  context && { ...context, principal }

const isRevokedAt = ({ session: { record } }: LiveSession, context: EndpointContext | undefined): boolean =>
  context === undefined || !isConfiguredPrincipal(record.owner, context.tenant.auth)
