// What one legacy server lists for clients that declare certain capabilities, read on a connection that declares them.
// A view that is the same as the shared listing is not watched.

import { hash } from 'node:crypto'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { noClient, type ListKind } from '../../protocol/seams.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { changesBetween } from './listing-diff.ts'
import { createListingWatcher, type ListingWatcher } from './listing-watcher.ts'
import type { ReadRate } from './read-rate.ts'
import { createRedundancy } from './redundancy.ts'
import type { ViewKey } from './view-key.ts'
import type { ViewsOptions } from './views.ts'

export interface View {
  readonly viewKey: ViewKey
  readonly watcher: ListingWatcher
  /** Milliseconds since the epoch. */
  readonly openedAt: number
  /** Is it the same as the shared listing? It is taken to be so until it was read. */
  isShared(): boolean
  /** Undefined where it is shared, and while it could not be read. */
  listing(): Listing | undefined
  sharedListingChanged(): void
}

/**
 * @param onChange what became different for the clients of the view; empty where only the server says something else of
 * itself
 */
export function createView(
  { pool, clock, log, handshake, sharedListing }: ViewsOptions,
  definition: UpstreamDefinition,
  viewKey: ViewKey,
  readRate: ReadRate,
  onChange: (kinds: ReadonlySet<ListKind>) => void
): View {
  const scope = `listing:${definition.hash}:${hash('sha256', viewKey.key, 'base64url')}`
  let isShared = true
  /** What its clients saw last. */
  let seen = sharedListing(definition)

  const own = (): Listing | undefined => (isShared ? undefined : watcher.peek())

  function reportChange(): void {
    const before = seen
    seen = own() ?? sharedListing(definition)
    const kinds = changesBetween(before, seen)
    if (kinds !== undefined) onChange(kinds)
  }

  const watcher: ListingWatcher = createListingWatcher({
    definition,
    source: {
      // It declares what it cannot do: no client is behind it. It reads lists, and calls nothing.
      connect: () =>
        pool.acquire(
          definition,
          scope,
          { ...handshake, capabilities: viewKey.capabilities, era: 'legacy' },
          {
            listChanged: (kind) => watcher.changed(kind),
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
    readRate,
    clock,
    log,
    onChange() {
      if (!isShared) reportChange()
    },
    redundancy: createRedundancy((listing) => {
      const shared = sharedListing(definition)
      isShared = shared !== undefined && changesBetween(shared, listing) === undefined
      reportChange()
      return isShared
    }, clock)
  })

  return {
    viewKey,
    watcher,
    openedAt: clock.now(),
    isShared: () => isShared,
    listing: own,
    sharedListingChanged() {
      watcher.recheck()
      if (own() === undefined) seen = sharedListing(definition)
    }
  }
}
