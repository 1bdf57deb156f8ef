// One listing of an upstream, held from the last good answer and kept up to date by one connection, which reports
// changes. An upstream that is down fails nobody: it is tried again in the background, and its listing is hidden after
// several failures.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { ListKind, Upstream } from '../../protocol/seams.ts'
import { createDelay, type Clock } from '../../time/clock.ts'
import { fetchList, fetchListing, withListingParts, type Listing } from '../../upstream/listing/listing.ts'
import { isStale, mayRevalidate } from './list-ttl.ts'
import { changesBetween } from './listing-diff.ts'
import type { ReadRate } from './read-rate.ts'
import type { Redundancy } from './redundancy.ts'
import type { StoredListing } from './stored-listing.ts'

export interface ListingWatcher {
  /** Undefined while it is unknown, or hidden. */
  peek(): Listing | undefined
  /** Milliseconds since the epoch: the last `markUsed`. */
  usedAt(): number
  /** Opens or keeps the connection, and reads lists again that are older than their time. Cheap. */
  markUsed(): void
  /**
   * What is worth waiting for: the first answer, or lists that are older than their time and are being read. None of it
   * rejects.
   */
  pending(): Array<Promise<unknown>>
  /** Reads again what may have changed unseen. Never rejects. */
  revalidate(): Promise<void> | undefined
  /** A connection reported a change. */
  changed(kind: ListKind): void
  connectionClosed(): void
  /** It may be redundant no more: reads it again soon, where it was used lately. */
  recheck(): void
  close(): void
}

/** Where a listing is read from. */
interface ListingSource {
  /** @throws GatewayError upstream_unavailable, too_many */
  connect(): Promise<Upstream>
  /** Keeps the connection from being closed as idle. */
  touch(): void
  release?(): void
  /** How long to wait after so many failures in a row, in milliseconds. */
  retryMs(failures: number): number
  /** What the log says about the first failure in a row. */
  readonly downMessage: string
}

export interface ListingWatcherOptions {
  readonly definition: UpstreamDefinition
  readonly source: ListingSource
  readonly readRate: ReadRate
  readonly clock: Clock
  readonly log: Log
  /** What changed in what `peek` returns; empty where only the server says something else of itself. */
  readonly onChange: (kinds: ReadonlySet<ListKind>) => void
  readonly stored?: StoredListing
  /** Of a view: while it holds, nothing is read and the connection is released. */
  readonly redundancy?: Redundancy
}

// A blip must not make tools vanish from every client; an outage must not leave them there for ever.
const failuresUntilHidden = 3
// A gateway full of unused tenants stays quiet.
const retryWhileUsedMs = 10 * 60_000
/** Servers that register tools once they know their client need a moment for it, and then report the change. */
const releaseAfterMs = 5_000
const recheckWhileUsedMs = 60_000

