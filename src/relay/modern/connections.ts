// Which connection serves a modern call. A modern server keeps nothing between requests, so over HTTP one connection per credential serves
// everybody, the listing too. A legacy one may keep state, and a process is one of a person's own: these get connections per person, unless
// the operator says that it may be shared.

import { hash } from 'node:crypto'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { canonical } from '../../protocol/canonical.ts'
import { GatewayError } from '../../protocol/errors.ts'
import type { ClientCapabilities, Implementation, Notification, ServerRequest } from '../../protocol/messages.ts'
import { isModernRevision } from '../../protocol/revisions.ts'
import type { AskOptions, Upstream, UpstreamEvents } from '../../protocol/seams.ts'
import type { Pool } from '../../upstream/pool.ts'
import type { ModernCall, Place } from '../call.ts'
import type { Levels } from '../levels.ts'
import { listingScope } from '../listings.ts'
import type { Listings } from '../listings.ts'
import type { PaceClock } from '../pace.ts'
import { shareOf } from '../share.ts'
import { conversationOf, createConversations } from './conversations.ts'
import { createLanes } from './lanes.ts'
import type { Debt } from './lanes.ts'
import { nobodyAsked } from './questions.ts'
import { asksNothing, profileOf } from './profile.ts'
import { bindingOf } from './task-ids.ts'

export interface ModernConnectionsOptions {
  readonly pool: Pool
  readonly listings: Listings
  readonly levels: Levels
  /** Waits for upstreams of the endpoint that are not known yet. */
  readonly settled: (place: Place) => Promise<void>
  readonly clientInfo: Implementation
  readonly clock: PaceClock
  /** What connections of callers say that is about no call. Default: nobody listens. */
  readonly heard?: Heard | undefined
  readonly log: Log
}

export interface Heard {
  notification (definition: UpstreamDefinition, scope: string, notification: Notification): void
  /** A question on a connection that names no call: somebody's, or `otherwise`. */
  ask (upstream: Upstream | undefined, request: ServerRequest, options: AskOptions | undefined, otherwise: () => Promise<unknown>): Promise<unknown>
  lost (definition: UpstreamDefinition, scope: string): void
  /** Would somebody miss the connection although no call runs on it? */
  needs (definition: UpstreamDefinition, scope: string): boolean
}

export interface Connection {
  readonly upstream: Upstream
  /** As the pool knows the connection and those after it. */
  readonly scope: string
  /** Nobody uses it any more for what it was taken for. Idempotent. */
  release (): void
}

/** A connection for one call. */
export interface Lease extends Connection {
  /** The call waits for its client, and gives up when a newer one of its caller needs the connection; `undefined`: it waits no more. */
  waits (giveUp: (() => void) | undefined): void
}

export interface ModernConnections {
  /**
   * For a listen stream, for as long as it uses the connection: a legacy server is declared no capability here, since nobody can be asked.
   * @throws GatewayError upstream_unavailable, too_many, invalid_params (a conversation that is none)
   */
  watch (definition: UpstreamDefinition, call: ModernCall): Promise<Connection>
  /**
   * For one call, during which a legacy server may ask what the client declared.
   * @throws GatewayError upstream_unavailable, too_many, invalid_params (a conversation that is none), cancelled
   */
  lease (definition: UpstreamDefinition, call: ModernCall): Promise<Lease>
  /** A reload: forgets what is gone. */
  retain (hashes: ReadonlySet<string>): void
}

