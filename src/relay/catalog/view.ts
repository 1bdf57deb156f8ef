// One view: its listing, whether that is the same as the shared one, and who is told of its changes.

import { hash } from 'node:crypto'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { MemoryAccount } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import { type ClientCapabilities, isModernRevision } from '../../protocol/messages.ts'
import { type HandshakeParams, type ListKind, noClient } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { changesBetween, createRedundancy, type ReadRate, replaces } from './freshness.ts'
import { createListingWatcher, type ListingWatcher } from './listing-watcher.ts'

/**
 * What a client declares, as far as it decides what servers list. A legacy server is told at the handshake, and may
 * register tools only for clients that can answer its requests; one of 2026-07-28 must not (server/tools, "Listing
 * Tools").
 */
export interface ViewKey {
  /** Equal for equal capabilities. */
  readonly key: string
  /** The id of the view: different for sessions and callers. */
  readonly id: string
  readonly capabilities: ClientCapabilities
  /** The quota of the person behind the client: one person may make only few views. */
  readonly quotaKey: string
  /** Are connections that all clients of one principal share told this too? */
  readonly pooled: boolean
}

/** Whether the lists of clients with this view changed; undefined: of clients that declare nothing. */
export type IsAffected = (viewKey: ViewKey | undefined) => boolean

export interface ViewsOptions {
  readonly pool: Pool
  readonly clock: Clock
  readonly log: Log
  readonly memory: MemoryAccount
  readonly handshake: HandshakeParams
  /** Undefined while it is unknown. */
  readonly sharedListing: (definition: UpstreamDefinition) => Listing | undefined
  /** @param view `key` of the view */
  readonly onChange: (
    definition: UpstreamDefinition,
    kinds: ReadonlySet<ListKind>,
    isAffected: IsAffected,
    view: string
  ) => void
}

export type View = ReturnType<typeof createView>

/**
 * A view that is the same as the shared listing is not watched.
 * @param onChange what became different for its clients; empty where only the server says something else of itself
 */
export function createView(
  { pool, clock, log, memory, handshake, sharedListing }: ViewsOptions,
  definition: UpstreamDefinition,
  viewKey: ViewKey,
  { nextRead, eras }: { readonly nextRead: ReadRate; readonly eras: { onlyModern: boolean } },
  onChange: (kinds: ReadonlySet<ListKind>) => void
) {
  const scope = `listing:${definition.hash}:${hash('sha256', viewKey.key, 'base64url')}`
  // It is taken to be so until it was read.
  let isShared = true
  /** The listing that clients of the view saw last. */
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
    redundancy: createRedundancy(
      () => sharedListing(definition),
      (listing) => {
        const shared = sharedListing(definition)
        // The server refused the older era, or nothing says that it has one.
        eras.onlyModern = isModernRevision(listing.revision)
        isShared = shared !== undefined && !replaces(listing, shared)
        reportChange(new Set())
        return isShared
      },
      clock
    )
  })

  return {
    definition,
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
