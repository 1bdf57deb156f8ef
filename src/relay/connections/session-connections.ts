// The upstream connections of sessions: one per session, per principal, or shared, as the isolation of the upstream
// says.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import {
  type Implementation,
  isModernRevision,
  type Notification,
  type ServerRequest,
  type UpstreamName
} from '../../protocol/messages.ts'
import {
  noClient,
  type HandshakeParams,
  type ListKind,
  type LogLevel,
  type NoticedBy,
  type ServerRequestOptions,
  type Upstream
} from '../../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { quotaKeyOf, scopeOf, sessionScopeOf, type EndpointContext } from '../call/call.ts'
import type { Listings, SharedConnectionEvents } from '../catalog/listings.ts'
import { declaredAtHandshake } from '../client/declared-capabilities.ts'
import type { KeptSessions } from './kept-sessions.ts'
import type { LentSessions } from './lent-sessions.ts'
import type { LogLevels } from './log-level.ts'

/** An open connection, and those that come after it in its scope. */
export interface SessionConnection {
  readonly upstream: Upstream
  readonly definition: UpstreamDefinition
  readonly scope: string
}

/** What happens on connections outside of calls. None of these throws. */
export interface SessionConnectionEvents extends SharedConnectionEvents {
  /** A connection is used by a call; it may be another one than the last time. */
  opened(connection: SessionConnection): void
  /**
   * On a session's own connection.
   * @param isContinued another process may have subscribed to what it is about
   */
  notification(
    session: LiveSession,
    definition: UpstreamDefinition,
    notification: Notification,
    isContinued: boolean
  ): void
  /**
   * A session's own connection reported a change of a list; `upstream` undefined: it ended, and its own lists with it.
   */
  listChanged(
    session: LiveSession,
    definition: UpstreamDefinition,
    upstream: Upstream | undefined,
    kind: ListKind | undefined,
    noticedBy: NoticedBy
  ): void
  /** A server request on a session's own connection that belongs to no call. */
  serverRequest(
    session: LiveSession,
    definition: UpstreamDefinition,
    request: ServerRequest,
    options: ServerRequestOptions | undefined
  ): Promise<unknown>
}

export type SessionConnections = ReturnType<typeof createSessionConnections>

export interface SessionConnectionsParts {
  readonly pool: Pool
  readonly live: LiveSessions
  readonly listings: Listings
  readonly levels: LogLevels
  readonly kept: KeptSessions
  readonly lent: Pick<LentSessions, 'overheard'>
  readonly clientInfo: Implementation
  readonly events: SessionConnectionEvents
}

