// The catalog of an endpoint as one client sees it: the shared one, that of all who declare the same capabilities, or a
// session's own, where its connections reported changes.

import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import { canonicalJsonOf } from '../../protocol/json-text.ts'
import type { ClientCapabilities, JsonObject, ServerCapabilities, UpstreamName } from '../../protocol/messages.ts'
import { hasCapability } from '../../protocol/methods.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { SessionRecord } from '../../session/session-record.ts'
import { allSettledWithin, type Clock } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { definitionOf, type EndpointContext, isModernCaller, type ModernViewer, quotaKeyOf } from '../call/call.ts'
import { declaredCapabilities, declaredForCaller } from '../client/declared-capabilities.ts'
import type { CatalogCache } from './cache/catalog-cache.ts'
import { createCallerLists } from './caller-lists.ts'
import { capabilitiesOf, type Catalog, legacyCapabilitiesOf, type ListName } from './catalog.ts'
import { remainingDiscoveryMs, remainingTtlMs } from './freshness.ts'
import type { Listings } from './listings.ts'
import type { OwnLists } from './own-lists.ts'
import type { ViewKey } from './view.ts'
import type { Viewer } from './visible.ts'

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

export type CallerCatalogs = ReturnType<typeof createCallerCatalogs>

// A server that looks at more than this has no view for it.
const maxKeyLength = 2_048

export const definitionsOf = ({ tenant, endpoint }: EndpointContext): UpstreamDefinition[] =>
  endpoint.members.flatMap(({ upstream }) => tenant.upstreams.get(upstream) ?? [])

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
      if (pending.length > 0) await allSettledWithin(clock, coldStartMs, pending)
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
  // The endpoint first: an idle session must not keep one that a reload has replaced, and with it its catalogs.
  const known = new WeakMap<Endpoint, WeakMap<DeclaringClient, { readonly viewKey: ViewKey | undefined }>>()
  return (client: DeclaringClient, endpoint: Endpoint, owner: ViewOwner): ViewKey | undefined => {
    const clients = known.get(endpoint) ?? new WeakMap<DeclaringClient, { readonly viewKey: ViewKey | undefined }>()
    known.set(endpoint, clients)
    const declared = (): ClientCapabilities => declaredCapabilities(client, endpoint, 'legacy')
    const entry = clients.get(client) ?? { viewKey: createViewKey(declared(), owner, false) }
    clients.set(client, entry)
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
