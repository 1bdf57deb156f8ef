// Which upstream connection serves a call: one per session, per principal, or shared, as the upstream's isolation says. A connection
// never serves two of what it is isolated by.

import { hash } from 'node:crypto'
import type { Endpoint, UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import type { LogLevel } from '../protocol/levels.ts'
import type { Implementation, Notification, ServerRequest } from '../protocol/messages.ts'
import type { AskOptions, Handshake, ListKind, Upstream, UpstreamEvents } from '../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../session/live.ts'
import { nobody } from '../upstream/exchange.ts'
import type { Pool } from '../upstream/pool.ts'
import { declaredTo } from './asking.ts'
import type { Levels } from './levels.ts'
import type { Listings } from './listings.ts'
import { listingScope } from './listings.ts'
import { shareOf } from './share.ts'

export interface ConnectionsOptions {
  readonly pool: Pool
  readonly live: LiveSessions
  readonly listings: Listings
  readonly levels: Levels
  readonly clientInfo: Implementation
  readonly log: Log
  /** A session's own connection reported that a list changed; `upstream` is undefined when it ended and its own view with it. */
  readonly onOwnChange: (live: LiveSession, definition: UpstreamDefinition, upstream: Upstream | undefined, kind: ListKind | undefined) => void
  /** What belongs to no call in flight, from a connection that is this session's alone. */
  readonly onOwnNotification: (live: LiveSession, definition: UpstreamDefinition, notification: Notification) => void
  /** The same from a connection that several sessions use. */
  readonly onSharedNotification: (definition: UpstreamDefinition, scope: string, notification: Notification) => void
  /** The connection that is in use now; called for every call. */
  readonly onOpen: (definition: UpstreamDefinition, scope: string, upstream: Upstream) => void
  readonly onLost: (definition: UpstreamDefinition, scope: string) => void
  readonly onOwnAsk: (live: LiveSession, definition: UpstreamDefinition, request: ServerRequest, options: AskOptions | undefined) => Promise<unknown>
}

export interface Connections {
  /** @throws GatewayError upstream_unavailable, too_many */
  acquire (definition: UpstreamDefinition, endpoint: Endpoint, live: LiveSession): Promise<Upstream>
  /** The connections that serve a session at an upstream, one after the other: the same scope, the same connection. */
  scopeOf (definition: UpstreamDefinition, live: LiveSession): string
  /** Passes a new log level on to the connections that this session has open already. */
  setLogLevel (live: LiveSession, level: LogLevel): Promise<void>
  /** To the session's own connections: what only they may know of the client. */
  tell (live: LiveSession, notification: Notification, upstream?: UpstreamName): void
  /** Keeps a listening client's connections from being closed as idle. */
  touch (live: LiveSession): void
  release (sessionKey: string): Promise<void>
}

export function createConnections (options: ConnectionsOptions): Connections {
  const { pool, live: sessions, listings, levels, clientInfo, log, onOwnChange, onOwnNotification, onSharedNotification, onOpen, onLost, onOwnAsk } = options
  // Scope of a session -> hash of the definition -> the newest connection.
  const open = new Map<string, Map<string, Upstream>>()

  const scopeOf = (definition: UpstreamDefinition, live: LiveSession): string => {
    if (definition.isolation === 'session') return `session:${live.key}`
    if (definition.isolation === 'shared') return listingScope(definition)
    const { owner } = live.session.record
    const who = JSON.stringify([owner.tenant, owner.issuer, owner.subject, owner.clientId])
    return `principal:${hash('sha256', who, 'base64url')}`
  }

  function eventsOf (definition: UpstreamDefinition, scope: string, live: LiveSession, current: () => Upstream | undefined): UpstreamEvents {
    if (definition.isolation !== 'session') {
      return {
        listChanged: (kind) => listings.changed(definition, kind),
        notification: (notification) => onSharedNotification(definition, scope, notification),
        ask: nobody.ask, // It declares nothing that could be asked.
        closed (reason) {
          log.warn({ upstream: definition.name, tenant: definition.tenant, reason: reason.message }, 'upstream connection ended')
          onLost(definition, scope)
        }
      }
    }
    const own = (): LiveSession | undefined => sessions.get(live.key)
    return {
      listChanged (kind) {
        const session = own()
        if (session !== undefined) onOwnChange(session, definition, current(), kind)
      },
      notification (notification) {
        const session = own()
        if (session !== undefined) onOwnNotification(session, definition, notification)
      },
      async ask (request, options) {
        const session = own()
        return await (session === undefined ? nobody.ask(request) : onOwnAsk(session, definition, request, options))
      },
      closed (reason) {
        if (open.get(scope)?.get(definition.hash) === current()) open.get(scope)?.delete(definition.hash)
        log.warn({ upstream: definition.name, tenant: definition.tenant, reason: reason.message }, 'upstream connection of a session ended')
        const session = own()
        if (session !== undefined) onOwnChange(session, definition, undefined, undefined)
        onLost(definition, scope)
      }
    }
  }

  return {
    scopeOf,
    async acquire (definition, endpoint, live) {
      const scope = scopeOf(definition, live)
      const handshake: Handshake = { clientInfo, capabilities: declaredTo(definition, endpoint, live.session.record), share: shareOf(live.session.record.owner) }
      let current: Upstream | undefined
      // What everybody shares is opened by whoever comes first, so all of them open it in the same way.
      const upstream = current = await (definition.isolation === 'shared'
        ? listings.connect(definition)
        : pool.acquire(definition, scope, handshake, eventsOf(definition, scope, live, () => current)))
      if (definition.isolation === 'session') {
        // The session ended while we connected: nobody would close it.
        if (sessions.get(live.key) === undefined) await pool.release(scope)
        else open.set(scope, (open.get(scope) ?? new Map<string, Upstream>()).set(definition.hash, upstream))
      }
      onOpen(definition, scope, upstream)
      if (live.session.record.logLevel !== undefined) await levels.set(upstream, live.session.record.logLevel, definition.isolation !== 'session')
      return upstream
    },
    async setLogLevel (live, wanted) {
      // Connections that others use too are told when a call of this session next uses them.
      const own = open.get(`session:${live.key}`)?.values() ?? []
      await Promise.all([...own].map((upstream) => levels.set(upstream, wanted, false)))
    },
    tell (live, notification, only) {
      for (const upstream of open.get(`session:${live.key}`)?.values() ?? []) {
        if (only === undefined || upstream.name === only) upstream.notify(notification)
      }
    },
    touch (live) {
      pool.touch(`session:${live.key}`)
    },
    async release (key) {
      open.delete(`session:${key}`)
      await pool.release(`session:${key}`)
    }
  }
}
