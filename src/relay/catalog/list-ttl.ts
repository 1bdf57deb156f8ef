// For how long the lists of upstreams hold (2026-07-28 server/utilities/caching). Pure.

import { hasCapability } from '../../protocol/translate/merge.ts'
import { isModernRevision } from '../../protocol/messages.ts'
import type { Listing } from '../../upstream/listing/listing.ts'
import type { ListName } from './catalog.ts'
import { readIntervalMs } from './read-rate.ts'

/** A client that keeps a list for longer would not see a new policy. */
const maxTtlMs = 60 * 60 * 1000

const kinds = { tools: 'tools', prompts: 'prompts', resources: 'resources', templates: 'resources' } as const
const names = Object.keys(kinds) as ListName[]

/** For a list without a time to live whose changes are reported: a report may be lost. */
const watchedMs = 10_000

/** Is one of the lists older than its server said, or so old that a change may have been missed? */
export function isStale(listing: Listing | undefined, now: number): boolean {
  if (listing?.hints === undefined) return false
  return names.some((name) => {
    const hint = listing.hints?.[name]
    if (hint === undefined) return false
    const untimedMs = hasCapability(listing.capabilities, [kinds[name], 'listChanged']) ? watchedMs : readIntervalMs
    return now >= hint.fetchedAt + (hint.ttlMs > 0 ? Math.max(hint.ttlMs, readIntervalMs) : untimedMs)
  })
}

/** May it be read again because a name is missing? Servers without hints have not said how long their lists hold. */
export function mayRevalidate(listing: Listing | undefined, now: number): boolean {
  return Object.values(listing?.hints ?? {}).some(({ fetchedAt }) => now >= fetchedAt + readIntervalMs)
}

/**
 * For how many milliseconds clients may keep lists that are merged from these listings.
 * @param listings undefined: an upstream that may appear at any time
 */
export function remainingTtlMs(
  listings: ReadonlyArray<Listing | undefined>,
  lists: readonly ListName[],
  now: number
): number {
  let shortest = maxTtlMs
  for (const listing of listings) {
    if (listing === undefined || !isModernRevision(listing.revision)) return 0
    for (const name of lists) {
      if (!hasCapability(listing.capabilities, [kinds[name]])) continue
      const hint = listing.hints?.[name]
      shortest = Math.min(shortest, hint === undefined ? 0 : hint.fetchedAt + hint.ttlMs - now)
    }
  }
  // A clock that was set back makes nothing fresher than it was.
  return Math.max(0, Math.floor(shortest))
}

/** `ttlMs` of an upstream as clients may get it. */
export function cappedTtlMs(ttlMs: unknown): number {
  return typeof ttlMs === 'number' && ttlMs > 0 ? Math.min(Math.floor(ttlMs), maxTtlMs) : 0
}
