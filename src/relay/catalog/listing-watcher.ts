// One listing of an upstream, kept up to date by one connection, which reports changes. An upstream that is down fails
// nobody: it is tried again in the background, and its listing is hidden after several failures.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { jsonSizeOf } from '../../limits/limits.ts'
import { holdMemory, type MemoryShare } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { ListKind, NoticedBy, Upstream } from '../../protocol/seams.ts'
import { type Clock, createDelay } from '../../time/clock.ts'
import { fetchList, fetchListing, type Listing, withListingParts } from '../../upstream/listing/listing.ts'
import { changesBetween, createReadRate, isStale, mayRevalidate, type ReadRate, type Redundancy } from './freshness.ts'
import type { Store } from '../../store/port.ts'
import { createStoredListing } from './stored-listing.ts'

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
    /** The last line of standard error of its process. */
    lastLine?(): string | undefined
    /** The memory that the lists count to. */
    readonly memory: MemoryShare
  }
  readonly nextRead?: ReadRate
  readonly clock: Clock
  readonly log: Log
  /**
   * What changed in what `peek` returns, and what the server reported, be it the same or not; empty where it only says
   * something else of itself.
   * @param isFirst nothing was shown before, so that nobody has it from this process otherwise
   */
  readonly onChange: (kinds: ReadonlySet<ListKind>, isFirst: boolean) => void
  /** The store that keeps the listing for restarts. */
  readonly store?: Store
  /** The redundancy of a view: while it holds, nothing is read and the connection is released. */
  readonly redundancy?: Redundancy
}

export type ListingWatcher = ReturnType<typeof createListingWatcher>

// A blip must not make tools vanish from every client; an outage must not leave them there for ever.
const failuresUntilHidden = 3
// A gateway full of unused tenants stays quiet.
const retryWhileUsedMs = 10 * 60_000
/** Servers that register tools once they know their client need a moment for it, and then report the change. */
const releaseAfterMs = 5_000
const recheckWhileUsedMs = 60_000

/** Something may have changed unseen, or an administrator wants it read. */
export type Revalidation = 'unseen' | 'asked'