export function createSessionConnections(parts: SessionConnectionsParts) {
  const { pool, live, listings, levels, kept, lent, clientInfo, events } = parts
  // Key of a session -> hash of the definition -> the newest connection.
  const open = new Map<string, Map<string, Upstream>>()

  async function acquire(
    definition: UpstreamDefinition,
    scope: string,
    context: EndpointContext,
    client: LiveSession
  ): Promise<Upstream> {
    const {
      key,
      session: { record }
    } = client
    // A shared connection is opened by whoever comes first, so everybody opens it in the same way.
    if (definition.isolation === 'shared') return await listings.connect(definition)
    let current: Upstream | undefined
    const own = definition.isolation === 'session'
    // Where sessions share it, clients can be asked in the modern era only, in which each request says what its client
    // declares. A process keeps its state in either era; over HTTP the older one has a session for it.
    const isModern = !own && definition.type === 'stdio' && isModernRevision(listings.last(definition)?.revision)
    const handshake: HandshakeParams = {
      clientInfo,
      era: isModern ? 'modern' : 'legacy',
      capabilities: declaredAtHandshake(definition, context.endpoint, record),
      watchesLists: own || isModern,
      quotaKey: quotaKeyOf(record.owner),
      place: kept.placeOf(definition, context, client)
    }
    /** The session whose own connection it is. One that has ended hears nothing any more. */
    const session = (): LiveSession | undefined => (own ? live.get(key) : undefined)
    current = await pool.acquire(definition, scope, handshake, {
      listChanged(kind, noticedBy) {
        const owner = session()
        if (owner !== undefined) events.listChanged(owner, definition, current, kind, noticedBy)
        else if (!own) listings.changed(definition, kind, noticedBy)
      },
      notification(notification) {
        const owner = session()
        if (owner !== undefined) events.notification(owner, definition, notification, current?.isContinued === true)
        else if (!own) events.sharedNotification(definition, scope, notification)
      },
      async ask(request, options) {
        const owner = session()
        // A connection that others use too declares nothing that could be asked.
        if (owner === undefined) return await noClient.ask(request)
        return await events.serverRequest(owner, definition, request, options)
      },
      overheard: (message) => lent.overheard(session(), definition.hash, current?.sharing, message),
      closed() {
        const { hash } = definition
        if (own && open.get(key)?.get(hash) === current) open.get(key)?.delete(hash)
        const owner = session()
        if (owner !== undefined) events.listChanged(owner, definition, undefined, undefined, 'gateway')
        events.lost(definition, scope)
      }
    })
    listings.reached(definition)
    if (own) listings.sessionless.seen(definition, current)
    if (current.hasSession === true) listings.spokeOlder(definition)
    if (!own) return current
    // The session ended while we connected: nobody would close the connection.
    if (live.get(key) === undefined) await pool.release(scope)
    else open.set(key, (open.get(key) ?? new Map<string, Upstream>()).set(definition.hash, current))
    return current
  }

  return {
    /** The connection that serves the session, where it is open and needs nothing first. */
    ready(definition: UpstreamDefinition, session: LiveSession): SessionConnection | undefined {
      if (session.session.record.logLevel !== undefined) return undefined
      const scope = scopeOf(definition, session)
      const upstream = pool.use(definition, scope)
      if (upstream === undefined) return undefined
      const connection = { upstream, definition, scope }
      events.opened(connection)
      kept.used(session, definition.hash)
      return connection
    },
    /** @throws GatewayError upstream_unavailable, too_many */
    async lease(
      definition: UpstreamDefinition,
      context: EndpointContext,
      session: LiveSession
    ): Promise<SessionConnection> {
      const scope = scopeOf(definition, session)
      const upstream = await acquire(definition, scope, context, session)
      const connection = { upstream, definition, scope }
      events.opened(connection)
      kept.used(session, definition.hash)
      const { logLevel } = session.session.record
      if (logLevel !== undefined) await levels.set(upstream, logLevel, definition.isolation !== 'session')
      return connection
    },
    /**
     * Passes a new log level on to the session's own open connections; shared ones hear of it with the session's next
     * call.
     */
    async setLogLevel({ key }: LiveSession, level: LogLevel) {
      const own = open.get(key)?.values() ?? []
      await Promise.all([...own].map((upstream) => levels.set(upstream, level, false)))
    },
    /** To the session's own connections, or to that of one upstream. */
    notify({ key }: LiveSession, notification: Notification, only?: UpstreamName) {
      for (const upstream of open.get(key)?.values() ?? []) {
        if (only === undefined || upstream.name === only) upstream.notify(notification)
      }
    },
    /** The session's own connection, which other processes use, too. */
    find(session: LiveSession, hash: UpstreamDefinition['hash']): Upstream | undefined {
      kept.used(session, hash)
      return open.get(session.key)?.get(hash)
    },
    /** Keeps a listening client's connections from being closed as idle. */
    touch(session: LiveSession): void {
      pool.touch(sessionScopeOf(session.key))
      for (const hash of open.get(session.key)?.keys() ?? []) kept.used(session, hash)
    },
    /** Does this process have connections of the session's own? Those without a session may be at every process. */
    has: (key: string): boolean => [...(open.get(key)?.values() ?? [])].some(({ hasSession }) => hasSession !== false),
    /** The session lives at another process now: lets go of the upstream sessions that it goes on with. */
    leave: (key: string): void => pool.leave(sessionScopeOf(key)),
    /** Closes the session's own connections. */
    async release(key: string) {
      open.delete(key)
      await pool.release(sessionScopeOf(key))
    }
  }
}