export function createListingWatcher(options: ListingWatcherOptions): ListingWatcher {
  const { definition, source, readRate, clock, log, onChange, stored, redundancy } = options
  const fields = { upstream: definition.name, tenant: definition.tenant }
  const stop = new AbortController()
  const { signal } = stop
  const changed = new Set<ListKind>()
  const firstAnswer = Promise.withResolvers<void>()
  let hasAnswered = false
  let listing: Listing | undefined
  let failures = 0
  let connection: Upstream | undefined
  let work: Promise<void> | undefined
  const retry = createDelay(clock)
  const release = createDelay(clock)
  let usedAt = 0

  const shown = (): Listing | undefined => (failures >= failuresUntilHidden ? undefined : listing)
  const isRedundant = (): boolean => redundancy?.holds() === true
  const settle = (): void => {
    hasAnswered = true
    firstAnswer.resolve()
  }

  /** @returns whether `peek` returns something else than before */
  function update(next: Listing | undefined, nextFailures: number): boolean {
    const before = shown()
    listing = next
    failures = nextFailures
    const kinds = changesBetween(before, shown())
    if (kinds !== undefined) onChange(kinds)
    return kinds !== undefined
  }

  async function load(): Promise<void> {
    const known = await stored?.load()
    if (known === undefined || signal.aborted) return
    update(known, failures)
    settle()
  }

  async function accept(next: Listing): Promise<void> {
    if (signal.aborted) return
    if (failures > 0) log.info(fields, 'upstream is back')
    const hasChanged = update(next, 0)
    redundancy?.compare(next)
    settle()
    await stored?.save(next, hasChanged)
  }

  async function read(): Promise<void> {
    if (listing === undefined) await load()
    await readRate.next(signal)
    if (signal.aborted) return
    const upstream = (connection = await source.connect())
    changed.clear()
    const whole = await fetchListing(upstream, signal, clock.now)
    if (whole.partial.length > 0)
      log.warn({ ...fields, partial: whole.partial.slice(0, 20) }, 'parts of the listing were left out')
    let current = withLastGoodLists(whole, listing)
    await accept(current)
    while (changed.size > 0) {
      await readRate.next(signal)
      if (signal.aborted) return
      const kinds = [...changed]
      // Before the requests: a change that is reported while a response is on its way may not be in it.
      changed.clear()
      const parts = await Promise.all(kinds.map((kind) => fetchList(upstream, kind, signal, clock.now)))
      current = withListingParts(current, parts)
      await accept(current)
    }
    if (isRedundant()) release.start(releaseAfterMs, releaseUnused)
  }

  function releaseUnused(): void {
    if (!isRedundant() || work !== undefined) return
    connection = undefined
    source.release?.()
  }

  function start(): void {
    if (work !== undefined || signal.aborted) return
    retry.close()
    work = read()
      .catch((err: unknown) => {
        if (signal.aborted) return
        connection = undefined
        log[failures === 0 ? 'warn' : 'debug']({ err, ...fields, failures: failures + 1 }, source.downMessage)
        update(listing, failures + 1)
        settle()
        retryLater(source.retryMs(failures))
      })
      .finally(() => {
        work = undefined
        if (changed.size > 0 && connection !== undefined) start()
      })
  }

  function retryLater(ms: number): void {
    if (signal.aborted || retry.pending || clock.now() - usedAt > retryWhileUsedMs) return
    retry.start(ms, start)
  }

  function markUsed(): void {
    const now = clock.now()
    // The pool closes connections that are idle, and then changes go unseen.
    const wasIdle = now - usedAt > definition.idleMs
    usedAt = now
    if (work !== undefined || retry.pending || isRedundant()) return
    if (connection === undefined || wasIdle || isStale(listing, now)) start()
    else source.touch()
  }

  return {
    peek: shown,
    usedAt: () => usedAt,
    markUsed,
    pending() {
      markUsed()
      if (!hasAnswered) return [firstAnswer.promise]
      return work !== undefined && isStale(listing, clock.now()) ? [work] : []
    },
    revalidate() {
      // An upstream that is down is tried again in its own time.
      if (retry.pending || !mayRevalidate(listing, clock.now())) return undefined
      start()
      return work
    },
    changed(kind) {
      changed.add(kind)
      start()
    },
    connectionClosed() {
      connection = undefined
      if (!isRedundant()) retryLater(source.retryMs(0))
    },
    recheck() {
      // With a connection, its server reports changes.
      if (connection !== undefined || redundancy?.doubt() !== true) return
      const wasUsed = clock.now() - usedAt < recheckWhileUsedMs
      if (wasUsed && !isRedundant() && work === undefined && !retry.pending) start()
    },
    close() {
      stop.abort()
      retry.close()
      release.close()
      source.release?.()
      settle()
    }
  }
}

/** One broken list of a server that answers must not wipe out what it held before. */
function withLastGoodLists(listing: Listing, before: Listing | undefined): Listing {
  if (before === undefined || listing.failed.length === 0) return listing
  return { ...listing, ...Object.fromEntries(listing.failed.map((member) => [member, before[member]])) }
}
