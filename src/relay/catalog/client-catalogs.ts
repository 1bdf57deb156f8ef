// The catalog of an endpoint as one client sees it: the shared one, that of all who declare the same capabilities, or a
// session's own, where its connections reported changes.

import { LRUCache } from 'lru-cache'
import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { canonicalJsonOf } from '../../protocol/json-text.ts'
import type { ClientCapabilities, JsonObject, ServerCapabilities, UpstreamName } from '../../protocol/messages.ts'
import { hasCapability } from '../../protocol/methods.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { SessionRecord } from '../../session/session-record.ts'
import { type Clock, settledWithin } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { definitionOf, type EndpointContext, isModernCaller, type ModernViewer, quotaKeyOf } from '../call/call.ts'
import { declaredCapabilities, declaredForCaller } from '../client/declared-capabilities.ts'
import { createCallerLists } from './caller-lists.ts'
import { buildCatalog, capabilitiesOf, type Catalog, legacyCapabilitiesOf, type ListName } from './catalog.ts'
import { remainingDiscoveryMs, remainingTtlMs } from './freshness.ts'
import type { Listings, ListingSource } from './listings.ts'
import { type OwnLists, type OwnListsByUpstream, withOwnLists } from './own-lists.ts'
import { reportNames } from './public-names.ts'
import type { ViewKey } from './view.ts'
import { createVisibleCatalogs, type Viewer } from './visible.ts'

export interface ClientCatalogs<C> {
  of(call: C): Catalog
  /** Waits up to `limits.coldStartMs` for upstreams whose listing is unknown, and for lists that are too old. */
  awaitListings(call: C): Promise<void>
  /** Something is missing: waits as long for lists that may have changed unseen, read once a second at most. */
  revalidate(call: C): Promise<void>
  /** Does the upstream declare the capability at this path? True while its listing is unknown. */
  offers(call: C, upstream: UpstreamName, ...path: readonly string[]): boolean
  /** Returns the key of the views that the client sees; undefined where it sees the shared listings. */
  viewKeyOf(call: C): ViewKey | undefined
}

export type DeclaringClient = Pick<SessionRecord, 'owner' | 'revision' | 'capabilities'>

/** A session at its endpoint; without a live session, a client that is about to open one. */
export interface SessionViewer extends Viewer {
  readonly session: LiveSession | undefined
  readonly declaring?: DeclaringClient
}

interface Entry {
  /** `Listings.changeCount` when the entry was last known to be current. */
  readonly changeCount: number
  readonly endpoint: Endpoint
  readonly viewKey: string | undefined
  /** The versions of the listings that the catalog was built from. */
  readonly versions: readonly number[]
  readonly catalog: Catalog
}

export type CatalogCache = ReturnType<typeof createCatalogCache>
export type CallerCatalogs = ReturnType<typeof createCallerCatalogs>

/** Beyond it, catalogs are built anew for each call. */
const maxViewsPerEndpoint = 32
// A server that looks at more than this has no view for it.
const maxKeyLength = 2_048

export const definitionsOf = ({ tenant, endpoint }: EndpointContext): UpstreamDefinition[] =>
  endpoint.members.flatMap(({ upstream }) => tenant.upstreams.get(upstream) ?? [])

