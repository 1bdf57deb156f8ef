// The upstream connections of callers of 2026-07-28. A modern server keeps nothing between requests, so over HTTP one
// connection per credential serves everybody, the listing too. A legacy server may keep state, and a process belongs to
// one person: these get connections per person, unless the operator says that the upstream may be shared.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { MemoryAccount } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import {
  GatewayError,
  isModernRevision,
  type ClientCapabilities,
  type Era,
  type Implementation,
  type Notification,
  type ServerRequest
} from '../../protocol/messages.ts'
import type { ListKind, ServerRequestOptions, Upstream } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { quotaKeyOf, callerScopeOf, listingScopeOf, type ModernCall, type ModernViewer } from '../call/call.ts'
import type { ClientCatalogs } from '../catalog/client-catalogs.ts'
import { createPacedReports } from '../catalog/freshness.ts'
import type { Listings } from '../catalog/listings.ts'
import type { OwnLists } from '../catalog/own-lists.ts'
import { refuseOutsideInputMethods } from '../client/pending-inputs.ts'
import { allowsNoServerRequests, declaredForCaller } from '../client/declared-capabilities.ts'
import { conversationScopeOf } from '../client/modern-client.ts'
import { type AbandonedCalls, createCallSlots } from './call-slots.ts'
import { createConversationLimit } from './conversation-limit.ts'
import type { LogLevels } from './log-level.ts'

