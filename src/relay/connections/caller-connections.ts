// The upstream connections of callers of 2026-07-28. A modern server keeps nothing between requests, so over HTTP one
// connection per credential serves everybody, the listing too. A legacy server may keep state, and a process belongs to
// one person: these get connections per person, unless the operator says that the upstream may be shared.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError } from '../../protocol/errors.ts'
import type { ClientCapabilities, Implementation, Notification, ServerRequest } from '../../protocol/messages.ts'
import { isModernRevision } from '../../protocol/revisions.ts'
import type { ServerRequestOptions, Upstream, UpstreamEvents } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { callerBindingOf, quotaKeyOf, type ModernCall, type ModernViewer } from '../call/call.ts'
import { callerScopeOf, listingScopeOf, slotScopeOf } from '../call/scopes.ts'
import type { ClientCatalogs } from '../catalog/client-catalogs.ts'
import type { Listings } from '../catalog/listings.ts'
import { refuseOutsideInputMethods } from '../client/input-responses.ts'
import { allowsNoServerRequests, declaredForCaller } from '../client/declared-capabilities.ts'
import { conversationOf } from '../client/request-meta.ts'
import { createCallSlots, type AbandonedCalls } from './call-slots.ts'
import { createConversationLimit } from './conversation-limit.ts'
import type { LogLevels } from './log-level.ts'

export interface CallerConnectionsOptions {
  readonly pool: Pool
  readonly listings: Listings
  readonly catalogs: ClientCatalogs<ModernViewer>
  readonly levels: LogLevels
  readonly clientInfo: Implementation
  readonly clock: Clock
  readonly events: CallerConnectionEvents
  readonly log: Log
}

/** What happens on callers' own connections outside of calls. */
export interface CallerConnectionEvents {
  notification(definition: UpstreamDefinition, scope: string, notification: Notification): void
  /** A server request that names no call: somebody's, or `otherwise`. */
  ask(
    upstream: Upstream | undefined,
    request: ServerRequest,
    options: ServerRequestOptions | undefined,
    otherwise: () => Promise<unknown>
  ): Promise<unknown>
  lost(definition: UpstreamDefinition, scope: string): void
  /** Is the connection in use although no call runs on it? */
  needs(definition: UpstreamDefinition, scope: string): boolean
}

/** The connections of a scope, one after the other; `upstream` is the open one. */
export interface LeasedConnection {
  readonly upstream: Upstream
  readonly scope: string
  /** Idempotent. */
  release(): void
}

/** A connection for one call. */
export interface Lease extends LeasedConnection {
  /**
   * The call waits for its client from now on; `undefined`: it waits no more.
   * @param giveUp ends the call when a newer call of the caller needs the connection
   */
  waits(giveUp: (() => void) | undefined): void
}

export interface CallerConnections {
  /**
   * For a listen stream: the connection that calls of the caller use first, so that it hears what they change.
   * @throws GatewayError upstream_unavailable, too_many, invalid_params (a malformed conversation)
   */
  watch(definition: UpstreamDefinition, call: ModernCall): Promise<LeasedConnection>
  /**
   * For one call, during which a legacy server may ask what the client declared.
   * @throws GatewayError upstream_unavailable, too_many, invalid_params (a malformed conversation), cancelled
   */
  lease(definition: UpstreamDefinition, call: ModernCall): Promise<Lease>
  /** After a reload: forgets what is gone. */
  retain(hashes: ReadonlySet<string>): void
}