/** @returns the catalog, built anew only where a listing of the endpoint has changed */
export function createCatalogCache(listings: ListingSource, log: Log) {
  const shared = new WeakMap<Endpoint, Entry>()
  const byView = new WeakMap<Endpoint, LRUCache<string, Entry>>()
  const bySession = new WeakMap<OwnListsByUpstream, Entry>()
  const visible = createVisibleCatalogs()

  function build(context: EndpointContext, viewKey: ViewKey | undefined, own: OwnListsByUpstream | undefined): Catalog {
    const { endpoint } = context
    listings.catalogs.misses++
    const known = new Map<UpstreamName, Listing>()
    const away = new Map<UpstreamName, Listing>()
    for (const definition of definitionsOf(context)) {
      const last = listings.last(definition, viewKey)
      const listing = withOwnLists(listings.peek(definition, viewKey), own?.get(definition.hash), last)
      if (listing !== undefined) known.set(definition.name, listing)
      else if (last !== undefined) away.set(definition.name, last)
    }
    const catalog = buildCatalog(endpoint, known, away)
    reportNames(endpoint, catalog, log)
    return catalog
  }

  function current<K>(
    entries: { get(at: K): Entry | undefined; set(at: K, entry: Entry): unknown },
    at: K,
    context: EndpointContext,
    viewKey?: ViewKey,
    own?: OwnListsByUpstream
  ): Catalog {
    const { endpoint } = context
    const known = entries.get(at)
    const changeCount = listings.changeCount()
    const isSame = known?.endpoint === endpoint && known.viewKey === viewKey?.key
    listings.catalogs.asked++
    if (isSame && known.changeCount === changeCount) return known.catalog
    const versions = definitionsOf(context).map((definition) => listings.version(definition, viewKey))
    const hasChanged = !isSame || versions.some((version, index) => version !== known.versions[index])
    const catalog = hasChanged ? build(context, viewKey, own) : known.catalog
    entries.set(at, { changeCount, endpoint, viewKey: viewKey?.key, versions, catalog })
    return catalog
  }

  function whole(context: EndpointContext, viewKey: ViewKey | undefined, own?: OwnListsByUpstream): Catalog {
    const { endpoint } = context
    if (own !== undefined) return current(bySession, own, context, viewKey, own)
    if (viewKey === undefined) return current(shared, endpoint, context)
    const views = byView.get(endpoint) ?? new LRUCache<string, Entry>({ max: maxViewsPerEndpoint })
    byView.set(endpoint, views)
    const changeCount = listings.changeCount()
    const known = views.get(viewKey.id)
    if (known?.changeCount === changeCount) return known.catalog
    if (definitionsOf(context).some((each) => listings.last(each, viewKey) !== listings.last(each)))
      return current(views, viewKey.id, context, viewKey)
    const catalog = current(shared, endpoint, context)
    views.set(viewKey.id, { changeCount, endpoint, viewKey: undefined, versions: [], catalog })
    return catalog
  }

  /** Returns the part of the catalog that the viewer may use. */
  return (viewer: Viewer, viewKey: ViewKey | undefined, own?: OwnListsByUpstream): Catalog =>
    visible(viewer, whole(viewer, viewKey, own))
}

export function createSessionCatalogs(
  catalogOf: CatalogCache,
  listings: Listings,
  sessionLists: Pick<OwnLists, 'lists'>
): ClientCatalogs<SessionViewer> {
  const viewKeys = sessionViewKeys()
  const viewKeyOf = ({ endpoint, session, declaring }: SessionViewer): ViewKey | undefined => {
    const client = declaring ?? session?.session.record
    return client === undefined ? undefined : viewKeys(client, endpoint, client.owner)
  }
  return {
    ...withListings(listings, viewKeyOf, legacyCapabilitiesOf),
    of: (call) =>
      catalogOf(
        call,
        viewKeyOf(call),
        call.session === undefined ? undefined : sessionLists.lists.get(call.session.key)
      )
  }
}