export function createModernConnections ({ pool, listings, levels, settled, clientInfo, clock, heard, log }: ModernConnectionsOptions): ModernConnections {
  const lanes = createLanes(clock)
  const conversations = createConversations(clock)

  const eventsOf = (definition: UpstreamDefinition, scope: string, current: () => Upstream | undefined): UpstreamEvents => ({
    listChanged: (kind) => listings.changed(definition, kind),
    notification: (notification) => heard?.notification(definition, scope, notification),
    ask: (request, options) => heard?.ask(current(), request, options, () => nobodyAsked(request)) ?? nobodyAsked(request),
    closed (reason) {
      heard?.lost(definition, scope)
      log.warn({ upstream: definition.name, tenant: definition.tenant, reason: reason.message }, 'upstream connection of a caller ended')
    }
  })

  async function open (definition: UpstreamDefinition, { principal }: ModernCall, scope: string, capabilities: ClientCapabilities): Promise<Upstream> {
    let current: Upstream | undefined
    return current = await pool.acquire(definition, scope, { clientInfo, era: 'modern', capabilities, exclusive: true, share: shareOf(principal) }, eventsOf(definition, scope, () => current))
  }

  // The clients of one person's legacy sessions have declared other things, and may be asked in other ways.
  const scopeOf = (...parts: readonly unknown[]): string => `caller:${hash('sha256', canonical(parts), 'base64url')}`

  /** A name costs a caller nothing to invent, and an upstream session to serve: whatever opens one counts. */
  const enter = ({ idleMs }: UpstreamDefinition, call: ModernCall, scope: string): { leave (): void } =>
    conversations.enter(scopeOf(bindingOf(call)), scope, idleMs, call.snapshot.limits.sessionsPerPrincipal)

  /** The caller's own connections, and what they are declared. */
  function setOf (definition: UpstreamDefinition, call: ModernCall): { readonly scope: string, readonly profile: ClientCapabilities } {
    // A modern server hears with each request what its client can be asked.
    const profile = isModernRevision(listings.peek(definition)?.revision) ? {} : profileOf(call.client.capabilities, call.endpoint)
    return { profile, scope: scopeOf(bindingOf(call), conversationOf(call), ...Object.keys(profile).length === 0 ? [] : [profile]) }
  }

  /** The first of them, which calls use that follow each other: what they change there is told there. It takes no lane, for it is asked nothing. */
  async function own (definition: UpstreamDefinition, call: ModernCall): Promise<Connection> {
    const { scope, profile } = setOf(definition, call)
    const { leave: release } = enter(definition, call, scope)
    try {
      return { scope, release, upstream: await speaking(await open(definition, call, scope, profile), call, false) }
    } catch (error) {
      release()
      throw error
    }
  }

  /** What the last call has left behind on its lane: a question that comes late must not be taken for one of the next call's. */
  function debtOf (definition: UpstreamDefinition, scope: string, upstream: Upstream | undefined): Debt | undefined {
    const paid = upstream?.owed?.()
    if (upstream === undefined || paid === undefined) return undefined
    const close = (): boolean => {
      if (heard?.needs(definition, scope) === true) return false
      upstream.close().catch((err: unknown) => log.debug({ err, upstream: definition.name }, 'a connection that was left could not be closed'))
      return true
    }
    return { paid, close }
  }

  async function ownLane (definition: UpstreamDefinition, call: ModernCall): Promise<Lease> {
    const { scope, profile } = setOf(definition, call)
    const visit = enter(definition, call, scope)
    const lane = await (asksNothing(profile) ? undefined : lanes.enter(definition, scopeOf(bindingOf(call)), scope))?.catch((error: unknown) => {
      visit.leave()
      throw error
    })
    const scopeOfLane = lane === undefined || lane.number === 0 ? scope : `${scope}/${lane.number}`
    let opened: Upstream | undefined
    const release = (): void => {
      lane?.leave(debtOf(definition, scopeOfLane, opened))
      visit.leave()
    }
    try {
      // It may have waited long for its lane.
      if (call.signal.aborted) throw new GatewayError('cancelled', 'The request was cancelled before it was sent.')
      const upstream = opened = await open(definition, call, scopeOfLane, profile)
      lane?.opened(upstream.era === 'modern' || upstream.namesCalls === true)
      await speaking(upstream, call, false)
      // Nobody waits for the lease any more, and nobody would release it.
      if (call.signal.aborted) throw new GatewayError('cancelled', 'The request was cancelled before it was sent.')
      return { upstream, scope: scopeOfLane, waits: (giveUp) => lane?.waits(giveUp), release }
    } catch (error) {
      release()
      throw error
    }
  }

  async function speaking (upstream: Upstream, { client }: ModernCall, shared: boolean): Promise<Upstream> {
    if (client.logLevel !== undefined && upstream.era === 'legacy') await levels.set(upstream, client.logLevel, shared)
    return upstream
  }

  /** The connection that everybody uses, where there is one. */
  async function common (definition: UpstreamDefinition, call: ModernCall): Promise<Upstream | undefined> {
    listings.use(definition)
    let listing = listings.peek(definition)
    if (listing === undefined) {
      await settled(call)
      listing = listings.peek(definition)
    }
    if (definition.isolation === 'shared') return await speaking(await listings.connect(definition), call, true)
    // What a process says of itself over stdio names no request: nobody shares one unless the operator says so.
    if (listing === undefined || !isModernRevision(listing.revision) || definition.type === 'stdio') return undefined
    const upstream = await listings.connect(definition)
    // It was modern when it was listed: state that it may keep by now belongs to one person.
    return upstream.era === 'modern' ? upstream : undefined
  }

  return {
    async watch (definition, call) {
      const upstream = await common(definition, call)
      return upstream === undefined ? await own(definition, call) : { upstream, scope: listingScope(definition), release () {} }
    },
    async lease (definition, call) {
      const upstream = await common(definition, call)
      return upstream === undefined ? await ownLane(definition, call) : { upstream, scope: listingScope(definition), waits () {}, release () {} }
    },
    retain: lanes.retain
  }
}
