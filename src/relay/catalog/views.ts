// Views: what servers list in the legacy era for clients that declare capabilities. One for each upstream and set of
// capabilities; beyond the limits, clients see the shared listing.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { createFairEviction } from '../../limits/limits.ts'
import { isModernRevision } from '../../protocol/messages.ts'
import type { ListKind } from '../../protocol/seams.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { createReadRate } from './freshness.ts'
import type { ListingWatcher } from './listing-watcher.ts'
import { createView, type IsAffected, type View, type ViewKey, type ViewsOptions } from './view.ts'

const maxPerUpstream = 16
const maxPerPerson = 12
/** Each may hold a process. */
const maxPerTenant = 64
const maxPerPersonInTenant = 48
const evictableAfterMs = 60_000

export function createViews(options: ViewsOptions) {
  const { clock, sharedListing, onChange } = options
  const upstreams = new Map<string, ReturnType<typeof createUpstreamViews>>()
  /** Views of all upstreams. */
  const everywhere = createFairEviction<View>({
    perOwner: maxPerPersonInTenant,
    perTenant: maxPerTenant,
    max: Infinity
  })

  const createUpstreamViews = () => ({
    views: new Map<string, View>(),
    eviction: createFairEviction<View>({ perOwner: maxPerPerson, perTenant: maxPerUpstream, max: maxPerUpstream }),
    /** All views of an upstream together are read no more often than its shared listing. */
    nextRead: createReadRate(clock),
    eras: { onlyModern: false }
  })

  function close(view: View): void {
    const {
      definition,
      viewKey: { key, quotaKey }
    } = view
    const upstream = upstreams.get(definition.hash)
    view.watcher.close()
    everywhere.delete(definition.tenant, quotaKey, view)
    upstream?.eviction.delete('', quotaKey, view)
    upstream?.views.delete(key)
  }

  /** @param candidates undefined: there is room. @returns whether there is, now that one that is not used is closed */
  function makeRoom(candidates: ReadonlySet<View> | undefined): boolean {
    if (candidates === undefined) return true
    // Nobody misses one that shows the shared listing.
    const [oldest] = [...candidates].toSorted(
      (one, other) => Number(other.isShared()) - Number(one.isShared()) || one.watcher.usedAt() - other.watcher.usedAt()
    )
    if (oldest === undefined || (!oldest.isShared() && clock.now() - oldest.watcher.usedAt() <= evictableAfterMs))
      return false
    close(oldest)
    // Its clients see the shared listing.
    onChange(oldest.definition, new Set(), () => false, oldest.viewKey.key)
    return true
  }

  function viewOf(definition: UpstreamDefinition, viewKey: ViewKey): View | undefined {
    const shared = sharedListing(definition)
    if (shared === undefined || !isDeclaredTo(viewKey, definition)) return undefined
    const { tenant, era } = definition
    const upstream = upstreams.get(definition.hash) ?? createUpstreamViews()
    // 2026-07-28 server/tools: its lists must not depend on what a request declares. Those of the older era may, where
    // the server speaks it too.
    if (isModernRevision(shared.revision) && (era !== 'auto' || upstream.eras.onlyModern)) return undefined
    upstreams.set(definition.hash, upstream)
    const { key, quotaKey } = viewKey
    const known = upstream.views.get(key)
    if (known !== undefined) return known
    if (!makeRoom(upstream.eviction.evictFrom('', quotaKey))) return undefined
    if (!makeRoom(everywhere.evictFrom(tenant, quotaKey))) return undefined
    const view = createView(options, definition, viewKey, upstream, (kinds) =>
      onChange(definition, kinds, (each) => each?.key === key && isDeclaredTo(each, definition), key)
    )
    upstream.views.set(key, view)
    upstream.eviction.add('', quotaKey, view)
    everywhere.add(tenant, quotaKey, view)
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
    /** Returns the last listing of a view, while the upstream is away too. */
    last: (definition: UpstreamDefinition, viewKey: ViewKey): Listing | undefined =>
      known(definition, viewKey)?.lastListing(),
    reached(definition: UpstreamDefinition): void {
      for (const view of allOf(definition)) view.watcher.reached()
    },
    /** A session speaks to the upstream in the older era: it may have views of that after all. */
    spokeOlder({ hash }: UpstreamDefinition): void {
      const upstream = upstreams.get(hash)
      if (upstream?.eras.onlyModern !== true) return
      for (const view of [...upstream.views.values()]) close(view)
      upstream.eras.onlyModern = false
    },
    /**
     * Returns the reads of a view that was opened at most `waitMs` ago: nobody waits for a slow one again and again.
     */
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
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const [hash, { views }] of upstreams) {
        if (hashes.has(hash)) continue
        for (const view of [...views.values()]) close(view)
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
