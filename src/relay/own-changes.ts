// Changes that a session's own connections report: one reading of a list at a time, paced, and the last change is always read.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import type { ListKind, Upstream } from '../protocol/seams.ts'
import { fetchList } from '../upstream/listing.ts'
import type { ListingPart } from '../upstream/listing.ts'
import { createPace } from './pace.ts'
import type { Pace, PaceClock } from './pace.ts'

export interface OwnChanges {
  /** A list of this connection changed; `apply` gets what it holds now, unless its session or connection ended meanwhile. */
  changed (sessionKey: string, definition: UpstreamDefinition, upstream: Upstream, kind: ListKind, apply: (part: ListingPart) => void): void
  /** The connection of a session to an upstream ended; without `hash`, all of them did. */
  forget (sessionKey: string, hash?: string): void
}

interface Reader {
  readonly hash: string
  readonly pace: Pace
  readonly stop: AbortController
  /** The connection to read from, while there is a change that was not read. */
  dirty: Upstream | undefined
  reading: boolean
}

export function createOwnChanges ({ clock, log }: { readonly clock: PaceClock, readonly log: Log }): OwnChanges {
  // Session -> definition and kind -> reader.
  const readers = new Map<string, Map<string, Reader>>()

  async function read (reader: Reader, definition: UpstreamDefinition, kind: ListKind, apply: (part: ListingPart) => void): Promise<void> {
    const { signal } = reader.stop
    while (reader.dirty !== undefined && !signal.aborted) {
      await reader.pace.next(signal)
      if (signal.aborted) return
      const upstream = reader.dirty
      // Before the request: a change that is reported while the answer is on its way may not be in it.
      reader.dirty = undefined
      try {
        const part = await fetchList(upstream, kind, AbortSignal.any([signal, AbortSignal.timeout(30_000)]))
        // The session may have ended as the answer came: nobody would forget what it leaves.
        if (!signal.aborted) apply(part)
      } catch (err) {
        if (!signal.aborted) log.warn({ err, upstream: definition.name, tenant: definition.tenant }, 'a changed list could not be read; the session keeps the one before')
      }
    }
    // Here and not a turn later: a change that comes between would wait for the next one.
    reader.reading = false
  }

  return {
    changed (sessionKey, definition, upstream, kind, apply) {
      const own = readers.get(sessionKey) ?? new Map<string, Reader>()
      readers.set(sessionKey, own)
      const id = `${definition.hash} ${kind}`
      const reader = own.get(id) ?? { hash: definition.hash, pace: createPace(clock), stop: new AbortController(), dirty: undefined, reading: false }
      own.set(id, reader)
      reader.dirty = upstream
      if (reader.reading) return
      reader.reading = true
      void read(reader, definition, kind, apply)
    },
    forget (sessionKey, hash) {
      const own = readers.get(sessionKey)
      for (const [id, reader] of own ?? []) {
        if (hash !== undefined && reader.hash !== hash) continue
        reader.stop.abort()
        own?.delete(id)
      }
      if (own?.size === 0) readers.delete(sessionKey)
    }
  }
}
