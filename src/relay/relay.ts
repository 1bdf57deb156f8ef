// The middle floor: one call from the door to its upstream and back. Introduces auth, session and upstream to each other.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { observe } from '../observe/calls.ts'
import { GatewayError } from '../protocol/errors.ts'
import { reaches } from '../protocol/levels.ts'
import { isObject } from '../protocol/messages.ts'
import type { Notification, Result, ServerCapabilities } from '../protocol/messages.ts'
import type { Client, Handshake } from '../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../session/live.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Store } from '../store/port.ts'
import type { Pool } from '../upstream/pool.ts'
import type { Call, Place } from './call.ts'
import { createCatalogs } from './catalogs.ts'
import type { Route } from './catalog.ts'
import { createConnections } from './connections.ts'
import { dispatch } from './dispatch.ts'
import type { Floor } from './dispatch.ts'
import { discreet } from './discretion.ts'
import { createListings } from './listings.ts'

export interface RelayOptions {
  readonly pool: Pool
  readonly store: Store
  readonly sessions: Sessions
  readonly live: LiveSessions
  readonly clock: { now (): number }
  readonly log: Log
  readonly handshake: Handshake
  /** Where a session stands now; undefined when its tenant or endpoint is gone. */
  readonly placeOf: (live: LiveSession) => Place | undefined
}

export interface Relay {
  /** What `initialize` answers for an endpoint. Waits for unknown upstreams up to `limits.coldStartMs`. */
  describe (place: Place): Promise<{ capabilities: ServerCapabilities, instructions: string | undefined }>
  /** @throws GatewayError, RpcError */
  call (call: Call): Promise<Result>
  /** A client that keeps its stream open keeps its connections. */
  touch (place: Place, live: LiveSession): void
  /** Opens the listings of an endpoint before anybody asks. */
  warm (place: Place): Promise<void>
  /** After a reload: forgets what is gone, tells clients what changed. */
  retain (hashes: ReadonlySet<string>): void
  close (): void
}

export function createRelay ({ pool, store, sessions, live, clock, log, handshake, placeOf }: RelayOptions): Relay {
  const listings = createListings({ pool, store, clock, log, handshake })
  const catalogs = createCatalogs({ listings, log })
  const connections = createConnections({
    pool,
    live,
    listings,
    handshake,
    log,
    onOwnChange: catalogs.ownChange,
    onOwnLog (session, definition, notification) {
      const place = placeOf(session)
      if (place !== undefined) forClient(session, place, definition, notification, (shaped) => session.send(shaped))
    }
  })

  listings.onChange((hash, kinds) => {
    for (const session of live.all()) {
      const place = placeOf(session)
      if (place === undefined || catalogs.hasOwn(session.key, hash)) continue
      if (catalogs.definitionsOf(place).some((definition) => definition.hash === hash)) session.changed(kinds)
    }
  })
  live.onDrop((key) => {
    catalogs.forget(key)
    connections.release(key).catch((err: unknown) => log.warn({ err }, 'connections of an ended session did not close cleanly'))
  })

  const definitionOf = (place: Place, route: Route): UpstreamDefinition => {
    const definition = place.tenant.upstreams.get(route.upstream)
    if (definition === undefined) throw new GatewayError('upstream_unavailable', `Upstream ${route.upstream} is no longer configured.`)
    return definition
  }
  const settled = async (place: Place): Promise<void> => {
    const definitions = catalogs.definitionsOf(place)
    const unknown = definitions.filter((definition) => {
      listings.use(definition)
      return listings.version(definition) === 0 && listings.peek(definition) === undefined
    })
    if (unknown.length > 0) await listings.settled(unknown, place.snapshot.limits.coldStartMs)
  }

  const floor: Floor = {
    catalog: (call) => catalogs.of(call, call.live),
    settled,
    async forward (call, route, request) {
      const definition = definitionOf(call, route)
      try {
        const upstream = await whileWanted(connections.acquire(definition, call.principal, call.live), call.signal)
        return await upstream.request(request, clientOf(call, definition), call.signal)
      } catch (error) {
        throw discreet(error, definition)
      }
    },
    offers: (call, route, capability) => isObject((listings.peek(definitionOf(call, route))?.capabilities ?? { [capability]: {} })[capability]),
    async setLogLevel (call, level) {
      await sessions.setLogLevel(call.live.session, level)
      call.live.session = { ...call.live.session, record: { ...call.live.session.record, logLevel: level } }
      await connections.setLogLevel(call.live, level)
    }
  }

  return {
    async describe (place) {
      await settled(place)
      const { capabilities, instructions } = catalogs.of(place, undefined)
      return { capabilities, instructions }
    },
    call: (call) => observe(call, { clock, log, route: (name) => catalogs.of(call, call.live).tool(name) }, () => dispatch(call, floor)),
    touch (place, session) {
      connections.touch(session)
      for (const definition of catalogs.definitionsOf(place)) listings.use(definition)
    },
    warm: (place) => listings.settled(catalogs.definitionsOf(place), place.snapshot.limits.coldStartMs),
    retain (hashes) {
      listings.retain(hashes)
      pool.retain(hashes)
    },
    close: () => listings.close()
  }
}

/** Connecting may take half a minute and goes on for whoever else waits for it; a call that is over does not. */
function whileWanted<T> (work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(new GatewayError('cancelled', 'The request was cancelled before it was sent.'))
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    work.then((value) => {
      signal.removeEventListener('abort', giveUp)
      resolve(value)
    }, (error: unknown) => {
      signal.removeEventListener('abort', giveUp)
      reject(error)
    })
  })
}

/** The caller, for one upstream: hears only the log levels it asked for, and from whom they come. */
function clientOf (call: Call, definition: UpstreamDefinition): Client {
  const { client } = call
  return {
    era: client.era,
    capabilities: client.capabilities,
    notify (notification) {
      forClient(call.live, call, definition, notification, (shaped) => client.notify(shaped))
    },
    ask: (request) => client.ask(request)
  }
}

function forClient (live: LiveSession, place: Place, definition: UpstreamDefinition, notification: Notification, deliver: (shaped: Notification) => void): void {
  if (notification.method !== 'notifications/message') return deliver(notification)
  const { params } = notification
  if (!reaches(params?.['level'], live.session.record.logLevel)) return
  if (place.endpoint.members.length === 1) return deliver(notification)
  const logger = typeof params?.['logger'] === 'string' ? `${definition.name}/${params['logger']}` : definition.name
  deliver({ method: notification.method, params: { ...params, logger } })
}