export function createListingWatcher(options: ListingWatcherOptions) {
  const { definition, source, clock, log, onChange, store, redundancy, nextRead = createReadRate(clock) } = options
  const stored = store === undefined ? undefined : createStoredListing(store, definition, clock, log)
  const [stop, fields] = [new AbortController(), { upstream: definition.name, tenant: definition.tenant }]
  const { signal } = stop
  const [held, changed, reported] = [holdMemory(source.memory), new Set<ListKind>(), new Set<ListKind>()]
  const [retry, release, startedAt] = [createDelay(clock), createDelay(clock), clock.now()]
  const firstAnswer = Promise.withResolvers<void>()
  let listing: Listing | undefined
  let [failures, usedAt, isUnreachable, hasAnswered, isRead] = [0, 0, false, false, false]
  let connection: Upstream | undefined
  let work: Promise<void> | undefined

  const shown = () => (failures >= failuresUntilHidden ? undefined : listing)
  const isRedundant = (): boolean => redundancy?.holds() === true
  const settle = (): void => {
    hasAnswered = true
    firstAnswer.resolve()
  }

  /** @returns whether `peek` returns something else than before */
  function update(next: Listing | undefined, nextFailures: number): boolean {
    const before = shown()
    if (next !== listing) held.set(next === undefined ? 0 : jsonSizeOf(next))
    listing = next
    failures = nextFailures
    const kinds = changesBetween(before, shown())
    if (kinds !== undefined || reported.size > 0) onChange(new Set([...(kinds ?? []), ...reported]), !hasAnswered)
    reported.clear()
    settle()
    return kinds !== undefined
  }

  function accept(next: Listing): void {
    if (signal.aborted) return
    isRead = noteAnswered(options, failures > 0, next, isRead ? undefined : startedAt)
    const hasChanged = update(next, 0)
    redundancy?.compare(next)
    void stored?.save(next, hasChanged)
  }

  async function read(): Promise<void> {
    const known = listing === undefined ? await stored?.load() : undefined
    if (known !== undefined && !signal.aborted) update(known, failures)
    await nextRead(signal, listing)
    if (signal.aborted) return
    const upstream = (connection = await source.connect())
    changed.clear()
    const whole = await fetchListing(upstream, signal, clock.now, source.memory)
    warnOfPartial(whole, log, fields)
    let current = withLastGood(whole, listing)
    accept(current)
    while (changed.size > 0) {
      await nextRead(signal, listing)
      if (signal.aborted) return
      const kinds = [...changed]
      // Before the requests: a change that is reported while a response is on its way may not be in it.
      changed.clear()
      const parts = await Promise.all(kinds.map((kind) => fetchList(upstream, kind, signal, clock.now, source.memory)))
      accept((current = withListingParts(current, parts)))
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
        const said = { ...fields, stderr: source.lastLine?.(), err, failures: failures + 1 }
        log[failures === 0 ? 'warn' : 'debug'](said, source.downMessage)
        update(listing, isOurLimit(err) ? Math.min(failures + 1, failuresUntilHidden - 1) : failures + 1)
        // Where it is away for all, the pool has told callers when it is tried again.
        retryLater(retriedInMsOf(err) ?? source.retryMs(failures))
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
    // The pool closes connections that are idle, and then changes go unseen.
    const wasIdle = now - usedAt > definition.idleMs
    usedAt = now
    if (work !== undefined || retry.pending || isRedundant()) return
    if (connection === undefined || wasIdle || isStale(listing, now)) start()
    else source.touch()
  }

  return {
    definition,
    peek: shown, // Undefined while it is unknown, or hidden.
    /** The last one, hidden or not. */
    last: (): Listing | undefined => listing,
    usedAt: () => usedAt,
    markUsed,
    /** Returns what to wait for: the first answer, or the reading of lists that are too old. None rejects. */
    pending(): Array<Promise<unknown>> {
      markUsed()
      if (!hasAnswered) return [firstAnswer.promise]
      return work !== undefined && isStale(listing, clock.now()) ? [work] : []
    },
    /** Reads again what may have changed unseen; where it was asked for, in any case. Never rejects. */
    revalidate(why: Revalidation): Promise<void> | undefined {
      // An upstream that is down is tried again in its own time.
      if (why === 'unseen' && (retry.pending || !mayRevalidate(listing, clock.now()))) return undefined
      start()
      return work
    },
    /** A list changed, or may have. */
    changed(kind: ListKind, noticedBy: NoticedBy): void {
      changed.add(kind)
      if (noticedBy === 'server') reported.add(kind)
      start()
    },
    reached: (): void => (isUnreachable && retry.pending ? start() : undefined),
    connectionClosed(): void {
      connection = undefined
      if (!isRedundant()) retryLater(source.retryMs(0))
    },
    /** Reads the listing again, where it may be redundant no more. */
    recheck(): void {
      // With a connection, its server reports changes.
      if (connection !== undefined || redundancy?.doubt() !== true) return
      if (clock.now() - usedAt < recheckWhileUsedMs && !isRedundant() && !retry.pending) start()
    },
    close(): void {
      stop.abort()
      retry.close()
      release.close()
      source.release?.()
      held.set(0)
      settle()
    }
  }
}

/** @param startedAt when it was asked for first; undefined: it has answered before. @returns that it has answered */
function noteAnswered(
  { definition, source, clock, log }: ListingWatcherOptions,
  isBack: boolean,
  { tools }: Listing,
  startedAt: number | undefined
): true {
  if (!isBack && (source.readyMessage === undefined || startedAt === undefined)) return true
  const seconds = startedAt === undefined ? undefined : Math.round((clock.now() - startedAt) / 100) / 10
  const fields = { upstream: definition.name, tenant: definition.tenant, tools: tools.length, seconds }
  log.info(fields, isBack ? 'upstream is back' : source.readyMessage)
  return true
}

function warnOfPartial({ partial }: Listing, log: Log, fields: object): void {
  if (partial.length > 0) log.warn({ ...fields, partial: partial.slice(0, 20) }, 'parts of the listing were left out')
}

/** Keeps the last good list in place of a broken one of a server that answers. */
const withLastGood = (whole: Listing, before: Listing | undefined): Listing => ({
  ...whole,
  ...Object.fromEntries(whole.failed.map((member) => [member, before?.[member] ?? []]))
})

/** A limit of the gateway, such as that of processes, says nothing of the upstream, so it hides nothing. */
const isOurLimit = (error: unknown): boolean => error instanceof GatewayError && error.code === 'too_many'

function retriedInMsOf(error: unknown): number | undefined {
  const ms = error instanceof GatewayError ? error.data['retriedInMs'] : undefined
  return typeof ms === 'number' ? ms : undefined
}
