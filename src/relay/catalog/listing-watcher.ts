// Keeps one listing of an upstream up to date over one connection, on which the server reports changes. If the upstream
// is down, it is tried again in the background, and its listing is hidden after several failures.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { jsonSizeSteps } from '../../limits/limits.ts'
import type { MemoryShare } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { ListKind, NoticedBy, Upstream } from '../../protocol/seams.ts'
import { type Clock, createDelay } from '../../time/clock.ts'
import { runSteps } from '../../time/turns.ts'
import { fetchList, fetchListing, type Listing, withListingParts } from '../../upstream/listing/listing.ts'
import { createReadRate, entriesOf, isStale, mayRevalidate, type ReadRate, type Redundancy } from './freshness.ts'
import type { Store } from '../../store/port.ts'
import { createHeldListing, createStoredListing } from './last-listing.ts'
import { keepSame } from './past/same-entries.ts'

interface ListingWatcherOptions {
  readonly definition: UpstreamDefinition
  /** The source of the listing. */
  readonly source: {
    /** @throws GatewayError upstream_unavailable, too_many */
    connect(): Promise<Upstream>
    /** Keeps the connection from being closed as idle. */
    touch(): void
    release?(): void
    /** Returns the time to wait after so many failures in a row, in milliseconds. */
    retryMs(failures: number): number
    /** The message of the log while the listing cannot be read. */
    readonly downMessage: string
    /** The message of the log when the listing is read for the first time; undefined: none. */
    readonly readyMessage?: string
    /** The last line that the process of the upstream wrote to standard error. */
    lastLine?(): string | undefined
    /** The share that the memory of the listing counts for. */
    readonly memory: MemoryShare
  }
  readonly nextRead?: ReadRate
  readonly clock: Clock
  readonly log: Log
  /**
   * @param kinds the lists that changed in what `peek` returns, and those that the server reported as changed; empty if
   * only other data, such as the instructions, changed
   * @param isFirst whether this process shows the listing for the first time
   */
  readonly onChange: (kinds: ReadonlySet<ListKind>, isFirst: boolean) => void
  /** The store that keeps the listing for restarts. */
  readonly store?: Store
  /** The redundancy of a view: while it holds, nothing is read and the connection is released. */
  readonly redundancy?: Redundancy
}

export type ListingWatcher = ReturnType<typeof createListingWatcher>

/** A listing that was not used for this long is not tried again in the background. */
const retryWhileUsedMs = 10 * 60_000
/** How long a redundant view keeps its connection: some servers add tools shortly after the handshake. */
const releaseAfterMs = 5_000
/** A view that was not used for this long is not read again when its redundancy is in doubt. */
const recheckWhileUsedMs = 60_000

/** Why a listing is read again: something may have changed unnoticed, or an administrator asked for it. */
export type Revalidation = 'unseen' | 'asked'

