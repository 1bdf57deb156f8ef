// The middle floor: one call from the door to its upstream and back. Introduces auth, session and upstream to each other.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { observe } from '../observe/calls.ts'
import { GatewayError } from '../protocol/errors.ts'
import { has } from '../protocol/merge.ts'
import type { Notification, Request, Result, ServerCapabilities, ServerRequest } from '../protocol/messages.ts'
import type { Client, Handshake, Upstream } from '../protocol/seams.ts'
import { withRelatedTask } from '../protocol/tasks.ts'
import type { LiveSession, LiveSessions } from '../session/live.ts'
import type { SessionRecord, Sessions } from '../session/sessions.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import type { AskRooms } from '../upstream/ask-room.ts'
import type { Pool } from '../upstream/pool.ts'
import { offered, shapeAsk } from './asking.ts'
import type { Call, Place } from './call.ts'
import { createCatalogs } from './catalogs.ts'
import type { Catalog } from './catalog.ts'
import { legacyCapabilitiesOf } from './catalog.ts'
import { createConnections } from './connections.ts'
import { dispatch } from './dispatch.ts'
import { discreet } from './discretion.ts'
import { definitionOf } from './floor.ts'
import type { Floor } from './floor.ts'
import { declaredToModern } from './fulfil-asks.ts'
import { createFulfiller } from './fulfil.ts'
import { demanded } from './lacking.ts'
import { createLevels } from './levels.ts'
import { createListings } from './listings.ts'
import { profilesOf } from './profiles.ts'
import type { Profile } from './profiles.ts'
import { shareOf } from './share.ts'
import type { Shared, Subscriber } from './shared.ts'
import { createSubscriptions } from './subscriptions.ts'
import { createTasks } from './tasks.ts'
import { shapeNews } from './telling.ts'
import { whileWanted } from './wanted.ts'

export interface RelayOptions {
  readonly pool: Pool
  readonly store: Store
  readonly sessions: Sessions
  readonly live: LiveSessions
  readonly clock: { now (): number, timer (ms: number, run: () => void): { close (): unknown, unref (): unknown } }
  readonly sealer: Sealer
  readonly randomBytes: (size: number) => Buffer
  readonly askRooms: AskRooms
  readonly log: Log
  readonly handshake: Handshake
  /** Where a session stands now; undefined when its tenant or endpoint is gone. */
  readonly placeOf: (live: LiveSession) => Place | undefined
}

/** What decides which lists a client of a session sees. */
export type Declaring = Pick<SessionRecord, 'owner' | 'revision' | 'capabilities'>

export interface Relay {
  readonly shared: Shared
  /** What `initialize` answers such a client. Waits for unknown upstreams up to `limits.coldStartMs`. */
  describe (place: Place, client: Declaring): Promise<{ capabilities: ServerCapabilities, instructions: string | undefined }>
  /** @throws GatewayError, RpcError */
  call (call: Call): Promise<Result>
  /** A notification of a client that is about none of its requests. */
  notify (place: Place, live: LiveSession, notification: Notification): void
  /** A client that keeps its stream open keeps its connections. */
  touch (place: Place, live: LiveSession): void
  /** Opens the listings of an endpoint before anybody asks. */
  warm (place: Place): Promise<void>
  /** After a reload: forgets what is gone, tells clients what changed. */
  retain (hashes: ReadonlySet<string>): void
  close (): void
}

/** How long `initialize` waits for what servers list for what its client declares, in milliseconds. */
const viewsMs = 1_000

