// The listings of all upstreams: for each the shared one, read without declaring any capability, and its views.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { MemoryAccount } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import type { Implementation, Notification, TenantId, UpstreamName } from '../../protocol/messages.ts'
import { type HandshakeParams, type ListKind, noClient, type NoticedBy, type Upstream } from '../../protocol/seams.ts'
import type { Store } from '../../store/port.ts'
import { allSettledWithin, backoffMs, type Clock } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { listingScopeOf } from '../call/call.ts'
import { createListingWatcher, type ListingWatcher, type Revalidation } from './listing-watcher.ts'
import type { IsAffected, ViewKey } from './view.ts'
import { createViews } from './views.ts'
import { createSessionless } from '../../upstream/pool/sessionless.ts'

interface ListingsOptions {
  readonly pool: Pool
  readonly store: Store
  readonly clock: Clock
  readonly log: Log
  readonly clientInfo: Implementation
  readonly memory: MemoryAccount
  /** The connection that the listing of a shared upstream is read from is the one that sessions use. */
  readonly events: SharedConnectionEvents
}

/** Events outside of calls on connections that several sessions use. None of these throws. */
export interface SharedConnectionEvents {
  sharedNotification(definition: UpstreamDefinition, scope: string, notification: Notification): void
  /** The connections of the scope broke. */
  lost(definition: UpstreamDefinition, scope: string): void
}

export interface ListChange {
  /** The hash of the upstream's definition. */
  readonly hash: string
  readonly kinds: ReadonlySet<ListKind>
  readonly isAffected: IsAffected
  /** `key` of the view; undefined: of the shared listing. */
  readonly view: string | undefined
  /** This process showed nothing before, so that nobody has it from here otherwise; false of a view. */
  readonly isFirst: boolean
}

type ChangeListener = (change: ListChange) => void

/** Everywhere: without `viewKey`, for clients that declare nothing. */
export type Listings = ReturnType<typeof createListings>

/** The source of catalogs: what upstreams list now, or listed last. */
export type ListingSource = Pick<Listings, 'catalogs' | 'peek' | 'last' | 'version' | 'changeCount'>

const sharedSource = {
  retryMs: (failures: number) => backoffMs(failures, { firstMs: 1_000, maxMs: 60_000 }),
  downMessage: 'upstream is down; it is left out of the lists and tried again',
  readyMessage: 'upstream is ready'
}

/** Of an upstream of which nothing is known. */
const noVersion = {}

