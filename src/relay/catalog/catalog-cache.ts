// The catalog of an endpoint as one client sees it: the shared one, that of all clients which declare the same
// capabilities, or a session's own, where its connections reported changes. Built when something has changed, else one
// lookup.

import { LRUCache } from 'lru-cache'
import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { UpstreamName } from '../../protocol/messages.ts'
import type { ListKind, Upstream } from '../../protocol/seams.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { Clock } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import type { EndpointContext } from '../call/call.ts'
import { buildCatalog, type Catalog } from './catalog.ts'
import type { Listings } from './listings.ts'
import { createSessionLists, type OwnListsByUpstream, withOwnLists } from './session-lists.ts'
import type { ViewKey } from './view-key.ts'

export interface CatalogCache {
  /**
   * The endpoint as the session sees it; without a session, as a client does that has no connections of its own yet.
   */
  of(context: EndpointContext, session: LiveSession | undefined, viewKey: ViewKey | undefined): Catalog
  definitionsOf(context: EndpointContext): readonly UpstreamDefinition[]
  /**
   * Waits for upstreams of the endpoint that are not known yet, and for lists that are older than their time, up to
   * `limits.coldStartMs`.
   */
  awaitListings(context: EndpointContext, viewKey: ViewKey | undefined): Promise<void>
  /** Waits for what known upstreams list for these clients, up to `waitMs`. */
  awaitViews(context: EndpointContext, viewKey: ViewKey, waitMs: number): Promise<void>
  /**
   * Something is missing that may be there by now: reads again, once a second at most, and waits as `awaitListings`.
   */
  revalidate(context: EndpointContext): Promise<void>
  /** The session's connection to an upstream reported a change, or ended (`upstream` and `kind` undefined). */
  sessionListChanged(
    session: LiveSession,
    viewKey: ViewKey | undefined,
    definition: UpstreamDefinition,
    upstream: Upstream | undefined,
    kind: ListKind | undefined
  ): void
  /**
   * Does this session see a list of the upstream as its own connection gives it, instead of the shared one? Without a
   * kind: any list.
   */
  hasSessionList(sessionKey: string, hash: string, kind?: ListKind): boolean
  forgetSession(sessionKey: string): void
}

export interface CatalogCacheOptions {
  readonly listings: Pick<
    Listings,
    'peek' | 'version' | 'changeCount' | 'hasOwnView' | 'awaitListings' | 'awaitViews' | 'revalidate' | 'recheckView'
  >
  readonly clock: Clock
  readonly log: Log
}

interface Entry {
  /** `Listings.changeCount` when the entry was last known to be current. */
  readonly changeCount: number
  readonly endpoint: Endpoint
  readonly viewKey: string | undefined
  /** Of the listings that it was built from. */
  readonly versions: readonly number[]
  readonly catalog: Catalog
}

/** Sets of capabilities per endpoint whose catalogs are kept; those of more are built anew for each call. */
const maxViewsPerEndpoint = 32

export function createCatalogCache({ listings, clock, log }: CatalogCacheOptions): CatalogCache {
  const sessionLists = createSessionLists(listings, clock, log)
  const shared = new WeakMap<Endpoint, Entry>()
  const byView = new WeakMap<Endpoint, LRUCache<string, Entry>>()
  const bySession = new WeakMap<OwnListsByUpstream, Entry>()

  // An endpoint belongs to one snapshot, so its members do not change.
  const definitions = new WeakMap<Endpoint, readonly UpstreamDefinition[]>()
  function definitionsOf({ tenant, endpoint }: EndpointContext): readonly UpstreamDefinition[] {
    let known = definitions.get(endpoint)
    if (known === undefined) {
      known = endpoint.members.flatMap(({ upstream }) => tenant.upstreams.get(upstream) ?? [])
      definitions.set(endpoint, known)
    }
    return known
  }

  function build(context: EndpointContext, viewKey: ViewKey | undefined, own: OwnListsByUpstream | undefined): Catalog {
    const { endpoint } = context
    const known = new Map<UpstreamName, Listing>()
    for (const definition of definitionsOf(context)) {
      const listing = withOwnLists(listings.peek(definition, viewKey), own?.get(definition.hash))
      if (listing !== undefined) known.set(definition.name, listing)
    }
    const catalog = buildCatalog(endpoint, known)
    if (catalog.collisions.length > 0) {
      log.warn(
        { tenant: endpoint.tenant, endpoint: endpoint.name, names: catalog.collisions.slice(0, 20) },
        'two upstreams claim the same name: it is offered by the one whose prefix it begins with, ' +
          'else by neither; give one of them another prefix'
      )
    }
    return catalog
  }

  /** The entry, or a new one where a listing of the endpoint has changed. */
  function current(
    entry: Entry | undefined,
    context: EndpointContext,
    viewKey?: ViewKey,
    own?: OwnListsByUpstream
  ): Entry {
    const { endpoint } = context
    const changeCount = listings.changeCount()
    const isSame = entry?.endpoint === endpoint && entry.viewKey === viewKey?.key
    if (isSame && entry.changeCount === changeCount) return entry
    const versions = definitionsOf(context).map((definition) => listings.version(definition, viewKey))
    if (isSame && versions.every((version, at) => version === entry.versions[at])) return { ...entry, changeCount }
    return { changeCount, endpoint, viewKey: viewKey?.key, versions, catalog: build(context, viewKey, own) }
  }

  function sharedEntry(context: EndpointContext): Entry {
    const known = shared.get(context.endpoint)
    const entry = current(known, context)
    if (entry !== known) shared.set(context.endpoint, entry)
    return entry
  }

  function viewEntry(context: EndpointContext, viewKey: ViewKey): Entry {
    const known = byView.get(context.endpoint) ?? new LRUCache<string, Entry>({ max: maxViewsPerEndpoint })
    byView.set(context.endpoint, known)
    let entry = known.get(viewKey.id)
    if (entry?.changeCount === listings.changeCount()) return entry
    const hasOwnView = definitionsOf(context).some((definition) => listings.hasOwnView(definition, viewKey))
    entry = hasOwnView ? current(entry, context, viewKey) : sharedEntry(context)
    known.set(viewKey.id, entry)
    return entry
  }

  return {
    of(context, session, viewKey) {
      const own = session === undefined ? undefined : sessionLists.of(session.key)
      if (own === undefined) return (viewKey === undefined ? sharedEntry(context) : viewEntry(context, viewKey)).catalog
      const entry = current(bySession.get(own), context, viewKey, own)
      bySession.set(own, entry)
      return entry.catalog
    },
    definitionsOf,
    awaitListings: (context, viewKey) =>
      listings.awaitListings(definitionsOf(context), context.snapshot.limits.coldStartMs, viewKey),
    awaitViews: (context, viewKey, waitMs) => listings.awaitViews(definitionsOf(context), waitMs, viewKey),
    revalidate: (context) => listings.revalidate(definitionsOf(context), context.snapshot.limits.coldStartMs),
    sessionListChanged(session, viewKey, definition, upstream, kind) {
      if (kind === undefined) sessionLists.connectionClosed(session, viewKey, definition)
      else if (upstream !== undefined) sessionLists.changed(session, viewKey, definition, upstream, kind)
    },
    hasSessionList(sessionKey, hash, kind) {
      const own = sessionLists.of(sessionKey)?.get(hash)
      return own !== undefined && (kind === undefined || own.parts.has(kind))
    },
    forgetSession: sessionLists.forget
  }
}
