// The views of all upstreams: what legacy servers list for clients that declare capabilities. One view for each
// upstream and set of capabilities, for all clients that declare the same; beyond the limits, clients see the shared
// listing.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { createFairEviction, type FairEviction } from '../../limits/limits.ts'
import type { Log } from '../../observe/log.ts'
import { isModernRevision } from '../../protocol/messages.ts'
import type { HandshakeParams, ListKind } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import type { ListingWatcher } from './listing-watcher.ts'
import { createReadRate, type ReadRate } from './read-rate.ts'
import { isDeclaredTo, type ViewKey } from './view-key.ts'
import { createView, type View } from './view.ts'

/** Whose lists changed: of those who declare this, or nothing. */
export type IsAffected = (viewKey: ViewKey | undefined) => boolean

export interface ViewsOptions {
  readonly pool: Pool
  readonly clock: Clock
  readonly log: Log
  readonly handshake: HandshakeParams
  /** Undefined while it is unknown. */
  readonly sharedListing: (definition: UpstreamDefinition) => Listing | undefined
  readonly onChange: (definition: UpstreamDefinition, kinds: ReadonlySet<ListKind>, isAffected: IsAffected) => void
}

export interface Views {
  /**
   * Opens the view where there can be one.
   * @returns undefined for upstreams that are not known yet or list the same for everybody, and where there are too
   * many views
   */
  of(definition: UpstreamDefinition, viewKey: ViewKey): ListingWatcher | undefined
  /** Undefined where it is the same as the shared listing. */
  peek(definition: UpstreamDefinition, viewKey: ViewKey): Listing | undefined
  /**
   * `ListingWatcher.pending` of a view that was opened no longer ago than `waitMs`: nobody waits for a slow one again
   * and again.
   */
  pending(definition: UpstreamDefinition, viewKey: ViewKey, waitMs: number): Array<Promise<unknown>>
  recheck(definition: UpstreamDefinition, viewKey: ViewKey): void
  /** The listings that are not the same as the shared one. */
  all(definition: UpstreamDefinition): Listing[]
  changed(definition: UpstreamDefinition, kind: ListKind): void
  /** @returns who sees the shared listing */
  sharedListingChanged(definition: UpstreamDefinition): IsAffected
  retain(hashes: ReadonlySet<string>): void
  close(): void
}

interface UpstreamViews {
  readonly tenant: string
  readonly views: Map<string, View>
  readonly eviction: FairEviction<View>
  /** All views of an upstream together are read no more often than its shared listing. */
  readonly readRate: ReadRate
}

const maxPerUpstream = 16
const maxPerPerson = 12
/** Each may hold a process. */
const maxPerTenant = 64
/** A view that was not used for so long can be evicted. */
const evictableAfterMs = 60_000

export function createViews(options: ViewsOptions): Views {
  const { clock, sharedListing, onChange } = options
  const upstreams = new Map<string, UpstreamViews>()

  /** Closes a view where this person could have no further one else. @returns whether there is room for one more */
  function makeRoom({ views, eviction }: UpstreamViews, quotaKey: string): boolean {
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

  function viewsOfTenant(tenant: string): number {
    let count = 0
    for (const each of upstreams.values()) if (each.tenant === tenant) count += each.views.size
    return count
  }

  function viewsOf({ hash, tenant }: UpstreamDefinition): UpstreamViews {
    let known = upstreams.get(hash)
    if (known === undefined) {
      known = {
        tenant,
        views: new Map(),
        eviction: createFairEviction<View>({ perOwner: maxPerPerson, perTenant: maxPerUpstream, max: maxPerUpstream }),
        readRate: inTurns(createReadRate(clock))
      }
      upstreams.set(hash, known)
    }
    return known
  }

  function viewOf(definition: UpstreamDefinition, viewKey: ViewKey): View | undefined {
    const shared = sharedListing(definition)
    // 2026-07-28 server/tools: lists must not depend on what a request declares.
    if (shared === undefined || isModernRevision(shared.revision) || !isDeclaredTo(viewKey, definition))
      return undefined
    const upstream = viewsOf(definition)
    const { key, quotaKey } = viewKey
    const known = upstream.views.get(key)
    if (known !== undefined) return known
    if (!makeRoom(upstream, quotaKey) || viewsOfTenant(definition.tenant) >= maxPerTenant) return undefined
    const view = createView(options, definition, viewKey, upstream.readRate, (kinds) =>
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
    of: (definition, viewKey) => viewOf(definition, viewKey)?.watcher,
    peek: (definition, viewKey) => known(definition, viewKey)?.listing(),
    pending(definition, viewKey, waitMs) {
      const view = viewOf(definition, viewKey)
      const pending = view?.watcher.pending() ?? []
      return view === undefined || clock.now() - view.openedAt > waitMs ? [] : pending
    },
    recheck: (definition, viewKey) => upstreams.get(definition.hash)?.views.get(viewKey.key)?.watcher.recheck(),
    all: (definition) => [...allOf(definition)].flatMap((view) => view.listing() ?? []),
    changed(definition, kind) {
      for (const view of allOf(definition)) if (!view.isShared()) view.watcher.changed(kind)
    },
    sharedListingChanged(definition) {
      for (const view of allOf(definition)) view.sharedListingChanged()
      return (viewKey) => viewKey === undefined || known(definition, viewKey)?.listing() === undefined
    },
    retain(hashes) {
      for (const [hash, { views }] of upstreams) {
        if (hashes.has(hash)) continue
        for (const { watcher } of views.values()) watcher.close()
        upstreams.delete(hash)
      }
    },
    close() {
      for (const { views } of upstreams.values()) for (const { watcher } of views.values()) watcher.close()
    }
  }
}

/** One rate for several readers: one after the other. */
function inTurns(rate: ReadRate): ReadRate {
  let last = Promise.resolve()
  return { next: (signal) => (last = last.then(() => rate.next(signal))) }
}