export function createListings(options: ListingsOptions) {
  const { pool, clock, clientInfo, events: sharedEvents } = options
  const handshake: HandshakeParams = { clientInfo, capabilities: {} }
  const watchers = new Map<string, ListingWatcher>()
  const listeners = new Array<ChangeListener>()
  const [sharedVersions, viewVersions] = [new Map<string, object>(), new Map<string, object>()]
  /** The hashes of the upstreams of the configuration; undefined until it was reloaded. */
  let retained: Pick<ReadonlySet<string>, 'has'> | undefined
  let [isClosed, changeCount] = [false, 0]
  const sessionless = createSessionless()

  const report: ChangeListener = (change) => {
    if (change.kinds.size > 0) for (const listener of listeners) listener(change)
  }

  const views = createViews({
    ...options,
    handshake,
    sharedListing: ({ hash }) => watchers.get(hash)?.peek(),
    onChange({ hash }, kinds, isAffected, view) {
      changeCount++
      viewVersions.set(hash, {})
      report({ hash, kinds, isAffected, view, isFirst: false })
    }
  })

  /** Undefined for what is no longer configured: calls that began before a reload do not bring it back. */
  function watcherOf(definition: UpstreamDefinition): ListingWatcher | undefined {
    const { hash } = definition
    const known = watchers.get(hash)
    if (known !== undefined || isClosed || retained?.has(hash) === false) return known
    const watcher = createListingWatcher({
      ...options,
      definition,
      source: {
        ...sharedSource,
        connect: () => connect(definition),
        touch: () => pool.touch(listingScopeOf(definition)),
        lastLine: () => pool.stateOf(definition).lastLine,
        memory: options.memory.share(definition.tenant, `lists of ${definition.name}`)
      },
      onChange(kinds, isFirst) {
        changeCount++
        for (const versions of [sharedVersions, viewVersions]) versions.set(hash, {})
        report({ hash, kinds, isAffected: views.sharedListingChanged(definition), view: undefined, isFirst })
      }
    })
    watchers.set(hash, watcher)
    return watcher
  }

  // Modern servers, and those of isolation `shared`, are also called on the connection that the listing is read from.
  /** @throws GatewayError upstream_unavailable, too_many */
  async function connect(definition: UpstreamDefinition): Promise<Upstream> {
    const [scope, isShared] = [listingScopeOf(definition), definition.isolation === 'shared']
    const events = {
      listChanged: (kind: ListKind, noticedBy: NoticedBy) => changed(definition, kind, noticedBy),
      notification(notification: Notification) {
        if (isShared) sharedEvents.sharedNotification(definition, scope, notification)
      },
      ask: noClient.ask,
      closed() {
        watchers.get(definition.hash)?.connectionClosed()
        if (isShared) sharedEvents.lost(definition, scope)
      }
    }
    // Where a server speaks both eras, its lists are read in the modern one, which has more to say.
    const upstream = await pool.acquire(definition, scope, { ...handshake, era: 'modern' }, events, 'listing')
    reached(definition)
    return sessionless.seen(definition, upstream)
  }

  /** A list of the upstream changed, or may have. */
  function changed(definition: UpstreamDefinition, kind: ListKind, noticedBy: NoticedBy): void {
    watcherOf(definition)?.changed(kind, noticedBy)
    // A view has a connection of its own, on which the server reports what it means for its clients.
    views.changed(definition, kind)
  }

  /** A connection was opened: an upstream that was away is back. */
  function reached(definition: UpstreamDefinition): void {
    watchers.get(definition.hash)?.reached()
    views.reached(definition)
  }

  return {
    catalogs: { asked: 0, misses: 0 }, // How often merged lists were asked for, and had to be made.
    /** Undefined while the upstream is unknown, or has been down for several tries. */
    peek: (definition: UpstreamDefinition, viewKey?: ViewKey): Listing | undefined =>
      (viewKey === undefined ? undefined : views.peek(definition, viewKey)) ?? watchers.get(definition.hash)?.peek(),
    /** Returns what an upstream listed last, although it has been away for several tries. */
    last: (definition: UpstreamDefinition, viewKey?: ViewKey): Listing | undefined =>
      (viewKey === undefined ? undefined : views.last(definition, viewKey)) ?? watchers.get(definition.hash)?.last(),
    reached,
    spokeOlder: views.spokeOlder,
    sessionless,
    /** The shared listing and the views that differ from it. */
    all: (definition: UpstreamDefinition): Listing[] =>
      [watchers.get(definition.hash)?.peek() ?? [], views.all(definition)].flat(),
    named: (tenant: TenantId, name: UpstreamName) => namedListings(watchers.values(), views, { tenant, name }),
    /** Another object after each change of what `peek` returns. */
    version: ({ hash }: UpstreamDefinition, viewKey?: ViewKey): object =>
      (viewKey === undefined ? sharedVersions : viewVersions).get(hash) ?? noVersion,
    /** Another number after each change of any listing. */
    changeCount: (): number => changeCount,
    /** Opens or keeps the connection that changes are reported on, and reads old lists again. Cheap. */
    markUsed(definition: UpstreamDefinition, viewKey?: ViewKey): void {
      watcherOf(definition)?.markUsed()
      if (viewKey !== undefined) views.of(definition, viewKey)?.markUsed()
    },
    /** Waits until each is known or has failed once, and what is too old was read; at most `waitMs`. Never rejects. */
    awaitListings: (definitions: readonly UpstreamDefinition[], waitMs: number, viewKey?: ViewKey): Promise<void> =>
      settled(clock, waitMs, definitions, (definition) => {
        const shared = watcherOf(definition)?.pending() ?? []
        // There can be no view before the shared listing is known.
        if (viewKey === undefined) return shared
        return afterAll(clock, waitMs, shared, () => views.pending(definition, viewKey, waitMs))
      }),
    /** Waits for the views of upstreams that are known; at most `waitMs`. Never rejects. */
    awaitViews: (definitions: readonly UpstreamDefinition[], waitMs: number, viewKey: ViewKey): Promise<void> =>
      settled(clock, waitMs, definitions, (definition) => views.pending(definition, viewKey, waitMs)),
    /** Reads again what may have changed unseen. */
    revalidate: (definitions: readonly UpstreamDefinition[], waitMs: number, why: Revalidation): Promise<void> =>
      settled(clock, waitMs, definitions, ({ hash }) => {
        const work = watchers.get(hash)?.revalidate(why)
        return work === undefined ? [] : [work]
      }),
    connect,
    changed,
    /** The connection of one session reported a change: clients that declare the same may see something else. */
    recheckView: views.recheck,
    onChange: (listener: ChangeListener): unknown => listeners.push(listener),
    /** Forgets what no configuration names any more. */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      retained = hashes
      changeCount++
      for (const [hash, watcher] of watchers) {
        if (hashes.has(hash)) continue
        watchers.delete(hash)
        for (const versions of [sharedVersions, viewVersions]) versions.delete(hash)
        watcher.close()
      }
      for (const each of [views, sessionless]) each.retain(hashes)
    },
    close(): void {
      isClosed = true
      for (const { close } of [...watchers.values(), views]) close()
    }
  }
}

/** Returns every last listing of upstreams of this name, also those of people who have connected it for themselves. */
const namedListings = (
  watchers: Iterable<ListingWatcher>,
  views: Pick<ReturnType<typeof createViews>, 'all'>,
  { tenant, name }: Pick<UpstreamDefinition, 'tenant' | 'name'>
): Listing[] =>
  [...watchers]
    .filter(({ definition }) => definition.tenant === tenant && definition.name === name)
    .flatMap(({ definition, last }) => [last() ?? [], views.all(definition)].flat())

/** Waits for the first ones, at most `waitMs`, and then as long for those that `next` returns. */
function afterAll(
  clock: Clock,
  waitMs: number,
  first: Array<Promise<unknown>>,
  next: () => Array<Promise<unknown>>
): Array<Promise<unknown>> {
  if (first.length === 0) return next()
  return [allSettledWithin(clock, waitMs, first).then(() => allSettledWithin(clock, waitMs, next()))]
}

async function settled(
  clock: Clock,
  waitMs: number,
  definitions: readonly UpstreamDefinition[],
  pendingOf: (definition: UpstreamDefinition) => Array<Promise<unknown>>
): Promise<void> {
  const pending = definitions.flatMap(pendingOf)
  if (pending.length > 0) await allSettledWithin(clock, waitMs, pending)
}