export function createCallerCatalogs(
  catalogOf: CatalogCache,
  listings: Listings,
  ownLists: Pick<OwnLists, 'lists' | 'pending' | 'empty'>,
  clock: Clock
) {
  const viewKeyOf = (viewer: ModernViewer): ViewKey | undefined =>
    isModernCaller(viewer) ? createViewKey(declaredForCaller(viewer, 'legacy'), viewer.principal, true) : undefined
  const seenBy = (viewer: ModernViewer): Array<Listing | undefined> => {
    const viewKey = viewKeyOf(viewer)
    return definitionsOf(viewer).map((definition) => listings.peek(definition, viewKey))
  }
  const own = createCallerLists(ownLists)
  const shared = withListings(listings, viewKeyOf, capabilitiesOf)
  return {
    ...shared,
    of: (call: ModernViewer): Catalog => catalogOf(call, viewKeyOf(call), own.of(call)),
    /** And for what the caller's own calls have changed. */
    async awaitListings(call: ModernViewer): Promise<void> {
      await shared.awaitListings(call)
      const pending = own.pending(call)
      const { coldStartMs } = call.snapshot.limits
      if (pending.length > 0) await settledWithin(clock, coldStartMs, Promise.all(pending))
    },
    /** Is an upstream of the endpoint unknown, so that what it offers can only be guessed? */
    isGuess: (context: EndpointContext): boolean =>
      definitionsOf(context).some((definition) => listings.peek(definition) === undefined),
    /** Returns for how many milliseconds clients may cache the answer of `server/discover`. */
    discoveryTtlMs: (viewer: ModernViewer): number => remainingDiscoveryMs(seenBy(viewer), clock.now()),
    /** Returns for how many milliseconds clients may cache these lists of the endpoint. */
    remainingTtlMs: (viewer: ModernViewer, lists: readonly ListName[]): number =>
      remainingTtlMs(seenBy(viewer), lists, clock.now())
  }
}

function withListings<C extends EndpointContext>(
  listings: Listings,
  viewKeyOf: (call: C) => ViewKey | undefined,
  shownCapabilitiesOf: (listing: Listing) => ServerCapabilities
): Omit<ClientCatalogs<C>, 'of'> {
  return {
    // http/modern/modern.ts reads the schema of a tool before the relay looks the tool up: the same call waits once.
    awaitListings: oncePerCall((call) =>
      listings.awaitListings(definitionsOf(call), call.snapshot.limits.coldStartMs, viewKeyOf(call))
    ),
    revalidate: oncePerCall((call) =>
      listings.revalidate(definitionsOf(call), call.snapshot.limits.coldStartMs, 'unseen')
    ),
    offers(call, upstream, ...path) {
      const listing = listings.peek(definitionOf(call, upstream), viewKeyOf(call))
      return listing === undefined || hasCapability(shownCapabilitiesOf(listing), path)
    },
    viewKeyOf
  }
}

function oncePerCall<C extends object>(wait: (call: C) => Promise<void>): (call: C) => Promise<void> {
  const waits = new WeakMap<C, Promise<void>>()
  return (call) => {
    const known = waits.get(call) ?? wait(call)
    waits.set(call, known)
    return known
  }
}

/** Remembers the key of each session at its endpoint: every call needs it. */
function sessionViewKeys() {
  const known = new WeakMap<DeclaringClient, { readonly endpoint: Endpoint; readonly viewKey: ViewKey | undefined }>()
  return (client: DeclaringClient, endpoint: Endpoint, owner: ViewOwner): ViewKey | undefined => {
    let entry = known.get(client)
    if (entry?.endpoint !== endpoint) {
      const declared = declaredCapabilities(client, endpoint, 'legacy')
      entry = { endpoint, viewKey: createViewKey(declared, owner, false) }
      known.set(client, entry)
    }
    return entry.viewKey
  }
}

type ViewOwner = Parameters<typeof quotaKeyOf>[0]

/** The text of a declaration, and the same without what does not matter to lists. */
const canonicalTexts = new WeakMap<ClientCapabilities, { readonly capabilities: JsonObject; readonly key: string }>()

function canonicalOf(declared: ClientCapabilities) {
  const known = canonicalTexts.get(declared)
  if (known !== undefined) return known
  // Whether a client reports changed roots does not matter to lists.
  const capabilities: JsonObject = declared['roots'] === undefined ? declared : { ...declared, roots: {} }
  const made = { capabilities, key: canonicalJsonOf(capabilities) }
  canonicalTexts.set(declared, made)
  return made
}

/** @returns undefined for a client that declares nothing: it sees the shared listing */
function createViewKey(declared: ClientCapabilities, owner: ViewOwner, pooled: boolean): ViewKey | undefined {
  const { capabilities, key } = canonicalOf(declared)
  if (key === '{}' || key.length > maxKeyLength) return undefined
  return { key, id: `${pooled ? 'caller' : 'session'} ${key}`, capabilities, quotaKey: quotaKeyOf(owner), pooled }
}
