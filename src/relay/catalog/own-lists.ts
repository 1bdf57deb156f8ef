// Lists of an upstream as the own connection of a client gives them, where that connection reported a change: of a
// session, or of a conversation of a caller of 2026-07-28. They are read one at a time and no more often than the read
// rate allows, and the last change is always read.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { jsonSizeSteps } from '../../limits/limits.ts'
import { holdMemory, type HeldMemory, type MemoryShare } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import type { Era } from '../../protocol/messages.ts'
import type { ListKind, NoticedBy, Upstream } from '../../protocol/seams.ts'
import { type Clock, timeoutSignal } from '../../time/clock.ts'
import { createPacers } from '../../time/pacer.ts'
import { runSteps } from '../../time/turns.ts'
import { fetchList, type Listing, type ListingPart, withListingParts } from '../../upstream/listing/listing.ts'
import { changedKinds, createReadRate, entriesOf, type ReadRate } from './freshness.ts'
import type { Listings } from './listings.ts'
import { keepSame } from './past/same-entries.ts'
import type { ViewKey } from './view.ts'

/** The owner of the lists, such as a live session. */
export interface ListsOwner {
  readonly key: string
  /** The memory that the lists count to. */
  readonly memory: { readonly share: MemoryShare }
  /** Tells the client. */
  listsChanged(kinds: Iterable<ListKind>): void
}

/** The lists that the owner's connection reported as changed. The others are those of the shared listing. */
interface ListsOfUpstream {
  readonly parts: ReadonlyMap<ListKind, ListingPart>
  /** The era of the connection. */
  readonly era: Era
}

/** The lists of an owner, by hash of the upstream's definition. Another object after each change. */
export type OwnListsByUpstream = ReadonlyMap<string, ListsOfUpstream>

/** A change that was not read, or is being read. */
interface Change {
  /** The connection to read from. */
  readonly upstream: Upstream
  /** Did the server report it? Then the client is told, even where it may see nothing else than before. */
  readonly isReported: boolean
  /** Resolved when it was read, or cannot be. */
  readonly over: PromiseWithResolvers<void>
}

interface Reader {
  readonly nextRead: ReadRate
  readonly stop: AbortController
  /** In the list that was read last, which is not kept: it may be as the shared one. */
  entries: number
  unread: Change | undefined
  reading: Change | undefined
  isRunning: boolean
}

export type OwnLists = ReturnType<typeof createOwnLists>

const readTimeoutMs = 30_000
/** Of one upstream, for all owners: a server may report changes to each of a thousand sessions all the time. */
const readRate = { perSecond: 100, burst: 300 }

/** @param last what the upstream listed last: while it is away, an owner of some lists keeps the others, too */
export function withOwnLists(
  listing: Listing | undefined,
  own: ListsOfUpstream | undefined,
  last: Listing | undefined
): Listing | undefined {
  const shared = own === undefined ? undefined : (listing ?? last)
  return own === undefined || shared === undefined ? listing : withListingParts(shared, [...own.parts.values()])
}

/** What the lists of owners take. The shared listing is counted for its upstream. */
function createOwnMemory() {
  const held = new Map<string, HeldMemory>()
  /** In bytes. */
  const sizes = new WeakMap<ListingPart, number>()
  return {
    /** To be called before it is counted. */
    async measure(part: ListingPart, share: MemoryShare): Promise<void> {
      sizes.set(part, await runSteps(jsonSizeSteps(part), share))
    },
    /** @throws GatewayError too_many: there is no memory for them */
    count({ key, memory: { share } }: ListsOwner, lists: OwnListsByUpstream): void {
      const parts = [...lists.values()].flatMap((own) => [...own.parts.values()])
      const memory = held.get(key) ?? holdMemory(share)
      const bytes = parts.reduce((sum, part) => sum + (sizes.get(part) ?? 0), 0)
      if (!memory.fit(bytes)) throw share.refusal(bytes, 'Lists of a session')
      if (bytes === 0) held.delete(key)
      else held.set(key, memory)
    },
    forget(ownerKey: string): void {
      held.get(ownerKey)?.set(0)
      held.delete(ownerKey)
    }
  }
}

