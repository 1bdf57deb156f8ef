// One listing per upstream, kept from the last good answer (in the store, so that a restart knows it) and followed by one watching
// connection. An upstream that is down fails nobody: it is retried in the background, and left out of the lists until it is back.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { Notification } from '../protocol/messages.ts'
import type { Handshake, ListKind, Upstream } from '../protocol/seams.ts'
import { listingKey, listingTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import { nobody } from '../upstream/exchange.ts'
import { fetchList, fetchListing, patched } from '../upstream/listing.ts'
import type { Listing } from '../upstream/listing.ts'
import type { Pool } from '../upstream/pool.ts'
import { changedKinds, sameServer } from './changes.ts'
import { isRereadable, isStale } from './freshness.ts'
import { parseListing, withKnown } from './kept.ts'
import { createPace } from './pace.ts'
import type { Pace, PaceClock } from './pace.ts'
import { withinMs } from './wanted.ts'

export interface ListingsOptions {
  readonly pool: Pool
  readonly store: Store
  readonly clock: PaceClock
  readonly log: Log
  readonly handshake: Handshake
  /** The watching connection of a shared upstream is the one that sessions use: what it says and how it ends concerns them too. */
  readonly onSharedNotification: (definition: UpstreamDefinition, scope: string, notification: Notification) => void
  readonly onLost: (definition: UpstreamDefinition, scope: string) => void
}

export interface Listings {
  /** The listing that lists and routes are made of; undefined while the upstream is unknown or has been down for several tries. */
  peek (definition: UpstreamDefinition): Listing | undefined
  /** Grows with every change of what `peek` says. */
  version (definition: UpstreamDefinition): number
  /** Notes interest, so that the watching connection is opened or kept, and lists that are older than their time are read again. Cheap. */
  use (definition: UpstreamDefinition): void
  /** Resolves when each is known or has failed once, and what is older than its time was read again; at the latest after `waitMs`. Never rejects. */
  settled (definitions: readonly UpstreamDefinition[], waitMs: number): Promise<void>
  /** Reads again, where it can be of use, what was not read just now. Resolves as `settled`. */
  reread (definitions: readonly UpstreamDefinition[], waitMs: number): Promise<void>
  /**
   * The watching connection: a modern server, or one of isolation `shared`, is also called on it.
   * @throws GatewayError upstream_unavailable, too_many
   */
  connect (definition: UpstreamDefinition): Promise<Upstream>
  /** A connection to the upstream reported a change. */
  changed (definition: UpstreamDefinition, kind: ListKind): void
  onChange (listener: (hash: string, kinds: ReadonlySet<ListKind>) => void): void
  /** Forgets what no configuration names any more. Calls that began with an older one do not bring it back. */
  retain (hashes: ReadonlySet<string>): void
  close (): void
}

/** The scope of the connection that a listing is read from. */
export const listingScope = (definition: UpstreamDefinition): string =>
  definition.isolation === 'shared' ? `shared:${definition.hash}` : `listing:${definition.hash}`

interface Slot {
  readonly definition: UpstreamDefinition
  listing: Listing | undefined
  version: number
  failures: number
  /** The watching connection, while it lives. */
  watcher: Upstream | undefined
  work: Promise<void> | undefined
  readonly dirty: Set<ListKind>
  readonly pace: Pace
  retry: ReturnType<PaceClock['timer']> | undefined
  usedAt: number
  /** When the listing was last written to the store. */
  keptAt: number
  readonly known: PromiseWithResolvers<void>
}

// A blip must not make tools vanish from every client; an outage must not leave them there for ever.
const failuresUntilHidden = 3
// Lists that are read again every second are not written every second.
const keepEveryMs = 60_000

export function createListings ({ pool, store, clock, log, handshake, onSharedNotification, onLost }: ListingsOptions): Listings {
  const slots = new Map<string, Slot>()
  const listeners: Array<(hash: string, kinds: ReadonlySet<ListKind>) => void> = []
  const stop = new AbortController()
  /** What the configuration names; undefined until it was changed for the first time. */
  let wanted: ReadonlySet<string> | undefined

  const isCurrent = (slot: Slot): boolean => slots.get(slot.definition.hash) === slot
  const shown = (slot: Slot): Listing | undefined => slot.failures >= failuresUntilHidden ? undefined : slot.listing

  /** Undefined for what is no longer configured. */
  function slotOf (definition: UpstreamDefinition): Slot | undefined {
    let slot = slots.get(definition.hash)
    if (slot === undefined && wanted?.has(definition.hash) !== false) {
      slot = { definition, listing: undefined, version: 0, failures: 0, watcher: undefined, work: undefined, dirty: new Set(), pace: createPace(clock), retry: undefined, usedAt: 0, keptAt: -Infinity, known: Promise.withResolvers() }
      slots.set(definition.hash, slot)
    }
    return slot
  }

  /** Changes what `peek` says and tells whoever listens what became different. */
  function apply (slot: Slot, change: () => void): void {
    const before = shown(slot)
    change()
    const after = shown(slot)
    const kinds = changedKinds(before, after)
    if (kinds.size === 0 && sameServer(before, after)) return
    slot.version++
    if (kinds.size > 0) for (const listener of listeners) listener(slot.definition.hash, kinds)
  }

  async function recall (slot: Slot): Promise<void> {
    const text = await store.get(listingKey(slot.definition.hash))
    const listing = text === undefined ? undefined : parseListing(text)
    if (listing === undefined || !isCurrent(slot)) return
    apply(slot, () => { slot.listing = listing })
    slot.known.resolve()
  }

  async function keep (slot: Slot, listing: Listing): Promise<void> {
    if (!isCurrent(slot)) return
    if (slot.failures > 0) log.info({ upstream: slot.definition.name, tenant: slot.definition.tenant }, 'upstream is back')
    const { version } = slot
    apply(slot, () => {
      slot.listing = listing
      slot.failures = 0
    })
    slot.known.resolve()
    const now = clock.now()
    if (slot.version === version && now - slot.keptAt < keepEveryMs) return
    slot.keptAt = now
    await store.set(listingKey(slot.definition.hash), JSON.stringify(listing), { ttlMs: listingTtlMs }).catch((err: unknown) =>
      log.warn({ err, upstream: slot.definition.name }, 'the listing could not be kept; a restart will have to ask again'))
  }

  async function refresh (slot: Slot): Promise<void> {
    const { definition } = slot
    if (slot.listing === undefined) {
      await recall(slot).catch((err: unknown) => log.warn({ err, upstream: definition.name }, 'no earlier listing could be read'))
    }
    await slot.pace.next(stop.signal)
    if (stop.signal.aborted || !isCurrent(slot)) return
    const upstream = slot.watcher = await connect(definition)
    slot.dirty.clear()
    const listing = await fetchListing(upstream, stop.signal, clock.now)
    if (listing.partial.length > 0) log.warn({ upstream: definition.name, tenant: definition.tenant, partial: listing.partial.slice(0, 20) }, 'parts of the listing were left out')
    await keep(slot, withKnown(listing, slot.listing))
    while (slot.dirty.size > 0 && slot.listing !== undefined) {
      await slot.pace.next(stop.signal)
      if (stop.signal.aborted || !isCurrent(slot)) return
      const kinds = [...slot.dirty]
      // Before the requests: a change that is reported while an answer is on its way may not be in it.
      slot.dirty.clear()
      const parts = await Promise.all(kinds.map((kind) => fetchList(upstream, kind, stop.signal, clock.now)))
      await keep(slot, patched(slot.listing, parts))
    }
  }

  // Where a server speaks both eras, its lists are read in the newer one, which has more to say.
  const connect = (definition: UpstreamDefinition): Promise<Upstream> => pool.acquire(definition, listingScope(definition), { ...handshake, era: 'modern' }, {
    listChanged: (kind) => changed(definition, kind),
    notification (notification) {
      if (definition.isolation === 'shared') onSharedNotification(definition, listingScope(definition), notification)
    },
    ask: nobody.ask, // It declares nothing that could be asked.
    closed (reason) {
      log.warn({ upstream: definition.name, tenant: definition.tenant, reason: reason.message }, 'upstream connection ended')
      const slot = slots.get(definition.hash)
      if (slot !== undefined) {
        slot.watcher = undefined
        schedule(slot, 1_000)
      }
      if (definition.isolation === 'shared') onLost(definition, listingScope(definition))
    }
  }, 'listing')

  function start (slot: Slot): void {
    if (slot.work !== undefined || stop.signal.aborted || !isCurrent(slot)) return
    slot.retry?.close()
    slot.retry = undefined
    slot.work = refresh(slot).catch((err: unknown) => {
      if (stop.signal.aborted) return
      slot.watcher = undefined
      // Told when it goes down and when it is back; in between it would only be repeated.
      log[slot.failures === 0 ? 'warn' : 'debug']({ err, upstream: slot.definition.name, tenant: slot.definition.tenant, failures: slot.failures + 1 }, 'upstream is down; it is left out of the lists and tried again')
      apply(slot, () => { slot.failures++ })
      slot.known.resolve()
      schedule(slot, Math.min(60_000, 1_000 * 2 ** Math.min(slot.failures, 6)))
    }).finally(() => {
      slot.work = undefined
      if (slot.dirty.size > 0 && slot.watcher !== undefined) start(slot)
    })
  }

  /** Only while somebody uses the upstream: a gateway full of unused tenants stays quiet. */
  function schedule (slot: Slot, afterMs: number): void {
    if (stop.signal.aborted || !isCurrent(slot) || slot.retry !== undefined || clock.now() - slot.usedAt > 10 * 60_000) return
    slot.retry = clock.timer(afterMs, () => {
      slot.retry = undefined
      start(slot)
    })
    slot.retry.unref()
  }

  function changed (definition: UpstreamDefinition, kind: ListKind): void {
    const slot = slotOf(definition)
    if (slot === undefined) return
    slot.dirty.add(kind)
    start(slot)
  }

  function use (definition: UpstreamDefinition): void {
    const slot = slotOf(definition)
    if (slot === undefined) return
    const now = clock.now()
    // After a long rest the pool may have closed the watching connection, and changes went unseen.
    const rested = now - slot.usedAt > definition.idleMs
    slot.usedAt = now
    if (slot.work !== undefined || slot.retry !== undefined) return
    if (slot.watcher === undefined || rested || isStale(slot.listing, now)) start(slot)
    else pool.touch(listingScope(definition))
  }

  return {
    peek: (definition) => {
      const slot = slots.get(definition.hash)
      return slot === undefined ? undefined : shown(slot)
    },
    version: (definition) => slots.get(definition.hash)?.version ?? 0,
    use,
    async settled (definitions, waitMs) {
      await withinMs(definitions.flatMap((definition) => {
        use(definition)
        const slot = slotOf(definition)
        if (slot === undefined) return []
        return isStale(slot.listing, clock.now()) && slot.work !== undefined ? [slot.known.promise, slot.work] : [slot.known.promise]
      }), waitMs)
    },
    async reread (definitions, waitMs) {
      await withinMs(definitions.flatMap((definition) => {
        const slot = slots.get(definition.hash)
        // One that is down is tried again in its own time.
        if (slot === undefined || slot.retry !== undefined || !isRereadable(slot.listing, clock.now())) return []
        start(slot)
        return slot.work ?? []
      }), waitMs)
    },
    connect,
    changed,
    onChange (listener) {
      listeners.push(listener)
    },
    retain (hashes) {
      wanted = hashes
      for (const [hash, slot] of slots) {
        if (hashes.has(hash)) continue
        slot.retry?.close()
        slots.delete(hash)
        slot.known.resolve()
      }
    },
    close () {
      stop.abort()
      for (const slot of slots.values()) slot.retry?.close()
    }
  }
}
