// How long the lists of upstreams hold (2026-07-28 server/utilities/caching), how often they are read, and what a
// reading has changed.

import { hasCapability, tasksExtension } from '../../protocol/methods.ts'
import { isModernRevision, isObject, type ServerCapabilities } from '../../protocol/messages.ts'
import type { Listing, ListingPart } from '../../upstream/listing/listing.ts'
import type { ListName } from './catalog.ts'
import { backoffMs, type Clock, createDelay, pause } from '../../time/clock.ts'
import type { ListKind } from '../../protocol/seams.ts'

/** A client that keeps a list for longer would not see a new policy. */
export const maxTtlMs = 60 * 60 * 1000

const kinds = { tools: 'tools', prompts: 'prompts', resources: 'resources', templates: 'resources' } as const
const names = Object.keys(kinds) as ListName[]

/** The life of a list without a time to live whose changes are reported: a report may be lost. */
const watchedMs = 10_000

/** Is one of the lists older than its server said, or so old that a change may have been missed? */
export function isStale(listing: Listing | undefined, now: number): boolean {
  if (listing?.hints === undefined) return false
  return names.some((name) => {
    const hint = listing.hints?.[name]
    if (hint === undefined) return false
    const untimedMs = hasCapability(listing.capabilities, [kinds[name], 'listChanged']) ? watchedMs : 0
    return now >= hint.fetchedAt + Math.max(hint.ttlMs > 0 ? hint.ttlMs : untimedMs, readIntervalOf(listing))
  })
}

/** May it be read again because a name is missing? Servers without hints have not said how long their lists hold. */
export function mayRevalidate(listing: Listing | undefined, now: number): boolean {
  const hints = Object.values(listing?.hints ?? {})
  return listing !== undefined && hints.some(({ fetchedAt }) => now >= fetchedAt + readIntervalOf(listing))
}

/**
 * Returns the remaining life of lists that are merged from these listings, in milliseconds.
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

/** Returns the remaining life of an answer of `server/discover`: no longer than each listing, and its lists, allow. */
export const remainingDiscoveryMs = (listings: ReadonlyArray<Listing | undefined>, now: number): number =>
  Math.min(remainingTtlMs(listings, names, now), ...listings.map((listing) => cappedTtlMs(listing?.discoveryTtlMs)))

/** `ttlMs` of an upstream as clients may get it. */
export function cappedTtlMs(ttlMs: unknown): number {
  return typeof ttlMs === 'number' && ttlMs > 0 ? Math.min(Math.floor(ttlMs), maxTtlMs) : 0
}

/** Milliseconds from the beginning of one reading to the next, over time. */
const readIntervalMs = 1_000
/** The reads that may follow the first at once: changes come in twos and threes, and clients wait for them. */
export const readBurst = 3

/** A longer list is read less often: so much of the interval for each entry. */
const entriesPerInterval = 1_000

/** Milliseconds for a listing or a part of one, as it was last read. */
function readIntervalOf(lists: ListingPart | undefined): number {
  const entries = names.reduce((sum, name) => sum + (lists?.[name]?.length ?? 0), 0)
  return Math.max(1, entries / entriesPerInterval) * readIntervalMs
}

/**
 * Resolves when the next reading may begin, or when the signal is aborted. Never rejects.
 * @param last what was read last: what it takes to read it grows with its length
 */
export type ReadRate = (signal: AbortSignal, last?: ListingPart) => Promise<void>

/**
 * The rate of readers that take turns: `list_changed` costs its sender a few bytes, and the gateway a whole listing.
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
  return (signal, lists) => (last = last.then(() => next(signal, readIntervalOf(lists))))
}

const reportEveryMs = 1_000

/** `list_changed` costs its sender nothing: the first is told at once, and then those of a second together. */
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

/** A server may have come to list something else. */
const maxMs = 10 * 60_000
/** The time until the first look after a change; twice as long after each look that showed the same. */
const firstMs = 10_000

/**
 * For how long a view that was the same as the shared listing is taken to be so: each look at it takes a connection.
 * @param isSame whether what was read is the same as the shared listing; called once for each reading
 */
export function createRedundancy(isSame: (listing: Listing) => boolean, clock: Clock) {
  let timesSame = 0
  let comparedAt = 0
  let isDoubtful = false
  return {
    holds(): boolean {
      if (timesSame === 0) return false
      return clock.now() < comparedAt + (isDoubtful ? backoffMs(timesSame - 1, { firstMs, maxMs }) : maxMs)
    },
    /** The view was read. */
    compare(listing: Listing): void {
      timesSame = isSame(listing) ? timesSame + 1 : 0
      comparedAt = clock.now()
      isDoubtful = false
    },
    /** Something changed. @returns false where the view was not the same when it was read last */
    doubt: (): boolean => (isDoubtful = timesSame > 0)
  }
}

type EntryLists = Pick<Listing, ListName>

/** Resources and templates are one kind, as in `notifications/resources/list_changed`. */
export const changedKinds = (before: EntryLists | undefined, after: EntryLists | undefined): Set<ListKind> =>
  new Set(names.filter((name) => differ(before?.[name], after?.[name])).map((name) => kinds[name]))

/** @returns undefined where all is the same; no kinds where only the server says something else of itself */
export function changesBetween(before: Listing | undefined, after: Listing | undefined): Set<ListKind> | undefined {
  if (before === after) return undefined
  const changed = changedKinds(before, after)
  const info = (listing: Listing | undefined): unknown[] =>
    listing === undefined ? [] : [listing.capabilities, listing.serverInfo, listing.instructions, listing.revision]
  return changed.size > 0 || differ(info(before), info(after)) ? changed : undefined
}

/**
 * Does the view take the place of the shared listing? Of a server that was listed in 2026-07-28, it is that of the
 * older era, which has to offer all that the newer one does. Then it is better even where it offers nothing more: what
 * a server asks by `input_required` its SDK asks there by server requests, and those of older tools have no other era.
 */
export function replaces(view: Listing, shared: Listing): boolean {
  if (isModernRevision(view.revision)) return false
  if (!isModernRevision(shared.revision)) return changesBetween(shared, view) !== undefined
  return namesOf(view).isSupersetOf(namesOf(shared)) && offersAll(view.capabilities, shared.capabilities)
}

/** Tasks are an extension in one era and a capability in the other. */
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

/** Looks no further than the first difference. */
const differ = (before: readonly unknown[] = [], after: readonly unknown[] = []): boolean =>
  before !== after &&
  (before.length !== after.length ||
    before.some((each, at) => each !== after[at] && JSON.stringify(each) !== JSON.stringify(after[at])))
