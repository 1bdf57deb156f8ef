// How long the lists of upstreams stay fresh (2026-07-28 server/utilities/caching), how often they are read, and what
// changed between two readings.

import { hasCapability, tasksExtension } from '../../protocol/methods.ts'
import { isModernRevision, isObject, type ServerCapabilities } from '../../protocol/messages.ts'
import type { Listing, ListingPart } from '../../upstream/listing/listing.ts'
import type { ListName } from './catalog.ts'
import { backoffMs, type Clock, createDelay, pause } from '../../time/clock.ts'
import type { ListKind } from '../../protocol/seams.ts'
import { isSameJson } from './past/same-entries.ts'

/** The longest time to live that clients get for a list: a client that caches it for longer misses a new policy. */
export const maxTtlMs = 60 * 60 * 1000

const kinds = { tools: 'tools', prompts: 'prompts', resources: 'resources', templates: 'resources' } as const
const names = Object.keys(kinds) as ListName[]

/** The time, in milliseconds, after which a list with `listChanged` and no `ttlMs` is stale: a report may be lost. */
const watchedMs = 10_000

/**
 * Returns whether one of the lists is older than the `ttlMs` of its server, or so old that a `list_changed` may have
 * been missed.
 * @param now epoch ms
 */
export function isStale(listing: Listing | undefined, now: number): boolean {
  if (listing?.hints === undefined) return false
  return names.some((name) => {
    const hint = listing.hints?.[name]
    if (hint === undefined) return false
    const untimedMs = hasCapability(listing.capabilities, [kinds[name], 'listChanged']) ? watchedMs : 0
    return now >= hint.fetchedAt + Math.max(hint.ttlMs > 0 ? hint.ttlMs : untimedMs, readIntervalOf(entriesOf(listing)))
  })
}

/**
 * Returns whether a listing may be read again because a name is missing in it: its last reading is long enough ago.
 * False for listings without caching hints.
 * @param now epoch ms
 */
export function mayRevalidate(listing: Listing | undefined, now: number): boolean {
  const hints = Object.values(listing?.hints ?? {})
  return listing !== undefined && hints.some(({ fetchedAt }) => now >= fetchedAt + readIntervalOf(entriesOf(listing)))
}

/**
 * Returns the remaining time to live of lists that are merged from these listings, in milliseconds.
 * @param listings undefined stands for an upstream without a listing, which may get one at any time
 * @param now epoch ms
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
  // At most `maxTtlMs`, even if the clock was set back.
  return Math.max(0, Math.floor(shortest))
}

/**
 * Returns the remaining time to live of an answer to `server/discover`, in milliseconds: the shortest of all lists and
 * of all `server/discover` answers of the upstreams.
 */
export const remainingDiscoveryMs = (listings: ReadonlyArray<Listing | undefined>, now: number): number =>
  Math.min(remainingTtlMs(listings, names, now), ...listings.map((listing) => cappedTtlMs(listing?.discoveryTtlMs)))

/** Returns the `ttlMs` of an upstream, limited to `maxTtlMs`, in whole milliseconds; 0 if it is no positive number. */
export function cappedTtlMs(ttlMs: unknown): number {
  return typeof ttlMs === 'number' && ttlMs > 0 ? Math.min(Math.floor(ttlMs), maxTtlMs) : 0
}

/** The average time between the starts of two readings of a listing, in milliseconds. */
const readIntervalMs = 1_000
/** The number of readings that may follow the first without a wait: servers send several changes in a row. */
export const readBurst = 3

/** A longer listing is read less often: one interval for each so many entries. */
const entriesPerInterval = 1_000

/** Returns the number of entries in all lists of a listing, or of a part of one. */
export const entriesOf = (lists: ListingPart | undefined): number =>
  names.reduce((sum, name) => sum + (lists?.[name]?.length ?? 0), 0)

/** Returns the time between two readings, in milliseconds. @param entries of the lists of the last reading, or some */
const readIntervalOf = (entries: number): number => Math.max(1, entries / entriesPerInterval) * readIntervalMs

/**
 * Resolves when the next reading may begin, or when the signal is aborted. Never rejects.
 * @param entries of the lists that were read last: the more there are, the longer the wait
 */
export type ReadRate = (signal: AbortSignal, entries: number) => Promise<void>

/**
 * Returns a rate limit that several readers share. Without it a server could make the gateway read whole listings for
 * `list_changed` notifications of a few bytes.
 */
export function createReadRate(clock: Clock): ReadRate {
  const aheadMs = readBurst * readIntervalMs
  // When the next reading would be due if they were spread evenly.
  let dueAt = -Infinity
  let last = Promise.resolve()
  async function next(signal: AbortSignal, intervalMs: number): Promise<void> {
    // A clock that was set back must not stop the reading.
    const waitMs = Math.min(dueAt - aheadMs - clock.now(), intervalMs)
    if (waitMs > 0) await pause(clock, waitMs, signal)
    const now = clock.now()
    dueAt = Math.min(Math.max(dueAt, now), now + aheadMs) + intervalMs
  }
  return (signal, entries) => (last = last.then(() => next(signal, readIntervalOf(entries))))
}