/** What happens on callers' own connections outside of calls. */
interface CallerConnectionEvents {
  notification(definition: UpstreamDefinition, scope: string, notification: Notification): void
  /** A server told a conversation of a caller (`conversationScopeOf`) that lists have changed. */
  listsReported(conversation: string, definition: UpstreamDefinition, kinds: readonly ListKind[]): void
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

export type CallerConnections = ReturnType<typeof createCallerConnections>

export function createCallerConnections({
  pool,
  listings,
  catalogs,
  ownLists,
  levels,
  clientInfo,
  clock,
  memory,
  events,
  log
}: {
  readonly pool: Pool
  readonly listings: Listings
  readonly catalogs: ClientCatalogs<ModernViewer>
  readonly ownLists: Pick<OwnLists, 'changed'>
  readonly levels: LogLevels
  readonly clientInfo: Implementation
  readonly clock: Clock
  readonly memory: Pick<MemoryAccount, 'share'>
  readonly events: CallerConnectionEvents
  readonly log: Log
}) {
  const slots = createCallSlots(clock)
  const enterConversation = createConversationLimit(clock)

  /** As the lists that the caller sees were read. */
  const isModernFor = (definition: UpstreamDefinition, call: ModernCall): boolean =>
    isModernRevision(listings.last(definition, catalogs.viewKeyOf(call))?.revision)

  async function open(
    definition: UpstreamDefinition,
    call: ModernCall,
    { scope, isFirst }: { readonly scope: string; readonly isFirst: boolean },
    era: Era,
    capabilities: ClientCapabilities
  ): Promise<Upstream> {
    const { tenant } = definition
    const quotaKey = quotaKeyOf(call.principal)
    const conversation = conversationScopeOf(call)
    const handshake = { clientInfo, era, capabilities, exclusive: true, watchesLists: isFirst, quotaKey }
    const viewKey = catalogs.viewKeyOf(call)
    const tell = (kinds: Iterable<ListKind>): void => events.listsReported(conversation, definition, [...kinds])
    const report = createPacedReports(clock, tell)
    const owner = { key: scope, memory: { share: memory.share(tenant, quotaKey) }, listsChanged: tell }
    let [current, isRetired]: [Upstream | undefined, boolean] = [undefined, false]
    current = await pool.acquire(definition, scope, handshake, {
      // Others have connections of their own, whose lists may be the same as before.
      listChanged(kind, noticedBy) {
        listings.changed(definition, kind, 'gateway')
        // Calls that follow each other use one connection, whose lists are those of the conversation.
        if (isFirst && current !== undefined && !isRetired)
          ownLists.changed(owner, viewKey, definition, current, kind, noticedBy)
        else if (noticedBy === 'server') report(kind)
      },
      retired() {
        isRetired = true
        ownLists.changed(owner, viewKey, definition, undefined, undefined, 'gateway')
      },
      notification: (notification) => events.notification(definition, scope, notification),
      ask: (request, options) => events.ask(current, request, options, () => refuseOutsideInputMethods(request)),
      closed: () => events.lost(definition, scope)
    })
    return current
  }

  async function applyLogLevel(upstream: Upstream, { client }: ModernCall, shared: boolean): Promise<void> {
    if (client.logLevel === undefined || upstream.era === 'modern') return
    await levels.set(upstream, client.logLevel, shared)
  }

  /** @param forCall takes a slot, where the server may ask something; else it is connection 0 */
  async function leaseOwn(definition: UpstreamDefinition, call: ModernCall, forCall: boolean): Promise<Lease> {
    const caller = callerScopeOf(call)
    // A modern server learns from each request what its client can be asked.
    const isModern = isModernFor(definition, call)
    // A server of both eras has more for this caller in the older one.
    const era = !isModern && isModernRevision(listings.last(definition)?.revision) ? 'legacy' : 'modern'
    const declared = isModern ? {} : declaredForCaller(call, 'legacy')
    const callerScope = conversationScopeOf(call, declared)
    // A conversation costs a caller nothing to name and an upstream session to serve, so they are counted.
    const person = quotaKeyOf(call.principal)
    const { sessionsPerPrincipal } = call.snapshot.limits
    const leave = enterConversation(person, callerScope, definition.idleMs, sessionsPerPrincipal)
    let release = leave
    try {
      const slot =
        forCall && !allowsNoServerRequests(declared) ? await slots.enter(definition, caller, callerScope) : undefined
      const isFirst = slot === undefined || slot.number === 0
      const scope = isFirst ? callerScope : `${callerScope}/${slot.number}`
      let opened: Upstream | undefined
      release = () => {
        slot?.leave(opened && abandonedCallsOf(opened, () => !events.needs(definition, scope), log))
        leave()
      }
      // The call may have waited long for its slot.
      if (forCall) refuseCancelled(call)
      // Most calls come by a connection that is open.
      opened = pool.use(definition, scope) ?? (await open(definition, call, { scope, isFirst }, era, declared))
      listings.reached(definition)
      slot?.opened(opened.era === 'modern' || opened.serverRequestsNameCall === true)
      await applyLogLevel(opened, call, false)
      // A lease for a call that is over would never be released.
      if (forCall) refuseCancelled(call)
      return { upstream: opened, scope, waits: (giveUp) => slot?.waits(giveUp), release }
    } catch (error) {
      release()
      throw error
    }
  }

  async function lease(definition: UpstreamDefinition, call: ModernCall, forCall: boolean): Promise<Lease> {
    listings.markUsed(definition)
    if (listings.last(definition) === undefined) await catalogs.awaitListings(call)
    const viewKey = catalogs.viewKeyOf(call)
    // Whether the server has an older era that serves the caller better; asked once.
    if (viewKey !== undefined && isModernRevision(listings.last(definition)?.revision))
      await listings.awaitViews([definition], call.snapshot.limits.coldStartMs, viewKey)
    const isShared = definition.isolation === 'shared'
    // Log messages over stdio name no request: a process is shared only where the operator says so.
    const isModern = isModernFor(definition, call) && definition.type !== 'stdio'
    const upstream = isShared || isModern ? await listings.connect(definition) : undefined
    // It was modern when it was listed. A legacy server may keep state, which belongs to one person.
    if (upstream === undefined || (!isShared && upstream.era !== 'modern')) return leaseOwn(definition, call, forCall)
    await applyLogLevel(upstream, call, true)
    return { upstream, scope: listingScopeOf(definition), waits() {}, release() {} }
  }

  return {
    /**
     * For a listen stream: the connection that calls of the caller which follow each other use, so that it hears what
     * they change.
     * @throws GatewayError upstream_unavailable, too_many, invalid_params (a malformed conversation)
     */
    watch: (definition: UpstreamDefinition, call: ModernCall): Promise<LeasedConnection> =>
      lease(definition, call, false),
    /**
     * For one call, during which a legacy server may ask what the client declared.
     * @throws GatewayError upstream_unavailable, too_many, invalid_params (a malformed conversation), cancelled
     */
    lease: (definition: UpstreamDefinition, call: ModernCall): Promise<Lease> => lease(definition, call, true),
    /** After a reload: forgets what is gone. */
    retain: slots.retain
  }
}

/** @throws GatewayError cancelled */
function refuseCancelled({ signal }: ModernCall): void {
  if (signal.aborted) throw new GatewayError('cancelled', 'The request was cancelled before it was sent.')
}

/**
 * The calls that were given up on a connection: a late server request must not be taken for one of the next call's.
 * @param isUnused may it be closed?
 */
function abandonedCallsOf(upstream: Upstream, isUnused: () => boolean, log: Log): AbandonedCalls | undefined {
  const answered = upstream.abandonedCalls?.()
  if (answered === undefined) return undefined
  const close = (): boolean => {
    if (!isUnused()) return false
    upstream
      .close()
      .catch((err: unknown) => log.debug({ err, upstream: upstream.name }, 'an unused connection did not close'))
    return true
  }
  return { answered, close }
}
