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
 * Returns a function that shortens the listings of an endpoint's members, of those that are known and of those that are
 * away: with more than `maxEntries` together, none keeps more than all can keep, so that a long one takes no place of a
 * short one. It returns the same object for the same listing and length.
 */
export function createBoundedListings(log: Log) {
  const made = new WeakMap<Listing, { readonly length: number; readonly listing: Listing }>()
  const reported = new WeakSet<Endpoint>()

  function shorten(listing: Listing, length: number): Listing {
    if (entriesOf(listing) <= length) return listing
    const before = made.get(listing)
    if (before?.length === length) return before.listing
    let left = length
    const some = <Entry>(list: readonly Entry[]): readonly Entry[] => {
      const kept = list.slice(0, left)
      left -= kept.length
      return kept
    }
    const { tools, prompts, resources, templates } = listing
    const lists = { tools: some(tools), prompts: some(prompts), resources: some(resources), templates: some(templates) }
    const short = { ...listing, ...lists }
    made.set(listing, { length, listing: short })
    return short
  }

  return (
    endpoint: Endpoint,
    known: ListingsByName,
    away: ListingsByName
  ): readonly [ListingsByName, ListingsByName] => {
    const length = longestOf([...known.values(), ...away.values()].map(entriesOf), maxEntries)
    if (length === Infinity) return [known, away]
    if (!reported.has(endpoint))
      log.warn(
        { tenant: endpoint.tenant, endpoint: endpoint.name, max: maxEntries, ofEachUpstream: length },
        'the upstreams of an endpoint list more than it looks at: the rest of the longest lists is left out; divide ' +
          'them among several endpoints'
      )
    reported.add(endpoint)
    const shortened = (listings: ListingsByName): ListingsByName =>
      new Map([...listings].map(([name, listing]) => [name, shorten(listing, length)]))
    return [shortened(known), shortened(away)]
  }
}

/**
 * Returns the length that longer lists are cut to, at least 1, so that all together have no more than `max`, or one
 * each; Infinity: none is cut.
 */
export function longestOf(lengths: readonly number[], max: number): number {
  let left = max
  const sorted = lengths.toSorted((a, b) => a - b)
  for (const [at, length] of sorted.entries()) {
    const share = Math.max(1, Math.floor(left / (sorted.length - at)))
    if (length > share) return share
    left -= length
  }
  return Infinity
}
