// The last good listing of an upstream in the store, for a restart.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { listingKey, listingTtlMs } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Clock } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import { shareTools } from '../../vault/shared-tools.ts'
import { parseListing } from './past/listing-text.ts'
import { notePast } from './past/past-listings.ts'

// Lists that are read again every second are not written every second.
const minWriteIntervalMs = 60_000

/**
 * Keeps a listing in the store for the next start. Its methods never reject: without the store, only a restart loses
 * something.
 */
export function createStoredListing(store: Store, definition: UpstreamDefinition, clock: Clock, log: Log) {
  const { hash, name } = definition
  let writtenAt = -Infinity
  return {
    async load(): Promise<Listing | undefined> {
      try {
        const text = await store.get(listingKey(hash))
        return text === undefined ? undefined : parseListing(text)
      } catch (err) {
        log.warn({ err, upstream: name }, 'no earlier listing could be read')
        return undefined
      }
    },
    /**
     * Writes it where it has changed, and else once a minute at most. Never rejects; nobody should wait for it: a slow
     * store would put off the next reading of lists.
     */
    async save(listing: Listing, hasChanged: boolean): Promise<void> {
      const now = clock.now()
      if (!hasChanged && now - writtenAt < minWriteIntervalMs) return
      const isFirst = writtenAt === -Infinity
      writtenAt = now
      try {
        if (hasChanged || isFirst) await notePast(store, hash, listing, now)
        await store.set(listingKey(hash), JSON.stringify(listing), { ttlMs: listingTtlMs })
        if (!listing.failed.includes('tools')) await shareTools(store, definition, listing.tools)
      } catch (err) {
        log.warn({ err, upstream: name }, 'the listing could not be kept; a restart will have to ask again')
      }
    }
  }
}
