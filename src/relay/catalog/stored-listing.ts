// The listing of an upstream as the store keeps it, for restarts. Another version of the gateway may have written it:
// what does not look like a listing is none.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { isObject } from '../../protocol/messages.ts'
import { listingKey, listingTtlMs } from '../../store/keys.ts'
import type { Store } from '../../store/port.ts'
import type { Clock } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'

const keys = { tools: 'name', prompts: 'name', resources: 'uri', templates: 'uriTemplate' } as const

// Lists that are read again every second are not written every second.
const minWriteIntervalMs = 60_000

/** Its methods never reject: a store that is away costs a restart its memory, and nobody else anything. */
export interface StoredListing {
  load(): Promise<Listing | undefined>
  /** Writes it where it has changed, and else once a minute at most. */
  save(listing: Listing, hasChanged: boolean): Promise<void>
}

export function createStoredListing(
  store: Store,
  { hash, name }: UpstreamDefinition,
  clock: Clock,
  log: Log
): StoredListing {
  const key = listingKey(hash)
  let writtenAt = -Infinity
  return {
    async load() {
      try {
        const text = await store.get(key)
        return text === undefined ? undefined : parseListing(text)
      } catch (err) {
        log.warn({ err, upstream: name }, 'no earlier listing could be read')
        return undefined
      }
    },
    async save(listing, hasChanged) {
      const now = clock.now()
      if (!hasChanged && now - writtenAt < minWriteIntervalMs) return
      writtenAt = now
      try {
        await store.set(key, JSON.stringify(listing), { ttlMs: listingTtlMs })
      } catch (err) {
        log.warn({ err, upstream: name }, 'the listing could not be kept; a restart will have to ask again')
      }
    }
  }
}

/**
 * @returns undefined for what is no listing
 * @throws SyntaxError for what is no JSON
 */
export function parseListing(text: string): Listing | undefined {
  const value: unknown = JSON.parse(text)
  if (!isObject(value) || !isObject(value['capabilities'])) return undefined
  const isWhole = Object.entries(keys).every(([member, key]) => {
    const list = value[member]
    return Array.isArray(list) && list.every((entry) => isObject(entry) && typeof entry[key] === 'string')
  })
  return isWhole ? (value as unknown as Listing) : undefined
}
