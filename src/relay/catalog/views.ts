// Views: what servers list in the legacy era for clients that declare capabilities. One for each upstream and set of
// capabilities; beyond the limits, clients see the shared listing.

import { hash } from 'node:crypto'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { createFairEviction } from '../../limits/limits.ts'
import type { MemoryAccount } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import { type ClientCapabilities, isModernRevision } from '../../protocol/messages.ts'
import { type HandshakeParams, type ListKind, noClient } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { changesBetween, createReadRate, createRedundancy, type ReadRate, showsMore } from './freshness.ts'
import { createListingWatcher, type ListingWatcher } from './listing-watcher.ts'

/**
 * What a client declares, as far as it decides what servers list. A legacy server is told at the handshake, and may
 * register tools only for clients that can answer its requests; one of 2026-07-28 must not (server/tools, "Listing
 * Tools").
 */
export interface ViewKey {
  /** Equal for equal capabilities. */
  readonly key: string
  /** The same, and apart for sessions and callers. */
  readonly id: string
  readonly capabilities: ClientCapabilities
  /** Of the person behind the client: one person may make only few views. */
  readonly quotaKey: string
  /** Are connections that all clients of one principal share told this too? */
  readonly pooled: boolean
}

/** Whose lists changed: of those who declare this, or nothing. */
export type IsAffected = (viewKey: ViewKey | undefined) => boolean

interface ViewsOptions {
  readonly pool: Pool
  readonly clock: Clock
  readonly log: Log
  readonly memory: MemoryAccount
  readonly handshake: HandshakeParams
  /** Undefined while it is unknown. */
  readonly sharedListing: (definition: UpstreamDefinition) => Listing | undefined
  readonly onChange: (definition: UpstreamDefinition, kinds: ReadonlySet<ListKind>, isAffected: IsAffected) => void
}

type View = ReturnType<typeof createView>

const maxPerUpstream = 16
const maxPerPerson = 12
/** Each may hold a process. */
const maxPerTenant = 64
const evictableAfterMs = 60_000

export function createViews(options: ViewsOptions) {
  const { clock, sharedListing, onChange } = options
  const upstreams = new Map<string, ReturnType<typeof createUpstreamViews>>()

  const createUpstreamViews = (tenant: string) => ({
    tenant,
    views: new Map<string, View>(),
    eviction: createFairEviction<View>({ perOwner: maxPerPerson, perTenant: maxPerUpstream, max: maxPerUpstream }),
    /** All views of an upstream together are read no more often than its shared listing. */
    nextRead: createReadRate(clock),
    eras: { onlyModern: false }
  })

  /** Closes a view where this person could have no further one else. @returns whether there is room for one more */
  function makeRoom({ views, eviction }: ReturnType<typeof createUpstreamViews>, quotaKey: string): boolean {
    const candidates = eviction.evictFrom('', quotaKey)
    if (candidates === undefined) return true
    // Nobody misses one that shows the shared listing.
    const [oldest] = [...candidates].toSorted(
      (one, other) => Number(other.isShared()) - Number(one.isShared()) || one.watcher.usedAt() - other.watcher.usedAt()
    )
    if (oldest === undefined || (!oldest.isShared() && clock.now() - oldest.watcher.usedAt() <= evictableAfterMs))
      return false
    oldest.watcher.close()
    eviction.delete('', oldest.viewKey.quotaKey, oldest)
    views.delete(oldest.viewKey.key)
    return true
  }

  function viewOf(definition: UpstreamDefinition, viewKey: ViewKey): View | undefined {
    const shared = sharedListing(definition)
    if (shared === undefined || !isDeclaredTo(viewKey, definition)) return undefined
    const { tenant, era, type } = definition
    const upstream = upstreams.get(definition.hash) ?? createUpstreamViews(tenant)
    // 2026-07-28 server/tools: its lists must not depend on what a request declares. Those of the older era may, where
    // a process speaks it. Over HTTP that is not tried: without a stream for server requests little would be won.
    const mayKnowOlder = era === 'auto' && type === 'stdio' && !upstream.eras.onlyModern
    if (isModernRevision(shared.revision) && !mayKnowOlder) return undefined
    upstreams.set(definition.hash, upstream)
    const { key, quotaKey } = viewKey
    const known = upstream.views.get(key)
    if (known !== undefined) return known
    if (!makeRoom(upstream, quotaKey)) return undefined
    const ofTenant = upstreams.values().filter((each) => each.tenant === tenant)
    if (ofTenant.reduce((count, { views }) => count + views.size, 0) >= maxPerTenant) return undefined
    const view = createView(options, definition, viewKey, upstream, (kinds) =>
      onChange(definition, kinds, (each) => each?.key === key && isDeclaredTo(each, definition))
    )
    upstream.views.set(key, view)
    upstream.eviction.add('', quotaKey, view)
    // The clients of a view that was evicted for it see the shared listing.
    onChange(definition, new Set(), () => false)
    return view
  }

  const known = (definition: UpstreamDefinition, viewKey: ViewKey): View | undefined =>
    isDeclaredTo(viewKey, definition) ? upstreams.get(definition.hash)?.views.get(viewKey.key) : undefined
  const allOf = ({ hash }: UpstreamDefinition): Iterable<View> => upstreams.get(hash)?.views.values() ?? []

  return {
    /** Undefined for upstreams that are unknown or list the same for everybody, and where there are too many views. */
    of: (definition: UpstreamDefinition, viewKey: ViewKey): ListingWatcher | undefined =>
      viewOf(definition, viewKey)?.watcher,
    /** Undefined where it is the same as the shared listing. */
    peek: (definition: UpstreamDefinition, viewKey: ViewKey): Listing | undefined =>
      known(definition, viewKey)?.listing(),
    /** The same, while the upstream is away too. */
    last: (definition: UpstreamDefinition, viewKey: ViewKey): Listing | undefined =>
      known(definition, viewKey)?.lastListing(),
    reached(definition: UpstreamDefinition): void {
      for (const view of allOf(definition)) view.watcher.reached()
    },
    /** Of a view that was opened at most `waitMs` ago: nobody waits for a slow one again and again. */
    pending(definition: UpstreamDefinition, viewKey: ViewKey, waitMs: number): Array<Promise<unknown>> {
      const view = viewOf(definition, viewKey)
      const pending = view?.watcher.pending() ?? []
      return view === undefined || clock.now() - view.openedAt > waitMs ? [] : pending
    },
    recheck: ({ hash }: UpstreamDefinition, { key }: ViewKey): void =>
      upstreams.get(hash)?.views.get(key)?.watcher.recheck(),
    /** The listings that are not the same as the shared one. */
    all: (definition: UpstreamDefinition): Listing[] => [...allOf(definition)].flatMap((view) => view.listing() ?? []),
    changed(definition: UpstreamDefinition, kind: ListKind): void {
      for (const view of allOf(definition)) if (!view.isShared()) view.watcher.changed(kind, 'gateway')
    },
    /** @returns who sees the shared listing */
    sharedListingChanged(definition: UpstreamDefinition): IsAffected {
      for (const view of allOf(definition)) view.sharedListingChanged()
      return (viewKey) => viewKey === undefined || known(definition, viewKey)?.listing() === undefined
    },
    retain(hashes: ReadonlySet<string>): void {
      for (const [hash, { views }] of upstreams) {
        if (hashes.has(hash)) continue
        for (const { watcher } of views.values()) watcher.close()
        upstreams.delete(hash)
      }
    },
    close(): void {
      for (const { views } of upstreams.values()) for (const { watcher } of views.values()) watcher.close()
    }
  }
}

