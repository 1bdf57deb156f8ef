// How long what an upstream said of its lists holds (2026-07-28 server/utilities/caching). Pure.

import { has } from '../protocol/merge.ts'
import { isModernRevision } from '../protocol/revisions.ts'
import type { Listing } from '../upstream/listing.ts'
import type { ListName } from './catalog.ts'
import { readEveryMs } from './pace.ts'

/** No list is promised for longer: a client that keeps it would not hear of a new policy. */
export const maxTtlMs = 60 * 60 * 1000

const kinds = { tools: 'tools', prompts: 'prompts', resources: 'resources', templates: 'resources' } as const
const names = Object.keys(kinds) as ListName[]

/** Of a list that names no time but whose changes are reported: a report may be lost, so it is looked at now and then. */
const watchedMs = 10_000

/** Is one of the lists older than its server said, or so old that a change may have been missed? */
export function isStale (listing: Listing | undefined, now: number): boolean {
  if (listing?.hints === undefined) return false
  return names.some((name) => {
    const hint = listing.hints?.[name]
    if (hint === undefined) return false
    const untimedMs = has(listing.capabilities, [kinds[name], 'listChanged']) ? watchedMs : readEveryMs
    return now >= hint.fetchedAt + (hint.ttlMs > 0 ? Math.max(hint.ttlMs, readEveryMs) : untimedMs)
  })
}

/** May it be read again for somebody who misses something in it? Servers without hints have said nothing of how long their lists hold. */
export function isRereadable (listing: Listing | undefined, now: number): boolean {
  return Object.values(listing?.hints ?? {}).some(({ fetchedAt }) => now >= fetchedAt + readEveryMs)
}

/**
 * For how many milliseconds clients may keep lists that are merged from these listings; an upstream without such a list says nothing.
 * @param listings undefined: an upstream that may appear at any time
 */
export function freshFor (listings: ReadonlyArray<Listing | undefined>, lists: readonly ListName[], now: number): number {
  let shortest = maxTtlMs
  for (const listing of listings) {
    if (listing === undefined || !isModernRevision(listing.revision)) return 0
    for (const name of lists) {
      if (!has(listing.capabilities, [kinds[name]])) continue
      const hint = listing.hints?.[name]
      shortest = Math.min(shortest, hint === undefined ? 0 : hint.fetchedAt + hint.ttlMs - now)
    }
  }
  // A clock that was set back makes nothing fresher than it was.
  return Math.max(0, Math.floor(shortest))
}

/** `ttlMs` as an upstream gave it, made fit to be passed on. */
export function cappedTtl (ttlMs: unknown): number {
  return typeof ttlMs === 'number' && ttlMs > 0 ? Math.min(Math.floor(ttlMs), maxTtlMs) : 0
}
