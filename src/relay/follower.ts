// One listing of an upstream, kept from the last good answer (where it is in the store, a restart knows it) and followed by one watching
// connection. An upstream that is down fails nobody: it is retried in the background, and its listing is let go of after several tries.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { ListKind, Upstream } from '../protocol/seams.ts'
import { listingTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { fetchList, fetchListing, patched } from '../upstream/listing.ts'
import type { Listing } from '../upstream/listing.ts'
import { changedKinds, sameServer } from './changes.ts'
import { isRereadable, isStale } from './freshness.ts'
import { parseListing, withKnown } from './kept.ts'
import { createPace } from './pace.ts'
import type { Pace, PaceClock } from './pace.ts'

export interface Follower {
  /** Undefined while it is unknown, or after several tries in vain. */
  peek (): Listing | undefined
  /** Another number after each change of what `peek` says; 0 before the first. */
  version (): number
  /** Milliseconds since the epoch: when somebody last needed it. */
  usedAt (): number
  /** Notes interest, so that the watching connection is opened or kept, and lists that are older than their time are read again. Cheap. */
  use (): void
  /** What is worth waiting for: the first answer, or lists that are older than their time and are being read. None of it rejects. */
  awaited (): Array<Promise<unknown>>
  /** Reads again, where it can be of use, what was not read just now. Never rejects. */
  reread (): Promise<void> | undefined
  /** A connection reported a change. */
  changed (kind: ListKind): void
  /** The watching connection ended. */
  lost (): void
  /** It may be worth following after all: see `until`. It is looked at soon where somebody needed it lately. */
  doubt (): void
  close (): void
}

export interface FollowerOptions {
  readonly definition: UpstreamDefinition
  /** Where the store keeps it. Default: nowhere. */
  readonly kept?: { readonly store: Store, readonly key: string }
  /** How often it may be read. Default: a pace of its own. */
  readonly pace?: Pace
  /** The watching connection. @throws GatewayError upstream_unavailable, too_many */
  readonly connect: () => Promise<Upstream>
  /** Keeps the watching connection from being closed as idle. */
  readonly touch: () => void
  /** What changed in what `peek` says; empty where only the server says something else of itself. */
  readonly onChange: (kinds: ReadonlySet<ListKind>) => void
  /** How long to wait after so many failures in a row, in milliseconds. */
  readonly retryMs: (failures: number) => number
  /** What the log says first when it fails. */
  readonly whenDown: string
  /** What need not be followed: asked after each reading, before anybody sees what was read; `letGo` of the connection then. Default: all is followed. */
  readonly until?: { isEnough (listing: Listing): boolean, letGo (): void } | undefined
  /** The next number for `version`. */
  readonly tick: () => number
  readonly clock: PaceClock
  readonly log: Log
}

// A blip must not make tools vanish from every client; an outage must not leave them there for ever.
const failuresUntilHidden = 3
// Lists that are read again every second are not written every second.
const keepEveryMs = 60_000
/** A server may have come to say something else than what was enough. */
const enoughForMs = 10 * 60_000
/** Servers that register tools once they know their client need a moment for it, and then say so. */
const lingerMs = 5_000
/** Somebody who needed it within this time goes on to. */
const latelyMs = 60_000
/** For so long there is no doubt: each look takes a connection. Twice as long after each look that showed the same. */
const undoubtedMs = 10_000

export function createFollower ({ definition, kept, pace: given, connect, touch, onChange, retryMs, whenDown, until, tick, clock, log }: FollowerOptions): Follower {
  const stop = new AbortController()
  const dirty = new Set<ListKind>()
  const pace = given ?? createPace(clock)
  const known = Promise.withResolvers<void>()
  let isKnown = false
  let listing: Listing | undefined
  let version = 0
  let failures = 0
  /** The watching connection, while it lives. */
  let watcher: Upstream | undefined
  let work: Promise<void> | undefined
  let retry: ReturnType<PaceClock['timer']> | undefined
  let lingering: ReturnType<PaceClock['timer']> | undefined
  let usedAt = 0
  /** When the listing was last written to the store. */
  let keptAt = -Infinity
  /** How often in a row what was read was enough, and when it last was. */
  let looks = 0
  let lookedAt = 0
  let doubted = false

  const shown = (): Listing | undefined => failures >= failuresUntilHidden ? undefined : listing
  const settle = (): void => {
    isKnown = true
    known.resolve()
  }

  /** Changes what `peek` says and tells whoever listens what became different. */
  function apply (change: () => void): void {
    const before = shown()
    change()
    const after = shown()
    const kinds = changedKinds(before, after)
    if (kinds.size === 0 && sameServer(before, after)) return
    version = tick()
    onChange(kinds)
  }

  function judge (): void {
    looks = listing !== undefined && until?.isEnough(listing) === true ? looks + 1 : 0
    lookedAt = clock.now()
    doubted = false
  }

  /** Need nobody look again now? */
  const isEnough = (): boolean => looks > 0 && clock.now() < lookedAt + (doubted ? Math.min(enoughForMs, undoubtedMs * 2 ** (looks - 1)) : enoughForMs)

  async function recall (): Promise<void> {
    const text = await kept?.store.get(kept.key)
    const recalled = text === undefined ? undefined : parseListing(text)
    if (recalled === undefined || stop.signal.aborted) return
    apply(() => { listing = recalled })
    settle()
  }

  async function keep (next: Listing): Promise<void> {
    if (stop.signal.aborted) return
    if (failures > 0) log.info({ upstream: definition.name, tenant: definition.tenant }, 'upstream is back')
    const before = version
    apply(() => {
      listing = next
      failures = 0
    })
    judge()
    settle()
    const now = clock.now()
    if (kept === undefined || (version === before && now - keptAt < keepEveryMs)) return
    keptAt = now
    await kept.store.set(kept.key, JSON.stringify(next), { ttlMs: listingTtlMs }).catch((err: unknown) =>
      log.warn({ err, upstream: definition.name }, 'the listing could not be kept; a restart will have to ask again'))
  }

  async function refresh (): Promise<void> {
    if (listing === undefined) await recall().catch((err: unknown) => log.warn({ err, upstream: definition.name }, 'no earlier listing could be read'))
    await pace.next(stop.signal)
    if (stop.signal.aborted) return
    const upstream = watcher = await connect()
    dirty.clear()
    const whole = await fetchListing(upstream, stop.signal, clock.now)
    if (whole.partial.length > 0) log.warn({ upstream: definition.name, tenant: definition.tenant, partial: whole.partial.slice(0, 20) }, 'parts of the listing were left out')
    await keep(withKnown(whole, listing))
    while (dirty.size > 0 && listing !== undefined) {
      await pace.next(stop.signal)
      if (stop.signal.aborted) return
      const kinds = [...dirty]
      // Before the requests: a change that is reported while an answer is on its way may not be in it.
      dirty.clear()
      const parts = await Promise.all(kinds.map((kind) => fetchList(upstream, kind, stop.signal, clock.now)))
      await keep(patched(listing, parts))
    }
    if (isEnough()) linger()
  }

  /** Lets go of the connection when it has had time to report more. */
  function linger (): void {
    lingering?.close()
    lingering = clock.timer(lingerMs, () => {
      if (!isEnough() || work !== undefined) return
      watcher = undefined
      until?.letGo()
    })
    lingering.unref()
  }

  function start (): void {
    if (work !== undefined || stop.signal.aborted) return
    retry?.close()
    retry = undefined
    work = refresh().catch((err: unknown) => {
      if (stop.signal.aborted) return
      watcher = undefined
      // Told when it goes down and when it is back; in between it would only be repeated.
      log[failures === 0 ? 'warn' : 'debug']({ err, upstream: definition.name, tenant: definition.tenant, failures: failures + 1 }, whenDown)
      apply(() => { failures++ })
      settle()
      schedule(retryMs(failures))
    }).finally(() => {
      work = undefined
      if (dirty.size > 0 && watcher !== undefined) start()
    })
  }

  /** Only while somebody uses the upstream: a gateway full of unused tenants stays quiet. */
  function schedule (afterMs: number): void {
    if (stop.signal.aborted || retry !== undefined || clock.now() - usedAt > 10 * 60_000) return
    retry = clock.timer(afterMs, () => {
      retry = undefined
      start()
    })
    retry.unref()
  }

  function use (): void {
    const now = clock.now()
    // After a long rest the pool may have closed the watching connection, and changes went unseen.
    const rested = now - usedAt > definition.idleMs
    usedAt = now
    if (work !== undefined || retry !== undefined || isEnough()) return
    if (watcher === undefined || rested || isStale(listing, now)) start()
    else touch()
  }

  return {
    peek: shown,
    version: () => version,
    usedAt: () => usedAt,
    use,
    awaited () {
      use()
      if (!isKnown) return [known.promise]
      return work !== undefined && isStale(listing, clock.now()) ? [work] : []
    },
    reread () {
      // One that is down is tried again in its own time.
      if (retry !== undefined || !isRereadable(listing, clock.now())) return undefined
      start()
      return work
    },
    changed (kind) {
      dirty.add(kind)
      start()
    },
    lost () {
      watcher = undefined
      if (!isEnough()) schedule(retryMs(0))
    },
    doubt () {
      // What is followed reports by itself.
      if (looks === 0 || watcher !== undefined) return
      doubted = true
      if (!isEnough() && work === undefined && retry === undefined && clock.now() - usedAt < latelyMs) start()
    },
    close () {
      stop.abort()
      retry?.close()
      lingering?.close()
      until?.letGo()
      settle()
    }
  }
}
