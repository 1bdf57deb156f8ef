// Lists of an upstream as the own connection of a session gives them, where that connection reported a change. They are
// read one at a time and no more often than the read rate allows, and the last change is always read.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { jsonSizeOf } from '../../limits/limits.ts'
import { holdMemory, type HeldMemory, type MemoryShare } from '../../limits/memory.ts'
import type { Log } from '../../observe/log.ts'
import type { ListKind, NoticedBy, Upstream } from '../../protocol/seams.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import { type Clock, timeoutSignal } from '../../time/clock.ts'
import { fetchList, type Listing, type ListingPart, withListingParts } from '../../upstream/listing/listing.ts'
import { changedKinds, createReadRate, type ReadRate } from './freshness.ts'
import type { Listings } from './listings.ts'
import type { ViewKey } from './views.ts'

/** The lists that the session's own connection reported as changed. The others are those of the shared listing. */
interface OwnLists {
  /** For when the upstream is down, and so has no shared listing. */
  readonly shared: Listing
  readonly parts: ReadonlyMap<ListKind, ListingPart>
}

/** Those of a session, by hash of the upstream's definition. Another object after each change. */
export type OwnListsByUpstream = ReadonlyMap<string, OwnLists>

interface Reader {
  readonly nextRead: ReadRate
  readonly stop: AbortController
  /** The connection to read from, while there is a change that was not read. */
  unread: Upstream | undefined
  /** Did the server report it? Then the client is told, even where it may see nothing else than before. */
  isReported: boolean
  isReading: boolean
}

export type SessionLists = ReturnType<typeof createSessionLists>

const readTimeoutMs = 30_000

export function withOwnLists(listing: Listing | undefined, own: OwnLists | undefined): Listing | undefined {
  return own === undefined ? listing : withListingParts(listing ?? own.shared, [...own.parts.values()])
}

export function createSessionLists(listings: Pick<Listings, 'peek' | 'recheckView'>, clock: Clock, log: Log) {
  const ownLists = new Map<string, OwnListsByUpstream>()
  // Session -> hash of the definition, and kind -> reader.
  const readers = new Map<string, Map<string, Reader>>()
  const held = new Map<string, HeldMemory>()

  async function read(
    reader: Reader,
    definition: UpstreamDefinition,
    kind: ListKind,
    memory: MemoryShare,
    apply: (part: ListingPart, isReported: boolean) => void
  ): Promise<void> {
    const { signal } = reader.stop
    while (reader.unread !== undefined && !signal.aborted) {
      await reader.nextRead(signal)
      if (signal.aborted) return
      const { unread: upstream, isReported } = reader
      // Before the request: a change that is reported while the response is on its way may not be in it.
      reader.unread = undefined
      reader.isReported = false
      try {
        const within = AbortSignal.any([signal, timeoutSignal(readTimeoutMs)])
        const part = await fetchList(upstream, kind, within, undefined, memory)
        // The session may have ended as the response came: nothing would forget its lists any more.
        if (!signal.aborted) apply(part, isReported)
      } catch (err) {
        if (signal.aborted) return
        log.warn(
          { err, upstream: definition.name, tenant: definition.tenant },
          'a changed list could not be read; the session keeps the one before'
        )
      }
    }
    // In the same turn as the check above: a change that is reported in between would wait for the next one.
    reader.isReading = false
  }

  /** The shared listing is counted for its upstream. */
  function count({ key, memory: { share } }: LiveSession, lists: OwnListsByUpstream): void {
    const parts = [...lists.values()].flatMap((own) => [...own.parts.values()])
    const memory = held.get(key) ?? holdMemory(share)
    held.set(key, memory)
    memory.set(parts.length === 0 ? 0 : jsonSizeOf(parts))
  }

  function replace(
    session: LiveSession,
    viewKey: ViewKey | undefined,
    definition: UpstreamDefinition,
    lists: OwnLists | undefined,
    reported: readonly ListKind[] = []
  ): void {
    const before = ownLists.get(session.key)
    const after = new Map(before)
    if (lists === undefined) after.delete(definition.hash)
    else after.set(definition.hash, lists)
    if (after.size === 0) ownLists.delete(session.key)
    else ownLists.set(session.key, after)
    count(session, after)
    const listing = listings.peek(definition, viewKey)
    const [old, now] = [before, after].map((own) => withOwnLists(listing, own?.get(definition.hash)))
    session.listsChanged(new Set([...changedKinds(old, now), ...reported]))
  }

  function stopReading(sessionKey: string, hash?: string): void {
    const own = readers.get(sessionKey)
    for (const [id, { stop }] of own ?? []) {
      if (hash !== undefined && !id.startsWith(hash)) continue
      stop.abort()
      own?.delete(id)
    }
    if (own?.size === 0) readers.delete(sessionKey)
  }

  return {
    /** By key of the session. */
    lists: ownLists as ReadonlyMap<string, OwnListsByUpstream>,
    has: (sessionKey: string, hash: string, kind: ListKind): boolean =>
      ownLists.get(sessionKey)?.get(hash)?.parts.has(kind) === true,
    /** The session's connection to an upstream noticed a change, or ended (`upstream` and `kind` undefined). */
    changed(
      session: LiveSession,
      viewKey: ViewKey | undefined,
      definition: UpstreamDefinition,
      upstream: Upstream | undefined,
      kind: ListKind | undefined,
      noticedBy: NoticedBy
    ): void {
      const { hash } = definition
      if (kind === undefined) {
        stopReading(session.key, hash)
        if (ownLists.get(session.key)?.has(hash) === true) replace(session, viewKey, definition, undefined)
        return
      }
      if (upstream === undefined) return
      if (viewKey !== undefined) listings.recheckView(definition, viewKey)
      const ofSession = readers.get(session.key) ?? new Map<string, Reader>()
      readers.set(session.key, ofSession)
      const id = `${hash} ${kind}`
      const reader = ofSession.get(id) ?? {
        nextRead: createReadRate(clock),
        stop: new AbortController(),
        unread: undefined,
        isReported: false,
        isReading: false
      }
      ofSession.set(id, reader)
      reader.unread = upstream
      reader.isReported ||= noticedBy === 'server'
      if (reader.isReading) return
      reader.isReading = true
      void read(reader, definition, kind, session.memory.share, (part, isReported) => {
        const own = ownLists.get(session.key)?.get(hash)
        const shared = listings.peek(definition, viewKey) ?? own?.shared
        // The other lists are not known yet; the first reading of the shared listing will have this change.
        if (shared === undefined) return
        // Many servers register tools as soon as they know their client: then the shared listing has the change
        // already.
        const isSame =
          own?.parts.has(kind) !== true && changedKinds(shared, withListingParts(shared, [part])).size === 0
        const lists = isSame ? own : { shared, parts: new Map(own?.parts).set(kind, part) }
        replace(session, viewKey, definition, lists, isReported ? [kind] : [])
      })
    },
    forget(sessionKey: string): void {
      stopReading(sessionKey)
      ownLists.delete(sessionKey)
      held.get(sessionKey)?.set(0)
      held.delete(sessionKey)
    }
  }
}