export function createListingWatcher(options: ListingWatcherOptions) {
  const { definition, source, clock, log, onChange, store, redundancy, nextRead = createReadRate(clock) } = options
  const held = createHeldListing(source.memory, onChange)
  const stored = store === undefined ? undefined : createStoredListing(store, definition, clock, log)
  const fields = { upstream: definition.name, tenant: definition.tenant }
  const stop = new AbortController()
  const { signal } = stop
  const changed = new Set<ListKind>()
  const retry = createDelay(clock)
  const release = createDelay(clock)
  const startedAt = clock.now()
  let usedAt = 0
  let isRead = false
  let isUnreachable = false
  let connection: Upstream | undefined
  let work: Promise<void> | undefined

  const isRedundant = (): boolean => redundancy?.holds() === true

  const sizeOf = async (listing: Listing): Promise<number> => await runSteps(jsonSizeSteps(listing), source.memory)

  /** @returns the listing as it is held */
  async function accept(read: Listing): Promise<Listing> {
    const next = await runSteps(keepSame(read, [held.last(), redundancy?.shared()]), source.memory)
    const size = await sizeOf(next)
    if (signal.aborted) return next
    noteAnswered(options, next, held.failures() > 0, isRead ? undefined : startedAt)
    isRead = true
    const hasChanged = held.read(next, size)
    redundancy?.compare(next)
    void stored?.save(next, hasChanged)
    return next
  }

  async function read(): Promise<void> {
    const known = held.last() === undefined ? await stored?.load() : undefined
    const size = known === undefined ? 0 : await sizeOf(known)
    if (known !== undefined && !signal.aborted) held.restored(known, size)
    await nextRead(signal, entriesOf(held.last()))
    if (signal.aborted) return
    const upstream = await source.connect()
    connection = upstream
    changed.clear()
    const whole = await fetchListing(upstream, signal, clock.now, source.memory)
    warnOfPartial(whole, log, fields)
    let current = await accept(withLastGood(whole, held.last()))
    while (changed.size > 0) {
      await nextRead(signal, entriesOf(held.last()))
      if (signal.aborted) return
      const kinds = [...changed]
      // Cleared before the requests: a change that is reported while a response is on its way may not be in it.
      changed.clear()
      const parts = await Promise.all(kinds.map((kind) => fetchList(upstream, kind, signal, clock.now, source.memory)))
      current = await accept(withListingParts(current, parts))
    }
    if (!isRedundant()) return
    release.start(releaseAfterMs, () => {
      if (!isRedundant() || work !== undefined) return
      connection = undefined
      source.release?.()
    })
  }

  function start(): void {
    if (work !== undefined || signal.aborted) return
    retry.close()
    work = read()
      .catch((err: unknown) => {
        if (signal.aborted) return
        isUnreachable = connection === undefined
        connection = undefined
        const level = held.failures() === 0 ? 'warn' : 'debug'
        log[level]({ ...fields, stderr: source.lastLine?.(), err, failures: held.failures() + 1 }, source.downMessage)
        held.failed(err)
        // If the pool refuses connections for a while, the error says when it tries again.
        retryLater(retriedInMsOf(err) ?? source.retryMs(held.failures()))
      })
      .finally(() => {
        work = undefined
        if (changed.size > 0 && connection !== undefined) start()
      })
  }

  function retryLater(ms: number): void {
    if (!signal.aborted && !retry.pending && clock.now() - usedAt <= retryWhileUsedMs) retry.start(ms, start)
  }

  function markUsed(): void {
    const now = clock.now()
    // The pool may have closed the idle connection, and then no change was reported.
    const wasIdle = now - usedAt > definition.idleMs
    usedAt = now
    if (work !== undefined || retry.pending || isRedundant()) return
    if (connection === undefined || wasIdle || isStale(held.last(), now)) start()
    else source.touch()
  }

  return {
    definition,
    peek: held.shown,
    last: held.last,
    usedAt: () => usedAt,
    markUsed,
    /** @returns what a caller should wait for: the first answer, or the reading of stale lists. None rejects. */
    pending(): Array<Promise<unknown>> {
      markUsed()
      const firstAnswer = held.firstAnswer()
      if (firstAnswer !== undefined) return [firstAnswer]
      return work !== undefined && isStale(held.last(), clock.now()) ? [work] : []
    },
    /** Reads the listing again; for 'unseen' only if it is old enough and its upstream not down. Never rejects. */
    revalidate(why: Revalidation): Promise<void> | undefined {
      if (why === 'unseen' && (retry.pending || !mayRevalidate(held.last(), clock.now()))) return undefined
      start()
      return work
    },
    /** Reads a list again that changed or may have changed. */
    changed(kind: ListKind, noticedBy: NoticedBy): void {
      changed.add(kind)
      if (noticedBy === 'server') held.reportedByServer(kind)
      start()
    },
    /** Reads the listing now if it could not be reached: another connection to the upstream has succeeded. */
    reached(): void {
      if (isUnreachable && retry.pending) start()
    },
    connectionClosed(): void {
      connection = undefined
      if (!isRedundant()) retryLater(source.retryMs(0))
    },
    /** Reads a view again that may no longer be redundant. */
    recheck(): void {
      // While there is a connection, the server reports changes on it.
      if (connection !== undefined || redundancy?.doubt() !== true) return
      if (clock.now() - usedAt < recheckWhileUsedMs && !isRedundant() && !retry.pending) start()
    },
    close(): void {
      stop.abort()
      retry.close()
      release.close()
      source.release?.()
      held.close()
    }
  }
}

/** Logs that the upstream is back, or that it has answered for the first time. */
function noteAnswered(
  { definition, source, clock, log }: ListingWatcherOptions,
  { tools }: Listing,
  isBack: boolean,
  startedAt: number | undefined
): void {
  if (!isBack && (source.readyMessage === undefined || startedAt === undefined)) return
  const seconds = startedAt === undefined ? undefined : Math.round((clock.now() - startedAt) / 100) / 10
  const fields = { upstream: definition.name, tenant: definition.tenant, tools: tools.length, seconds }
  log.info(fields, isBack ? 'upstream is back' : source.readyMessage)
}

function warnOfPartial({ partial }: Listing, log: Log, fields: object): void {
  if (partial.length > 0) log.warn({ ...fields, partial: partial.slice(0, 20) }, 'parts of the listing were left out')
}

/** Keeps the last good version of each list that the server answered with an error. */
const withLastGood = (whole: Listing, before: Listing | undefined): Listing => ({
  ...whole,
  ...Object.fromEntries(whole.failed.map((member) => [member, before?.[member] ?? []]))
})

function retriedInMsOf(error: unknown): number | undefined {
  const ms = error instanceof GatewayError ? error.data['retriedInMs'] : undefined
  return typeof ms === 'number' ? ms : undefined
}
