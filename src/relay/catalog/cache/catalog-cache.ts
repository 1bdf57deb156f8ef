// The catalogs that are kept, each built anew only where a listing of its endpoint has changed. What they take is
// counted: sessions whose servers list something else for each have a whole catalog each.

import { LRUCache } from 'lru-cache'
import type { Endpoint, Tenant } from '../../../config/snapshot.ts'
import { bytesPerChar, createMemoryAccount, type HeldMemory, holdMemory } from '../../../limits/memory.ts'
import type { Log } from '../../../observe/log.ts'
import type { UpstreamName } from '../../../protocol/messages.ts'
import type { Listing } from '../../../upstream/listing/listing.ts'
import type { EndpointContext } from '../../call/call.ts'
import { buildCatalog, type Catalog } from '../catalog.ts'
import { definitionsOf } from '../client-catalogs.ts'
import type { ListingSource } from '../listings.ts'
import { type OwnListsByUpstream, withOwnLists } from '../own-lists.ts'
import type { ViewKey } from '../view.ts'
import { createVisibleCatalogs, type Viewer } from '../visible.ts'
import { createBoundedListings } from './bounded-listings.ts'
import { createCatalogReports } from './catalog-reports.ts'

interface Entry {
  /** `Listings.changeCount` when the entry was last known to be current. */
  changeCount: number
  readonly endpoint: Endpoint
  readonly viewKey: string | undefined
  /** Held by `Built`. */
  readonly catalog: WeakRef<Catalog>
  /** What is counted for the catalog; undefined: nothing, or it is counted with another entry. */
  readonly held: HeldMemory | undefined
}

interface Entries<K> {
  get(at: K): Entry | undefined
  set(at: K, entry: Entry): unknown
  delete(at: K): unknown
}

export type CatalogCache = ReturnType<typeof createCatalogCache>

/** Beyond it, catalogs are built anew for each call. */
const maxViewsPerEndpoint = 32
/** Counted for each entry of a catalog, in bytes, beside its URI: its route, its places in lists, and its shapes. */
const bytesPerEntry = 512
/** A smaller catalog is not counted, in bytes: what is counted for a session covers it. */
const smallBytes = 16_384

/**
 * @param memory what the catalogs count to. Where there is none for one, only the last of those of a tenant is kept
 * @returns the catalog, built anew only where a listing of the endpoint has changed
 */
export function createCatalogCache(listings: ListingSource, log: Log, memory = createMemoryAccount()) {
  const shared = new WeakMap<Endpoint, Entry>()
  const byView = new WeakMap<Endpoint, LRUCache<string, Entry>>()
  const bySession = new WeakMap<OwnListsByUpstream, Entry>()
  /** One call looks its catalog up several times. */
  const uncounted = new WeakMap<Tenant, { readonly at: unknown; readonly entry: Entry }>()
  const root = new Built()
  // An entry may go without a word, with its endpoint or its session.
  const collected = new FinalizationRegistry<HeldMemory>((held) => held.set(0))
  const bounded = createBoundedListings(log)
  const report = createCatalogReports(log)
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
    const catalog = buildCatalog(endpoint, ...bounded(endpoint, known, away))
    report(endpoint, catalog)
    return catalog
  }

  /** @returns undefined where there is no memory for it */
  function countedFor(tenant: Tenant, catalog: Catalog): HeldMemory | undefined {
    const held = holdMemory(memory.share(tenant.id, 'catalogs'))
    const bytes = sizeOf(catalog)
    if (bytes <= smallBytes) return held
    if (!held.take(bytes)) return undefined
    collected.register(catalog, held)
    return held
  }

  function uncountedAt(tenant: Tenant, at: unknown): Entry | undefined {
    const last = uncounted.get(tenant)
    return last !== undefined && last.at === at ? last.entry : undefined
  }

  function current<K>(
    entries: Entries<K>,
    at: K,
    context: EndpointContext,
    viewKey?: ViewKey,
    own?: OwnListsByUpstream
  ): Catalog {
    const { endpoint, tenant } = context
    const known = entries.get(at) ?? uncountedAt(tenant, at)
    const changeCount = listings.changeCount()
    const isSame = known?.endpoint === endpoint && known.viewKey === viewKey?.key
    const last = isSame ? known.catalog.deref() : undefined
    listings.catalogs.asked++
    if (last !== undefined && known?.changeCount === changeCount) return last
    const { catalogs } = definitionsOf(context).reduce((built, each) => built.of(listings.version(each, viewKey)), root)
    if (last !== undefined && known !== undefined && catalogs.has(known)) {
      known.changeCount = changeCount
      return last
    }
    known?.held?.set(0)
    const catalog = build(context, viewKey, own)
    const held = countedFor(tenant, catalog)
    const entry = { changeCount, endpoint, viewKey: viewKey?.key, catalog: new WeakRef(catalog), held }
    catalogs.set(entry, catalog)
    if (held !== undefined) entries.set(at, entry)
    else {
      entries.delete(at)
      uncounted.set(tenant, { at, entry })
    }
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
    const before = known?.changeCount === changeCount ? known.catalog.deref() : undefined
    if (before !== undefined) return before
    if (definitionsOf(context).some((each) => listings.last(each, viewKey) !== listings.last(each)))
      return current(views, viewKey.id, context, viewKey)
    const catalog = current(shared, endpoint, context)
    views.set(viewKey.id, { changeCount, endpoint, viewKey: undefined, catalog: new WeakRef(catalog), held: undefined })
    return catalog
  }

  /** Returns the part of the catalog that the viewer may use. */
  return (viewer: Viewer, viewKey: ViewKey | undefined, own?: OwnListsByUpstream): Catalog =>
    visible(viewer, whole(viewer, viewKey, own))
}

/**
 * Holds catalogs for as long as their entries and all versions of listings are there that they were built from: a
 * catalog holds the lists, which nobody counts once there are newer ones, and nobody may ask for it again.
 */
class Built {
  readonly catalogs = new WeakMap<Entry, Catalog>()
  private readonly next = new WeakMap<object, Built>()

  of(version: object): Built {
    const built = this.next.get(version) ?? new Built()
    this.next.set(version, built)
    return built
  }
}

/** Returns an estimate from above, in bytes. */
const sizeOf = ({ size: { entries, uriChars } }: Catalog): number => entries * bytesPerEntry + uriChars * bytesPerChar
