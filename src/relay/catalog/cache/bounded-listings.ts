// How much of the lists of its members an endpoint looks at: its catalog is built in one turn of the event loop.

import type { Endpoint } from '../../../config/snapshot.ts'
import type { Log } from '../../../observe/log.ts'
import type { UpstreamName } from '../../../protocol/messages.ts'
import type { Listing } from '../../../upstream/listing/listing.ts'
import { entriesOf } from '../freshness.ts'

/** Entries of all lists of all members, offered or not. */
const maxEntries = 20_000

type ListingsByName = ReadonlyMap<UpstreamName, Listing>

/**
 * Returns a function that shortens the listings of an endpoint's members: with more than `maxEntries` together, none
 * keeps more than all can keep, so that a long one takes no place of a short one. It returns the same object for the
 * same listing and length.
 */
export function createBoundedListings(log: Log) {
  const shortened = new WeakMap<Listing, { readonly length: number; readonly listing: Listing }>()
  const reported = new WeakSet<Endpoint>()

  function shorten(listing: Listing, length: number): Listing {
    if (entriesOf(listing) <= length) return listing
    const known = shortened.get(listing)
    if (known?.length === length) return known.listing
    let left = length
    const some = <Entry>(list: readonly Entry[]): readonly Entry[] => {
      const kept = list.slice(0, left)
      left -= kept.length
      return kept
    }
    const { tools, prompts, resources, templates } = listing
    const lists = { tools: some(tools), prompts: some(prompts), resources: some(resources), templates: some(templates) }
    const made = { ...listing, ...lists }
    shortened.set(listing, { length, listing: made })
    return made
  }

  return (endpoint: Endpoint, listings: ListingsByName): ListingsByName => {
    const length = longestOf([...listings.values()].map(entriesOf))
    if (length === Infinity) return listings
    if (!reported.has(endpoint))
      log.warn(
        { tenant: endpoint.tenant, endpoint: endpoint.name, max: maxEntries, ofEachUpstream: length },
        'the upstreams of an endpoint list more than it looks at: the rest of the longest lists is left out; divide ' +
          'them among several endpoints'
      )
    reported.add(endpoint)
    return new Map([...listings].map(([name, listing]) => [name, shorten(listing, length)]))
  }
}

/** Returns the length that longer listings are cut to, so that all together have `maxEntries`; Infinity: none is. */
function longestOf(lengths: readonly number[]): number {
  let left = maxEntries
  const sorted = lengths.toSorted((a, b) => a - b)
  for (const [at, length] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - at))
    if (length > share) return share
    left -= length
  }
  return Infinity
}
