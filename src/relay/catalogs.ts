// The catalog of an endpoint as one client sees it: that of everybody, that of all who declare the same, or a session's own, where its own
// connections reported changes.

import { LRUCache } from 'lru-cache'
import type { Endpoint, UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import type { ListKind, Upstream } from '../protocol/seams.ts'
import type { LiveSession } from '../session/live.ts'
import { patched } from '../upstream/listing.ts'
import type { Listing, ListingPart } from '../upstream/listing.ts'
import type { Place } from './call.ts'
import { buildCatalog } from './catalog.ts'
import type { Catalog } from './catalog.ts'
import { changedKinds } from './changes.ts'
import type { Listings } from './listings.ts'
import { createOwnChanges } from './own-changes.ts'
import type { PaceClock } from './pace.ts'
import type { Profile } from './profiles.ts'

export interface Catalogs {
  /** The endpoint as the session sees it; without a session, as a new one would that declares the profile. */
  of (place: Place, live: LiveSession | undefined, profile: Profile | undefined): Catalog
  definitionsOf (place: Place): readonly UpstreamDefinition[]
  /** Waits for upstreams of the endpoint that are not known yet, and for lists that are older than their time, up to `limits.coldStartMs`. */
  settled (place: Place, profile: Profile | undefined): Promise<void>
  /** Waits for what known upstreams list for a profile, up to `waitMs`. */
  viewed (place: Place, profile: Profile, waitMs: number): Promise<void>
  /** Something is missing that may be there by now: looks again, once a second at most, for as long as `settled`. */
  reread (place: Place): Promise<void>
  /** The session's connection to an upstream reported a change, or ended (`upstream` undefined) and its own view with it. */
  ownChange (live: LiveSession, profile: Profile | undefined, definition: UpstreamDefinition, upstream: Upstream | undefined, kind: ListKind | undefined): void
  /** Does this session see a list of the upstream as its own connection gives it, instead of the shared one? Without a kind: any list. */
  hasOwn (sessionKey: string, hash: string, kind?: ListKind): boolean
  forget (sessionKey: string): void
}

/** The lists that a session's own connection reported as changed. The others go on as everybody sees them. */
interface Own {
  /** For when the upstream is left out of the shared view. */
  readonly shared: Listing
  readonly parts: ReadonlyMap<ListKind, ListingPart>
}

interface Built {
  readonly endpoint: Endpoint
  /** Key of the profile that it was built for. */
  readonly profile: string | undefined
  readonly versions: readonly number[]
  readonly catalog: Catalog
}

/** The catalog of a profile at an endpoint, which is everybody's where nothing differs, as it was when the listings had this tick. */
interface Look {
  readonly tick: number
  readonly built: Built
}

export interface CatalogsOptions {
  readonly listings: Pick<Listings, 'peek' | 'version' | 'tick' | 'differs' | 'settled' | 'viewed' | 'reread' | 'doubt'>
  readonly clock: PaceClock
  readonly log: Log
}

/** Profiles per endpoint whose catalogs are kept; those of more are built anew when they are asked for. */
const maxLooks = 32

export function createCatalogs ({ listings, clock, log }: CatalogsOptions): Catalogs {
  const shared = new WeakMap<Endpoint, Built>()
  const looks = new WeakMap<Endpoint, LRUCache<string, Look>>()
  const looksAt = (endpoint: Endpoint): LRUCache<string, Look> => {
    const known = looks.get(endpoint) ?? new LRUCache<string, Look>({ max: maxLooks })
    looks.set(endpoint, known)
    return known
  }
  const own = new Map<string, Map<string, Own>>()
  const ownChanges = createOwnChanges({ clock, log })
  const ownCatalogs = new WeakMap<ReadonlyMap<string, Own>, Built>()

  // An endpoint belongs to one snapshot, so what its members mean does not change.
  const members = new WeakMap<Endpoint, readonly UpstreamDefinition[]>()
  function definitionsOf ({ tenant, endpoint }: Place): readonly UpstreamDefinition[] {
    let known = members.get(endpoint)
    if (known === undefined) {
      known = endpoint.members.flatMap(({ upstream }) => tenant.upstreams.get(upstream) ?? [])
      members.set(endpoint, known)
    }
    return known
  }

  function seenBy (overrides: ReadonlyMap<string, Own> | undefined, profile: Profile | undefined, definition: UpstreamDefinition): Listing | undefined {
    const known = listings.peek(definition, profile)
    const mine = overrides?.get(definition.hash)
    return mine === undefined ? known : patched(known ?? mine.shared, [...mine.parts.values()])
  }

  function build (endpoint: Endpoint, definitions: readonly UpstreamDefinition[], overrides: ReadonlyMap<string, Own> | undefined, profile: Profile | undefined): Catalog {
    const known = new Map<UpstreamName, Listing>()
    for (const definition of definitions) {
      const listing = seenBy(overrides, profile, definition)
      if (listing !== undefined) known.set(definition.name, listing)
    }
    const catalog = buildCatalog(endpoint, known)
    if (catalog.collisions.length > 0) {
      log.warn({ tenant: endpoint.tenant, endpoint: endpoint.name, names: catalog.collisions.slice(0, 20) }, 'two upstreams claim the same name: it is offered by the one whose prefix it begins with, else by neither; give one of them another prefix')
    }
    return catalog
  }

  /** What was built, while it is what there is. */
  function current (place: Place, built: Built | undefined, overrides: ReadonlyMap<string, Own> | undefined, profile: Profile | undefined): Built {
    const definitions = definitionsOf(place)
    const versions = definitions.map((definition) => listings.version(definition, profile))
    if (built?.endpoint === place.endpoint && built.profile === profile?.key && versions.every((version, at) => version === built.versions[at])) return built
    return { endpoint: place.endpoint, profile: profile?.key, versions, catalog: build(place.endpoint, definitions, overrides, profile) }
  }

  return {
    of (place, live, profile) {
      const overrides = live === undefined ? undefined : own.get(live.key)
      if (overrides !== undefined) {
        const built = current(place, ownCatalogs.get(overrides), overrides, profile)
        ownCatalogs.set(overrides, built)
        return built.catalog
      }
      const tick = listings.tick()
      const id = profile === undefined ? '' : `${profile.pooled ? 'pooled' : 'own'} ${profile.key}`
      const known = looksAt(place.endpoint).get(id)
      if (known?.tick === tick) return known.built.catalog
      // Where nothing differs for them, those who declare something share the catalog of everybody.
      const differs = profile !== undefined && definitionsOf(place).some((definition) => listings.differs(definition, profile))
      const built = differs ? current(place, known?.built, undefined, profile) : current(place, shared.get(place.endpoint), undefined, undefined)
      if (!differs) shared.set(place.endpoint, built)
      looksAt(place.endpoint).set(id, { tick, built })
      return built.catalog
    },
    definitionsOf,
    settled: (place, profile) => listings.settled(definitionsOf(place), place.snapshot.limits.coldStartMs, profile),
    viewed: (place, profile, waitMs) => listings.viewed(definitionsOf(place), waitMs, profile),
    reread: (place) => listings.reread(definitionsOf(place), place.snapshot.limits.coldStartMs),
    ownChange (live, profile, definition, upstream, kind) {
      const seen = (): Listing | undefined => seenBy(own.get(live.key), profile, definition)
      const replace = (mine: Own | undefined): void => {
        const before = seen()
        // A new map each time: the catalogs built from the old one go with it.
        const next = new Map(own.get(live.key))
        if (mine === undefined) next.delete(definition.hash)
        else next.set(definition.hash, mine)
        if (next.size === 0) own.delete(live.key)
        else own.set(live.key, next)
        live.changed(changedKinds(before, seen()))
      }
      if (kind === undefined) {
        ownChanges.forget(live.key, definition.hash)
        if (own.get(live.key)?.has(definition.hash) === true) replace(undefined)
      } else if (upstream !== undefined) {
        if (profile !== undefined) listings.doubt(definition, profile)
        ownChanges.changed(live.key, definition, upstream, kind, (part) => {
          const mine = own.get(live.key)?.get(definition.hash)
          const shared = listings.peek(definition, profile) ?? mine?.shared
          // Nobody knows the other lists yet; this change will be in what the shared view reads first.
          if (shared === undefined) return
          // Many servers register tools as soon as they know their client: what comes of it is seen already.
          if (mine?.parts.has(kind) !== true && changedKinds(shared, patched(shared, [part])).size === 0) return
          replace({ shared, parts: new Map(mine?.parts).set(kind, part) })
        })
      }
    },
    hasOwn (key, hash, kind) {
      const mine = own.get(key)?.get(hash)
      return mine !== undefined && (kind === undefined || mine.parts.has(kind))
    },
    forget (key) {
      ownChanges.forget(key)
      own.delete(key)
    }
  }
}