const reportEveryMs = 1_000

/**
 * Returns a function that reports changed kinds of lists to `tell`: the first change at once, further changes at most
 * once in `reportEveryMs`, together. A server can send `list_changed` as often as it likes.
 */
export function createPacedReports(clock: Clock, tell: (kinds: readonly ListKind[]) => void): (kind: ListKind) => void {
  const untold = new Set<ListKind>()
  const delay = createDelay(clock)
  const tellAll = (): void => {
    if (untold.size === 0) return
    const kinds = [...untold]
    untold.clear()
    delay.start(reportEveryMs, tellAll)
    tell(kinds)
  }
  return (kind) => {
    untold.add(kind)
    if (!delay.pending) tellAll()
  }
}

export type Redundancy = ReturnType<typeof createRedundancy>

/** The longest time, in milliseconds, for which a view is not read again: the server may list something else by now. */
const maxMs = 10 * 60_000
/** The time, in milliseconds, until the first reading after a change. Doubles with each reading that finds none. */
const firstMs = 10_000

/**
 * Decides for how long a view that equalled the shared listing is assumed to equal it still, so that it need not be
 * read: each reading of a view opens a connection.
 * @param shared the shared listing
 * @param isSame returns whether a view equals it; called once for each reading
 */
export function createRedundancy(
  shared: () => Listing | undefined,
  isSame: (listing: Listing) => boolean,
  clock: Clock
) {
  let timesSame = 0
  let comparedAt = 0
  let isDoubtful = false
  return {
    shared,
    /** Returns whether the view is assumed to equal the shared listing now. */
    holds(): boolean {
      if (timesSame === 0) return false
      return clock.now() < comparedAt + (isDoubtful ? backoffMs(timesSame - 1, { firstMs, maxMs }) : maxMs)
    },
    /** Must be called when the view has been read. */
    compare(listing: Listing): void {
      timesSame = isSame(listing) ? timesSame + 1 : 0
      comparedAt = clock.now()
      isDoubtful = false
    },
    /** Must be called after a `list_changed`. @returns whether the view equalled the shared listing when last read */
    doubt: (): boolean => (isDoubtful = timesSame > 0)
  }
}

type EntryLists = Pick<Listing, ListName>

/**
 * Returns the kinds of lists that differ. Resources and templates are one kind, as in
 * `notifications/resources/list_changed`.
 */
export const changedKinds = (before: EntryLists | undefined, after: EntryLists | undefined): Set<ListKind> =>
  new Set(names.filter((name) => differ(before?.[name], after?.[name])).map((name) => kinds[name]))

/**
 * Compares two listings.
 * @returns the kinds of lists that differ; undefined if nothing differs; an empty set if only the capabilities, the
 * server info, the instructions or the revision differ
 */
export function changesBetween(before: Listing | undefined, after: Listing | undefined): Set<ListKind> | undefined {
  if (before === after) return undefined
  const changed = changedKinds(before, after)
  const info = (listing: Listing | undefined): unknown[] =>
    listing === undefined ? [] : [listing.capabilities, listing.serverInfo, listing.instructions, listing.revision]
  return changed.size > 0 || differ(info(before), info(after)) ? changed : undefined
}

/**
 * Returns whether a client should get the view in place of the shared listing. If the shared listing is of 2026-07-28,
 * the view must be of an older revision and offer at least as much. It is better then even if it offers nothing more:
 * SDKs send in the older era, as server requests, what they send as `input_required` in the newer one, and older tools
 * that use server requests work only there.
 */
export function replaces(view: Listing, shared: Listing): boolean {
  if (isModernRevision(view.revision)) return false
  if (!isModernRevision(shared.revision)) return changesBetween(shared, view) !== undefined
  return namesOf(view).isSupersetOf(namesOf(shared)) && offersAll(view.capabilities, shared.capabilities)
}

/** Tasks are an extension in 2026-07-28 and a capability in older revisions. */
const offersAll = (older: ServerCapabilities, { extensions, ...newer }: ServerCapabilities): boolean =>
  Object.keys(newer).every((name) => hasCapability(older, [name])) &&
  Object.keys(isObject(extensions) ? extensions : {}).every((name) =>
    hasCapability(older, name === tasksExtension ? ['tasks'] : ['extensions', name])
  )

const namesOf = ({ tools, prompts, resources, templates }: Listing): Set<string> =>
  new Set([
    ...tools.map(({ name }) => `tool ${String(name)}`),
    ...prompts.map(({ name }) => `prompt ${String(name)}`),
    ...resources.map(({ uri }) => `resource ${String(uri)}`),
    ...templates.map(({ uriTemplate }) => `template ${String(uriTemplate)}`)
  ])

/** Stops at the first difference; what is the same is mostly the same object (`keepSame`). */
const differ = (before: readonly unknown[] = [], after: readonly unknown[] = []): boolean => !isSameJson(before, after)
