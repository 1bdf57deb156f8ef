// The last good listing of an upstream: held in memory for callers, and kept in the store for a restart.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { holdMemory, type MemoryShare } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { ListKind } from '../../protocol/seams.ts'
import { listingKey, listingTtlMs } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Clock } from '../../time/clock.ts'
import { runSteps } from '../../time/turns.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { shareTools } from '../../vault/shared-tools.ts'
import { changesBetween } from './freshness.ts'
import { listingText, parseListing } from './past/listing-text.ts'
import { notePast } from './past/past-listings.ts'

/** After this many failed readings in a row a listing is hidden, so that a short failure does not hide its tools. */
const failuresUntilHidden = 3
/** The shortest time between two writes of an unchanged listing to the store. */
const minWriteIntervalMs = 60_000

/**
 * Holds the last listing of an upstream and reports what changed in it. Several failed readings in a row hide it.
 * @param onChange see `ListingWatcherOptions`
 */
export function createHeldListing(
  memory: MemoryShare,
  onChange: (kinds: ReadonlySet<ListKind>, isFirst: boolean) => void
) {
  const taken = holdMemory(memory)
  const reported = new Set<ListKind>()
  const firstAnswer = Promise.withResolvers<void>()
  let listing: Listing | undefined
  let failures = 0
  let hasAnswered = false

  const shown = (): Listing | undefined => (failures >= failuresUntilHidden ? undefined : listing)

  function settle(): void {
    hasAnswered = true
    firstAnswer.resolve()
  }

  /** @returns whether `shown` returns something else than before */
  function update(next: Listing | undefined, nextFailures: number): boolean {
    const before = shown()
    listing = next
    failures = nextFailures
    const kinds = changesBetween(before, shown())
    if (kinds !== undefined || reported.size > 0) onChange(new Set([...(kinds ?? []), ...reported]), !hasAnswered)
    reported.clear()
    settle()
    return kinds !== undefined
  }

  return {
    /** The listing; undefined while it is unknown or hidden. */
    shown,
    /** The listing, even if it is hidden. */
    last: (): Listing | undefined => listing,
    failures: (): number => failures,
    /** Resolves with the first answer or failure; undefined once there was one. */
    firstAnswer: (): Promise<void> | undefined => (hasAnswered ? undefined : firstAnswer.promise),
    /** The server said that a list has changed: `onChange` names it after the next reading, even if it is the same. */
    reportedByServer(kind: ListKind): void {
      reported.add(kind)
    },
    /** Takes a listing from the store. @param size in bytes, as `jsonSizeOf` counts them */
    restored(stored: Listing, size: number): void {
      taken.set(size)
      update(stored, failures)
    },
    /** Takes a listing of that size from the upstream. @returns whether `shown` returns something else than before */
    read(next: Listing, size: number): boolean {
      taken.set(size)
      return update(next, 0)
    },
    /** Counts a failed reading. */
    failed(error: unknown): void {
      // A limit of the gateway, such as that of processes, says nothing about the upstream, so it hides nothing.
      const isOurLimit = error instanceof GatewayError && error.code === 'too_many'
      update(listing, isOurLimit ? Math.min(failures + 1, failuresUntilHidden - 1) : failures + 1)
    },
    close(): void {
      taken.set(0)
      settle()
    }
  }
}

/** Keeps a listing in the store for the next start of the gateway. Its methods log errors and never reject. */
export function createStoredListing(store: Store, definition: UpstreamDefinition, clock: Clock, log: Log) {
  const { hash, name, tenant } = definition
  const owner = { tenant, caller: `lists of ${name}` }
  let writtenAt = -Infinity
  let unsaved: { readonly listing: Listing; readonly hasChanged: boolean } | undefined
  let isSaving = false

  async function write(listing: Listing, hasChanged: boolean): Promise<void> {
    const now = clock.now()
    if (!hasChanged && now - writtenAt < minWriteIntervalMs) return
    const isFirst = writtenAt === -Infinity
    writtenAt = now
    try {
      const text = await runSteps(listingText(listing), owner)
      if (hasChanged || isFirst) await notePast({ store, hash, owner }, { listing, text }, now)
      await store.set(listingKey(hash), text, { ttlMs: listingTtlMs })
      if (!listing.failed.includes('tools')) await shareTools(store, definition, listing.tools)
    } catch (err) {
      log.warn({ err, upstream: name }, 'the listing could not be stored; after a restart the upstream is asked again')
    }
  }

  return {
    async load(): Promise<Listing | undefined> {
      try {
        const text = await store.get(listingKey(hash))
        return text === undefined ? undefined : await runSteps(parseListing(text), owner)
      } catch (err) {
        log.warn({ err, upstream: name }, 'the stored listing could not be read; the upstream is asked for it')
        return undefined
      }
    },
    /**
     * Writes a listing if it has changed, or if the last write is old enough; of those that come while one is written,
     * the last. Should not be awaited, since a slow store would delay the next reading.
     */
    async save(listing: Listing, hasChanged: boolean): Promise<void> {
      unsaved = { listing, hasChanged: hasChanged || unsaved?.hasChanged === true }
      if (isSaving) return
      isSaving = true
      for (let next = unsaved as typeof unsaved | undefined; next !== undefined; next = unsaved) {
        unsaved = undefined
        await write(next.listing, next.hasChanged)
      }
      isSaving = false
    }
  }
}