export function createOwnLists(listings: Pick<Listings, 'peek' | 'last' | 'recheckView'>, clock: Clock, log: Log) {
  const ownLists = new Map<string, OwnListsByUpstream>()
  // Owner -> hash of the definition, and kind -> reader.
  const readers = new Map<string, Map<string, Reader>>()
  const memories = createOwnMemory()
  const turn = createPacers(clock, readRate)

  async function read(
    reader: Reader,
    definition: UpstreamDefinition,
    kind: ListKind,
    memory: MemoryShare,
    known: () => ReadonlyArray<ListingPart | undefined>,
    apply: (part: ListingPart, isReported: boolean) => void
  ): Promise<void> {
    const { signal } = reader.stop
    while (reader.unread !== undefined && !signal.aborted) {
      await reader.nextRead(signal, reader.entries)
      await turn(`${definition.tenant} ${definition.name}`, signal)
      if (signal.aborted) return
      const { upstream, isReported, over } = (reader.reading = reader.unread)
      // Before the request: a change that is reported while the response is on its way may not be in it.
      reader.unread = undefined
      try {
        const within = AbortSignal.any([signal, timeoutSignal(readTimeoutMs)])
        const read = await fetchList(upstream, kind, within, undefined, memory)
        const part = await runSteps(keepSame(read, known()), memory)
        await memories.measure(part, memory)
        reader.entries = entriesOf(part)
        // The owner may have gone as the response came: nothing would forget its lists any more.
        if (!signal.aborted) apply(part, isReported)
      } catch (err) {
        if (signal.aborted) return
        log.warn(
          { err, upstream: definition.name, tenant: definition.tenant },
          'a changed list could not be read; its client keeps the one before'
        )
      } finally {
        over.resolve()
        reader.reading = undefined
      }
    }
    // In the same turn as the check above: a change that is reported in between would wait for the next one.
    reader.isRunning = false
  }

  function replace(
    owner: ListsOwner,
    viewKey: ViewKey | undefined,
    definition: UpstreamDefinition,
    lists: ListsOfUpstream | undefined,
    reported: readonly ListKind[] = []
  ): void {
    const before = ownLists.get(owner.key)
    const after = new Map(before)
    if (lists === undefined) after.delete(definition.hash)
    else after.set(definition.hash, lists)
    memories.count(owner, after)
    if (after.size === 0) ownLists.delete(owner.key)
    else ownLists.set(owner.key, after)
    const listing = listings.peek(definition, viewKey)
    const last = listings.last(definition, viewKey)
    const [old, now] = [before, after].map((own) => withOwnLists(listing, own?.get(definition.hash), last))
    owner.listsChanged(new Set([...changedKinds(old, now), ...reported]))
  }

  function stopReading(ownerKey: string, hash?: string): void {
    const own = readers.get(ownerKey)
    for (const [id, { stop, unread, reading }] of own ?? []) {
      if (hash !== undefined && !id.startsWith(hash)) continue
      stop.abort()
      for (const change of [unread, reading]) change?.over.resolve()
      own?.delete(id)
    }
    if (own?.size === 0) readers.delete(ownerKey)
  }

  return {
    /** Is there nothing to be known of any owner? */
    get empty() {
      return ownLists.size === 0 && readers.size === 0
    },
    /** The lists, by key of the owner. */
    lists: ownLists as ReadonlyMap<string, OwnListsByUpstream>,
    has: (ownerKey: string, hash: string, kind: ListKind): boolean =>
      ownLists.get(ownerKey)?.get(hash)?.parts.has(kind) === true,
    /** Returns the lists that were reported to the owner and are not read yet. None of the promises rejects. */
    pending: (ownerKey: string): Array<Promise<void>> =>
      [...(readers.get(ownerKey)?.values() ?? [])].flatMap(
        ({ unread, reading }) => (unread ?? reading)?.over.promise ?? []
      ),
    /** The owner's connection to an upstream noticed a change, or ended (`upstream` and `kind` undefined). */
    changed(
      owner: ListsOwner,
      viewKey: ViewKey | undefined,
      definition: UpstreamDefinition,
      upstream: Upstream | undefined,
      kind: ListKind | undefined,
      noticedBy: NoticedBy
    ): void {
      const { hash } = definition
      if (kind === undefined) {
        stopReading(owner.key, hash)
        if (ownLists.get(owner.key)?.has(hash) === true) replace(owner, viewKey, definition, undefined)
        return
      }
      if (upstream === undefined) return
      if (viewKey !== undefined) listings.recheckView(definition, viewKey)
      const ofOwner = readers.get(owner.key) ?? new Map<string, Reader>()
      readers.set(owner.key, ofOwner)
      const id = `${hash} ${kind}`
      const reader = ofOwner.get(id) ?? {
        nextRead: createReadRate(clock),
        stop: new AbortController(),
        entries: 0,
        unread: undefined,
        reading: undefined,
        isRunning: false
      }
      ofOwner.set(id, reader)
      const { over = Promise.withResolvers<void>(), isReported = false } = reader.unread ?? {}
      reader.unread = { upstream, isReported: isReported || noticedBy === 'server', over }
      if (reader.isRunning) return
      reader.isRunning = true
      const { era } = upstream
      const known = () => {
        const own = ownLists.get(owner.key)?.get(hash)
        return { own, shared: listings.peek(definition, viewKey) ?? (own && listings.last(definition, viewKey)) }
      }
      const before = (): Array<ListingPart | undefined> => [known().own?.parts.get(kind), known().shared]
      void read(reader, definition, kind, owner.memory.share, before, (part, isReported) => {
        const { own, shared } = known()
        // The other lists are not known yet; the first reading of the shared listing will have this change.
        if (shared === undefined) return
        // Many servers register tools as soon as they know their client: then the shared listing has the change
        // already.
        const isSame =
          own?.parts.has(kind) !== true && changedKinds(shared, withListingParts(shared, [part])).size === 0
        const lists = isSame ? own : { parts: new Map(own?.parts).set(kind, part), era }
        replace(owner, viewKey, definition, lists, isReported ? [kind] : [])
      })
    },
    forget(ownerKey: string): void {
      stopReading(ownerKey)
      ownLists.delete(ownerKey)
      memories.forget(ownerKey)
    }
  }
}