export function createRelay ({ pool, store, sessions, live, clock, sealer, randomBytes, askRooms, log, handshake, placeOf }: RelayOptions): Relay {
  const tasks = createTasks({ sealer, store, live, randomBytes, clock, touch: pool.touch, log })
  const others: Subscriber[] = []
  const heard = {
    onSharedNotification (definition: UpstreamDefinition, scope: string, notification: Notification): void {
      for (const other of others) other.notification(definition, scope, notification)
      if (notification.method === 'notifications/resources/updated') return subscriptions.updated(definition, scope, notification)
      // A task is known by whom it was told to; whatever else such a connection says, a log message above all, belongs to nobody.
      const id = notification.method === 'notifications/tasks/status' ? notification.params?.['taskId'] : undefined
      for (const session of typeof id === 'string' ? tasks.sessionsOf({ definition, scope }, id) : []) {
        tasks.noted(session, { definition, scope }, notification.params)
        tell(session, definition, notification)
      }
    },
    onLost (definition: UpstreamDefinition, scope: string): void {
      for (const other of others) other.lost(definition, scope)
      subscriptions.lost(definition, scope)
    }
  }
  const listings = createListings({ pool, store, clock, log, handshake, ...heard })
  const catalogs = createCatalogs({ listings, clock, log })
  const declared = profilesOf(false, (client: Declaring, endpoint) => offered(endpoint, client))
  const profileOf = (client: Declaring, { endpoint }: Pick<Place, 'endpoint'>): Profile | undefined => declared(client, endpoint, () => shareOf(client.owner))
  const catalogOf = (place: Place, session: LiveSession): Catalog => catalogs.of(place, session, profileOf(session.session.record, place))
  const profileNow = (session: LiveSession): Profile | undefined => {
    const place = placeOf(session)
    return place === undefined ? undefined : profileOf(session.session.record, place)
  }
  const levels = createLevels({ log })
  const connections = createConnections({
    pool,
    live,
    listings,
    levels,
    clientInfo: handshake.clientInfo,
    log,
    ...heard,
    onOpen (definition, scope, upstream) {
      for (const each of [tasks, subscriptions]) each.opened(definition, scope, upstream)
    },
    onOwnChange: (session, ...change) => catalogs.ownChange(session, profileNow(session), ...change),
    onOwnNotification (session, definition, notification) {
      if (notification.method === 'notifications/resources/updated') return subscriptions.updated(definition, connections.scopeOf(definition, session), notification)
      if (notification.method === 'notifications/tasks/status') tasks.noted(session, sourceOf(definition, session), notification.params)
      tell(session, definition, notification)
    },
    async onOwnAsk (session, definition, request, options) {
      const place = placeOf(session)
      if (place === undefined) throw new GatewayError('session_unknown', 'The session of the client ended.')
      return await askOf(session, place, definition, request, (shaped) => session.ask(shaped, options))
    }
  })
  const subscriptions = createSubscriptions({
    live,
    placeOf,
    scopeOf: connections.scopeOf,
    definitionOf,
    acquire: (definition, place, session) => connections.acquire(definition, place.endpoint, session),
    connect: (call, definition) => connect(call, definition),
    send: (call, definition, upstream, request) => send(call, definition, upstream, request),
    deliver (session, definition, notification, uri) {
      const place = placeOf(session)
      const own = notification.params?.['uri']
      if (place === undefined || typeof own !== 'string') return
      const shown = uri ?? catalogOf(place, session).uriMap(definition.name)(own)
      tell(session, definition, { method: notification.method, params: { ...notification.params, uri: shown } })
    },
    wantedElsewhere: (definition, scope, uri) => others.some((other) => other.wants(definition, scope, uri)),
    timer: clock.timer,
    log
  })

  const fulfiller = createFulfiller({
    clock, store, randomBytes, listings, askRooms,
    wraps: (call) => catalogOf(call, call.live).wraps(String(call.request.params?.['name'])),
    taskId: (call, { name }, id) => tasks.toClient(call.live, sourceOf(definitionOf(call, name), call.live))(id)
  })
  const sourceOf = (definition: UpstreamDefinition, session: LiveSession) => ({ definition, scope: connections.scopeOf(definition, session) })

  /** To the session's own stream. */
  function tell (session: LiveSession, definition: UpstreamDefinition, notification: Notification): void {
    const place = placeOf(session)
    const news = place === undefined ? undefined : shapeNews(notification, definition.name, place, session, tasks.toClient(session, sourceOf(definition, session)))
    if (news !== undefined) session.send(news)
  }

  /** A question of an upstream, in the shape that the client knows, and its answer in the upstream's. */
  const askOf = async (session: LiveSession, place: Place, definition: UpstreamDefinition, request: ServerRequest, ask: (shaped: ServerRequest) => Promise<unknown>): Promise<unknown> =>
    await tasks.asked(session, sourceOf(definition, session), shapeAsk(request, definition.name, place.endpoint, session.session.record), ask)
  const connect = (call: Call, definition: UpstreamDefinition): Promise<Upstream> => whileWanted(connections.acquire(definition, call.endpoint, call.live), call.signal)

  async function send (call: Call, definition: UpstreamDefinition, upstream: Upstream, request: Request): Promise<Result> {
    const source = sourceOf(definition, call.live)
    const outgoing = tasks.outgoing(call.live, source, request)
    let over = false
    try {
      const result = await fulfiller.request(call, upstream, outgoing, clientOf(call, definition, upstream, () => over), () => connections.acquire(definition, call.endpoint, call.live))
      return withRelatedTask(result, tasks.toClient(call.live, source))
    } catch (error) {
      return demanded(error, call, outgoing, definition.name)
    } finally {
      over = true
    }
  }

  /** The caller, for one upstream. `over`: the call has ended; only a task that it made still reports its progress. */
  function clientOf (call: Call, definition: UpstreamDefinition, { era, capabilities }: Upstream, over: () => boolean): Client {
    const { client } = call
    return {
      // To a modern server we are a client of its own era, and what it asks goes through `relay/fulfil`.
      era,
      capabilities: era === 'modern' ? declaredToModern(call, capabilities) : client.capabilities,
      logLevel: call.live.session.record.logLevel,
      notify (notification) {
        const news = shapeNews(notification, definition.name, call, call.live, tasks.toClient(call.live, sourceOf(definition, call.live)))
        if (news === undefined) return
        if (over()) live.get(call.live.key)?.send(news)
        else client.notify(news)
      },
      ask: (request, options) => askOf(call.live, call, definition, request, (shaped) => client.ask(shaped, options))
    }
  }

  listings.onChange((hash, kinds, concerns) => {
    for (const session of live.all()) {
      const place = placeOf(session)
      const news = new Set([...kinds].filter((kind) => !catalogs.hasOwn(session.key, hash, kind)))
      if (place === undefined || news.size === 0 || !concerns(profileOf(session.session.record, place))) continue
      if (catalogs.definitionsOf(place).some((definition) => definition.hash === hash)) session.changed(news)
    }
  })
  live.onDrop((key) => {
    catalogs.forget(key)
    subscriptions.drop(key)
    tasks.drop(key)
    connections.release(key).catch((err: unknown) => log.warn({ err }, 'connections of an ended session did not close cleanly'))
  })

  const floor: Floor = {
    catalog: (call) => catalogOf(call, call.live),
    settled: (call) => catalogs.settled(call, profileOf(call.live.session.record, call)),
    reread: catalogs.reread,
    async forward (call, route, request) {
      const definition = definitionOf(call, route.upstream)
      try {
        return await send(call, definition, await connect(call, definition), request)
      } catch (error) {
        throw discreet(error, definition)
      }
    },
    offers (call, route, ...path) {
      const listing = listings.peek(definitionOf(call, route.upstream), profileOf(call.live.session.record, call))
      return listing === undefined || has(legacyCapabilitiesOf(listing), path)
    },
    sourceOf: (call, route) => sourceOf(definitionOf(call, route.upstream), call.live),
    subscriptions,
    tasks,
    async setLogLevel (call, level) {
      await sessions.setLogLevel(call.live.session, level)
      call.live.session = { ...call.live.session, record: { ...call.live.session.record, logLevel: level } }
      await connections.setLogLevel(call.live, level)
    }
  }

  return {
    shared: { listings, catalogs, levels, updates: { join: (subscriber) => { others.push(subscriber) }, wants: subscriptions.wants } },
    async describe (place, client) {
      const profile = profileOf(client, place)
      await catalogs.settled(place, undefined)
      // For the lists themselves there is more patience.
      if (profile !== undefined) await catalogs.viewed(place, profile, Math.min(place.snapshot.limits.coldStartMs, viewsMs))
      const { capabilities, instructions } = catalogs.of(place, undefined, profile)
      return { capabilities, instructions }
    },
    call: (call) => observe(call, { clock, log, route: (name) => catalogOf(call, call.live).tool(name) }, () => dispatch(call, floor)),
    notify (_place, session, notification) {
      // The roots are the session's own: no connection that others use hears of them.
      if (notification.method === 'notifications/roots/list_changed') return connections.tell(session, notification)
      const hosted = notification.method === 'notifications/tasks/status' ? tasks.hostedFor(session, notification) : undefined
      if (hosted !== undefined) connections.tell(session, hosted.notification, hosted.upstream)
    },
    touch (place, session) {
      connections.touch(session)
      subscriptions.touch(session)
      const profile = profileOf(session.session.record, place)
      for (const definition of catalogs.definitionsOf(place)) listings.use(definition, profile)
    },
    warm: (place) => listings.settled(catalogs.definitionsOf(place), place.snapshot.limits.coldStartMs),
    retain (hashes) {
      listings.retain(hashes)
      pool.retain(hashes)
      subscriptions.retain(hashes)
    },
    close () {
      listings.close()
      subscriptions.close()
      tasks.close()
    }
  }
}