/** Is any connection to this upstream told these capabilities? */
const isDeclaredTo = ({ pooled }: ViewKey, { isolation }: UpstreamDefinition): boolean =>
  isolation === 'session' || (isolation === 'principal' && pooled)

/**
 * A view that is the same as the shared listing is not watched.
 * @param onChange what became different for its clients; empty where only the server says something else of itself
 */
function createView(
  { pool, clock, log, memory, handshake, sharedListing }: ViewsOptions,
  definition: UpstreamDefinition,
  viewKey: ViewKey,
  { nextRead, eras }: { readonly nextRead: ReadRate; readonly eras: { onlyModern: boolean } },
  onChange: (kinds: ReadonlySet<ListKind>) => void
) {
  const scope = `listing:${definition.hash}:${hash('sha256', viewKey.key, 'base64url')}`
  // It is taken to be so until it was read.
  let isShared = true
  /** What its clients saw last. */
  let seen = sharedListing(definition)

  const own = (): Listing | undefined => (isShared ? undefined : watcher.peek())
  const lastOwn = (): Listing | undefined => (isShared ? undefined : watcher.last())

  /** @param reported by the server */
  function reportChange(reported: ReadonlySet<ListKind>): void {
    const before = seen
    seen = own() ?? sharedListing(definition)
    const kinds = changesBetween(before, seen)
    if (kinds !== undefined || reported.size > 0) onChange(new Set([...(kinds ?? []), ...reported]))
  }

  const watcher: ListingWatcher = createListingWatcher({
    definition,
    source: {
      memory: memory.share(definition.tenant, `lists of ${definition.name}`),
      // It declares what it cannot do: no client is behind it. It reads lists, and calls nothing.
      connect: () =>
        pool.acquire(
          definition,
          scope,
          { ...handshake, capabilities: viewKey.capabilities, era: 'legacy' },
          {
            listChanged: (kind, noticedBy) => watcher.changed(kind, noticedBy),
            notification() {},
            ask: noClient.ask,
            closed: () => watcher.connectionClosed()
          },
          'view'
        ),
      touch: () => pool.touch(scope),
      release() {
        pool
          .release(scope)
          .catch((err: unknown) =>
            log.warn({ err, upstream: definition.name }, 'a connection that is not needed did not close cleanly')
          )
      },
      // What a server refuses today it will refuse tomorrow.
      retryMs: (failures) => (failures < 2 ? 10_000 : failures < 3 ? 60_000 : 10 * 60_000),
      downMessage: 'the lists for clients that declare capabilities could not be read; they see what everybody sees'
    },
    nextRead,
    clock,
    log,
    onChange(kinds) {
      if (!isShared) reportChange(kinds)
    },
    redundancy: createRedundancy((listing) => {
      const shared = sharedListing(definition)
      // The server refused the older era.
      eras.onlyModern = isModernRevision(listing.revision)
      isShared = shared !== undefined && !showsMore(listing, shared)
      reportChange(new Set())
      return isShared
    }, clock)
  })

  return {
    viewKey,
    watcher,
    openedAt: clock.now(),
    isShared: (): boolean => isShared,
    /** Undefined where it is shared, and while it could not be read. */
    listing: own,
    lastListing: lastOwn,
    sharedListingChanged(): void {
      watcher.recheck()
      if (own() === undefined) seen = sharedListing(definition)
    }
  }
}
