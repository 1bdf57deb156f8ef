// Which upstream connection serves a call: one per session, per principal, or shared, as the upstream's isolation says. A connection
// never serves two of what it is isolated by.

import { hash } from 'node:crypto'
import type { Principal } from '../auth/principal.ts'
import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { LogLevel } from '../protocol/levels.ts'
import { moreVerbose } from '../protocol/levels.ts'
import { isObject } from '../protocol/messages.ts'
import type { Notification } from '../protocol/messages.ts'
import type { Handshake, ListKind, Upstream, UpstreamEvents } from '../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../session/live.ts'
import type { Pool } from '../upstream/pool.ts'
import type { Listings } from './listings.ts'
import { listingScope } from './listings.ts'

export interface ConnectionsOptions {
  readonly pool: Pool
  readonly live: LiveSessions
  readonly listings: Listings
  readonly handshake: Handshake
  readonly log: Log
  /** A session's own connection reported that a list changed; `upstream` is undefined when it ended and its own view with it. */
  readonly onOwnChange: (live: LiveSession, definition: UpstreamDefinition, upstream: Upstream | undefined, kind: ListKind | undefined) => void
  /** A log message that belongs to no call in flight, from a connection that is this session's alone. */
  readonly onOwnLog: (live: LiveSession, definition: UpstreamDefinition, notification: Notification) => void
}

export interface Connections {
  /** @throws GatewayError upstream_unavailable, too_many */
  acquire (definition: UpstreamDefinition, principal: Principal, live: LiveSession): Promise<Upstream>
  /** Passes a new log level on to the connections that this session has open already. */
  setLogLevel (live: LiveSession, level: LogLevel): Promise<void>
  /** Keeps a listening client's connections from being closed as idle. */
  touch (live: LiveSession): void
  release (sessionKey: string): Promise<void>
}

export function createConnections ({ pool, live: sessions, listings, handshake, log, onOwnChange, onOwnLog }: ConnectionsOptions): Connections {
  const levels = new WeakMap<Upstream, LogLevel>()
  // Scope of a session -> hash of the definition -> the newest connection.
  const open = new Map<string, Map<string, Upstream>>()

  const scopeOf = (definition: UpstreamDefinition, principal: Principal, live: LiveSession): string => {
    if (definition.isolation === 'session') return `session:${live.key}`
    if (definition.isolation === 'shared') return listingScope(definition)
    const who = JSON.stringify([principal.tenant, principal.issuer, principal.subject, principal.clientId])
    return `principal:${hash('sha256', who, 'base64url')}`
  }

  function eventsOf (definition: UpstreamDefinition, scope: string, live: LiveSession, current: () => Upstream | undefined): UpstreamEvents {
    if (definition.isolation !== 'session') {
      return {
        listChanged: (kind) => listings.changed(definition, kind),
        notification: () => {}, // A log message of a connection that several sessions use belongs to none of them.
        closed: (reason) => log.warn({ upstream: definition.name, tenant: definition.tenant, reason: reason.message }, 'upstream connection ended')
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
        if (session !== undefined) onOwnLog(session, definition, notification)
      },
      closed (reason) {
        if (open.get(scope)?.get(definition.hash) === current()) open.get(scope)?.delete(definition.hash)
        log.warn({ upstream: definition.name, tenant: definition.tenant, reason: reason.message }, 'upstream connection of a session ended')
        const session = own()
        if (session !== undefined) onOwnChange(session, definition, undefined, undefined)
      }
    }
  }

  async function level (upstream: Upstream, wanted: LogLevel | undefined, shared: boolean): Promise<void> {
    if (wanted === undefined || !isObject(upstream.capabilities['logging'])) return
    const current = levels.get(upstream)
    // Others may use it too: it says as much as the most curious of them wants, and each client's own filter does the rest.
    const next = shared && current !== undefined ? moreVerbose(current, wanted) : wanted
    if (next === current) return
    levels.set(upstream, next)
    await upstream.request({ method: 'logging/setLevel', params: { level: next } }, nobody, AbortSignal.timeout(5_000)).catch((err: unknown) => {
      levels.delete(upstream)
      log.warn({ err, upstream: upstream.name }, 'the upstream did not take the log level; its messages are filtered here')
    })
  }

  return {
    async acquire (definition, principal, live) {
      const scope = scopeOf(definition, principal, live)
      let current: Upstream | undefined
      const upstream = current = await pool.acquire(definition, scope, handshake, eventsOf(definition, scope, live, () => current))
      if (definition.isolation === 'session') {
        // The session ended while we connected: nobody would close it.
        if (sessions.get(live.key) === undefined) await pool.release(scope)
        else open.set(scope, (open.get(scope) ?? new Map<string, Upstream>()).set(definition.hash, upstream))
      }
      if (live.session.record.logLevel !== undefined) await level(upstream, live.session.record.logLevel, definition.isolation !== 'session')
      return upstream
    },
    async setLogLevel (live, wanted) {
      // Connections that others use too are told when a call of this session next uses them.
      const own = open.get(`session:${live.key}`)?.values() ?? []
      await Promise.all([...own].map((upstream) => level(upstream, wanted, false)))
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

const nobody = {
  era: 'legacy',
  capabilities: {},
  notify: () => {},
  ask: async () => { throw new Error('nobody is asked on behalf of the gateway itself') }
} as const