export function createCallerConnections(options: CallerConnectionsOptions): CallerConnections {
  const { pool, listings, catalogs, levels, clientInfo, clock, events, log } = options
  const slots = createCallSlots(clock)
  const conversations = createConversationLimit(clock)

  const upstreamEvents = (
    definition: UpstreamDefinition,
    scope: string,
    current: () => Upstream | undefined
  ): UpstreamEvents => ({
    listChanged: (kind) => listings.changed(definition, kind),
    notification: (notification) => events.notification(definition, scope, notification),
    ask: (request, askOptions) => events.ask(current(), request, askOptions, () => refuseOutsideInputMethods(request)),
    closed({ message: reason }) {
      events.lost(definition, scope)
      log.warn(
        { upstream: definition.name, tenant: definition.tenant, reason },
        'upstream connection of a caller ended'
      )
    }
  })

  async function open(
    definition: UpstreamDefinition,
    { principal }: ModernCall,
    scope: string,
    capabilities: ClientCapabilities
  ): Promise<Upstream> {
    let current: Upstream | undefined
    const quotaKey = quotaKeyOf(principal)
    const handshake = { clientInfo, era: 'modern' as const, capabilities, exclusive: true, quotaKey }
    const connectionEvents = upstreamEvents(definition, scope, () => current)
    return (current = await pool.acquire(definition, scope, handshake, connectionEvents))
  }

  async function applyLogLevel(upstream: Upstream, { client }: ModernCall, shared: boolean): Promise<void> {
    if (client.logLevel === undefined || upstream.era === 'modern') return
    await levels.set(upstream, client.logLevel, shared)
  }

  /** The scope of the caller's own connections, and the capabilities that they declare. */
  function ownScopeOf(
    definition: UpstreamDefinition,
    call: ModernCall
  ): { readonly scope: string; readonly declared: ClientCapabilities } {
    // A modern server learns from each request what its client can be asked.
    const isModern = isModernRevision(listings.peek(definition)?.revision)
    const declared = isModern ? {} : declaredForCaller(call, 'legacy')
    const parts = Object.keys(declared).length === 0 ? [] : [declared]
    return { declared, scope: callerScopeOf(callerBindingOf(call), conversationOf(call), ...parts) }
  }

  /** A conversation costs a caller nothing to name and an upstream session to serve, so they are counted. */
  const enterConversation = ({ idleMs }: UpstreamDefinition, call: ModernCall, scope: string): (() => void) =>
    conversations.enter(callerScopeOf(callerBindingOf(call)), scope, idleMs, call.snapshot.limits.sessionsPerPrincipal)
      .leave

  /**
   * Connection 0 of the caller, which calls use that follow each other. It takes no slot, for nothing is asked on it.
   */
  async function watchOwn(definition: UpstreamDefinition, call: ModernCall): Promise<LeasedConnection> {
    const { scope, declared } = ownScopeOf(definition, call)
    const release = enterConversation(definition, call, scope)
    try {
      const upstream = await open(definition, call, scope, declared)
      await applyLogLevel(upstream, call, false)
      return { upstream, scope, release }
    } catch (error) {
      release()
      throw error
    }
  }

  /**
   * The calls that were given up on a connection: a late server request must not be taken for one of the next call's.
   */
  function abandonedCallsOf(
    definition: UpstreamDefinition,
    scope: string,
    upstream: Upstream | undefined
  ): AbandonedCalls | undefined {
    const answered = upstream?.abandonedCalls?.()
    if (upstream === undefined || answered === undefined) return undefined
    const close = (): boolean => {
      if (events.needs(definition, scope)) return false
      upstream
        .close()
        .catch((err: unknown) => log.debug({ err, upstream: definition.name }, 'an unused connection did not close'))
      return true
    }
    return { answered, close }
  }

  async function leaseOwn(definition: UpstreamDefinition, call: ModernCall): Promise<Lease> {
    const { scope: callerScope, declared } = ownScopeOf(definition, call)
    const leave = enterConversation(definition, call, callerScope)
    let release = leave
    try {
      const slot = allowsNoServerRequests(declared)
        ? undefined
        : await slots.enter(definition, callerScopeOf(callerBindingOf(call)), callerScope)
      const scope = slotScopeOf(callerScope, slot?.number ?? 0)
      let opened: Upstream | undefined
      release = () => {
        slot?.leave(abandonedCallsOf(definition, scope, opened))
        leave()
      }
      // The call may have waited long for its slot.
      refuseCancelled(call)
      opened = await open(definition, call, scope, declared)
      slot?.opened(opened.era === 'modern' || opened.serverRequestsNameCall === true)
      await applyLogLevel(opened, call, false)
      // A lease for a call that is over would never be released.
      refuseCancelled(call)
      return { upstream: opened, scope, waits: (giveUp) => slot?.waits(giveUp), release }
    } catch (error) {
      release()
      throw error
    }
  }

  /** The connection that everybody uses, where there is one. */
  async function commonOf(definition: UpstreamDefinition, call: ModernCall): Promise<Lease | undefined> {
    listings.markUsed(definition)
    if (listings.peek(definition) === undefined) await catalogs.awaitListings(call)
    const isShared = definition.isolation === 'shared'
    // Log messages over stdio name no request: a process is shared only where the operator says so.
    const isModern = isModernRevision(listings.peek(definition)?.revision) && definition.type !== 'stdio'
    if (!isShared && !isModern) return undefined
    const upstream = await listings.connect(definition)
    // It was modern when it was listed. A legacy server may keep state, which belongs to one person.
    if (!isShared && upstream.era !== 'modern') return undefined
    await applyLogLevel(upstream, call, true)
    return { upstream, scope: listingScopeOf(definition), waits() {}, release() {} }
  }

  return {
    watch: async (definition, call) => (await commonOf(definition, call)) ?? (await watchOwn(definition, call)),
    lease: async (definition, call) => (await commonOf(definition, call)) ?? (await leaseOwn(definition, call)),
    retain: slots.retain
  }
}

/** @throws GatewayError cancelled */
function refuseCancelled({ signal }: ModernCall): void {
  if (signal.aborted) throw new GatewayError('cancelled', 'The request was cancelled before it was sent.')
}
