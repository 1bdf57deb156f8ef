// The catalog of an endpoint as the client of one call sees it, for either era. One lookup while nothing changes.

import type { UpstreamName } from '../../protocol/messages.ts'
import type { Client } from '../../protocol/seams.ts'
import { hasCapability } from '../../protocol/translate/merge.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { SessionRecord } from '../../session/session-record.ts'
import { definitionOf, type EndpointContext, isModernCaller, type ModernViewer, quotaKeyOf } from '../call/call.ts'
import { declaredCapabilities, declaredForCaller } from '../client/declared-capabilities.ts'
import type { CatalogCache } from './catalog-cache.ts'
import { capabilitiesOf, type Catalog, legacyCapabilitiesOf, type ListName } from './catalog.ts'
import { remainingTtlMs } from './list-ttl.ts'
import type { Clock } from '../../time/clock.ts'
import type { Listings } from './listings.ts'
import { type ViewKey, viewKeysOf } from './view-key.ts'

export interface ClientCatalogs<C> {
  /** As it is now. */
  of(call: C): Catalog
  /** Waits up to `limits.coldStartMs` for upstreams whose listing is unknown. A call that asks twice waits once. */
  awaitListings(call: C): Promise<void>
  /** Waits as long for lists that may have changed unnoticed. A call that asks twice waits once. */
  revalidate(call: C): Promise<void>
  /** Does the upstream declare the capability at this path? True while its listing is unknown. */
  offers(call: C, upstream: UpstreamName, ...path: readonly string[]): boolean
  /** What decides which listings the client sees; undefined where it sees those of everybody. */
  viewKeyOf(call: C): ViewKey | undefined
}

export interface CallerCatalogs extends ClientCatalogs<ModernViewer> {
  /** For how many milliseconds clients may keep these lists of the endpoint. */
  remainingTtlMs(context: EndpointContext, lists: readonly ListName[]): number
}

/** What a session has declared, which decides which lists its client sees. */
export type DeclaringClient = Pick<SessionRecord, 'owner' | 'revision' | 'capabilities'>

/** A session at its endpoint; without a live session, a client that is about to open one. */
export interface SessionViewer extends EndpointContext {
  readonly session: LiveSession | undefined
  readonly declaring?: DeclaringClient
}

export function createSessionCatalogs(cache: CatalogCache, listings: Listings): ClientCatalogs<SessionViewer> {
  const viewKeys = viewKeysOf(false, (client: DeclaringClient, endpoint) =>
    declaredCapabilities(client, endpoint, 'legacy')
  )
  const viewKeyOf = ({ endpoint, session, declaring }: SessionViewer): ViewKey | undefined => {
    const client = declaring ?? session?.session.record
    return client === undefined ? undefined : viewKeys(client, endpoint, () => quotaKeyOf(client.owner))
  }
  return {
    of: (call) => cache.of(call, call.session, viewKeyOf(call)),
    awaitListings: (call) => cache.awaitListings(call, viewKeyOf(call)),
    revalidate: (call) => cache.revalidate(call),
    offers(call, upstream, ...path) {
      const listing = listings.peek(definitionOf(call, upstream), viewKeyOf(call))
      return listing === undefined || hasCapability(legacyCapabilitiesOf(listing), path)
    },
    viewKeyOf
  }
}

export function createCallerCatalogs(
  cache: CatalogCache,
  listings: Listings,
  clock: Pick<Clock, 'now'>
): CallerCatalogs {
  const viewKeys = viewKeysOf(true, (client: Client, endpoint) => declaredForCaller({ client, endpoint }, 'legacy'))
  const viewKeyOf = (viewer: ModernViewer): ViewKey | undefined =>
    isModernCaller(viewer) ? viewKeys(viewer.client, viewer.endpoint, () => quotaKeyOf(viewer.principal)) : undefined
  return {
    of: (call) => cache.of(call, undefined, viewKeyOf(call)),
    // The door reads the schema of a tool before the relay looks the tool up: the same call waits once.
    awaitListings: oncePerCall((call) => cache.awaitListings(call, viewKeyOf(call))),
    revalidate: oncePerCall((call) => cache.revalidate(call)),
    offers(call, upstream, ...path) {
      const listing = listings.peek(definitionOf(call, upstream), viewKeyOf(call))
      return listing === undefined || hasCapability(capabilitiesOf(listing), path)
    },
    remainingTtlMs(context, lists) {
      const known = cache.definitionsOf(context).map((definition) => listings.peek(definition))
      return remainingTtlMs(known, lists, clock.now())
    },
    viewKeyOf
  }
}

function oncePerCall(wait: (call: ModernViewer) => Promise<void>): (call: ModernViewer) => Promise<void> {
  const waits = new WeakMap<ModernViewer, Promise<void>>()
  return (call) => {
    const known = waits.get(call) ?? wait(call)
    waits.set(call, known)
    return known
  }
}
