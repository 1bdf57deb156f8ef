// What this process holds of a session while it is in use: its GET stream, its calls in flight, what it still has to be told.
// Nothing here is needed to serve the session elsewhere; what is idle is forgotten.

import { GatewayError } from '../protocol/errors.ts'
import type { EndpointName, TenantId } from '../protocol/ids.ts'
import type { Notification, RequestId } from '../protocol/messages.ts'
import type { ListKind } from '../protocol/seams.ts'
import type { Session } from './sessions.ts'

/** The session's GET stream, implemented by the door. Neither function throws. */
export interface Outlet {
  send (notification: Notification): void
  /** Ends the stream; the client may open another. */
  end (): void
}

export interface CallInFlight {
  readonly id: RequestId
  /** At the caller's wish: nothing is answered. */
  cancel (reason: string | undefined): void
  /** Not at the caller's wish: it is answered with the reason. */
  end (reason: Error): void
}

export interface LiveSession {
  readonly key: string
  readonly tenant: TenantId
  readonly endpoint: EndpointName
  /** As last loaded. */
  session: Session
  readonly calls: Set<CallInFlight>
  /** The newest GET stream takes over from the one before. Returns how to detach it. */
  attach (outlet: Outlet): () => void
  readonly listening: boolean
  /** On the GET stream; dropped where none is open (2025-11-25 basic/transports: the stream is the client's choice). */
  send (notification: Notification): void
  /** Tells the client that a list changed: now, or as soon as it listens. Several changes of one kind become one message. */
  changed (kinds: Iterable<ListKind>): void
}

export interface LiveSessions {
  /** The live part of a session, made where there is none. */
  use (session: Session): LiveSession
  get (key: string): LiveSession | undefined
  all (): Iterable<LiveSession>
  /** Ends stream and calls of a session that has ended. */
  drop (key: string): void
  onDrop (listener: (key: string) => void): void
  readonly size: number
  close (): void
}

export interface LiveOptions {
  readonly clock: { now (): number }
  /** How long a session lives unused. What is longer unused here has ended, or lives at another process. */
  readonly idleMs?: () => number
}

interface Entry extends LiveSession {
  usedAt: number
  outlet: Outlet | undefined
  readonly pending: Set<ListKind>
}

export function createLiveSessions ({ clock, idleMs = () => 30 * 60_000 }: LiveOptions): LiveSessions {
  const entries = new Map<string, Entry>()
  const listeners: Array<(key: string) => void> = []
  let closed = false

  const sweep = setInterval(() => {
    const before = clock.now() - idleMs()
    for (const [key, entry] of entries) {
      // Clients seldom say goodbye: this is how most sessions let go of their connections.
      if (entry.usedAt < before && entry.calls.size === 0 && entry.outlet === undefined) drop(key)
    }
  }, Math.min(idleMs(), 30_000))
  sweep.unref()

  function drop (key: string): void {
    const entry = entries.get(key)
    if (entry !== undefined) {
      entries.delete(key)
      for (const call of entry.calls) call.end(new GatewayError('session_unknown', 'The session ended before the answer was there. Whether the call took effect is unknown.', { data: { outcome: 'unknown' } }))
      entry.outlet?.end()
    }
    for (const listener of listeners) listener(key)
  }

  function create (session: Session): Entry {
    const entry: Entry = {
      key: session.key,
      tenant: session.record.owner.tenant,
      endpoint: session.record.endpoint,
      session,
      calls: new Set(),
      usedAt: clock.now(),
      outlet: undefined,
      pending: new Set(),
      get listening () { return entry.outlet !== undefined },
      attach (outlet) {
        // It came in just before the end of the process, whose wait it would prolong.
        if (closed) outlet.end()
        const previous = entry.outlet
        entry.outlet = outlet
        previous?.end()
        for (const kind of entry.pending) outlet.send(changedMessage(kind))
        entry.pending.clear()
        return () => {
          if (entry.outlet === outlet) entry.outlet = undefined
          entry.usedAt = clock.now()
        }
      },
      send (notification) {
        entry.outlet?.send(notification)
      },
      changed (kinds) {
        for (const kind of kinds) {
          if (entry.outlet === undefined) entry.pending.add(kind)
          else entry.outlet.send(changedMessage(kind))
        }
      }
    }
    return entry
  }

  return {
    use (session) {
      let entry = entries.get(session.key)
      if (entry === undefined) entries.set(session.key, entry = create(session))
      entry.session = session
      entry.usedAt = clock.now()
      return entry
    },
    get: (key) => entries.get(key),
    all: () => entries.values(),
    drop,
    onDrop (listener) {
      listeners.push(listener)
    },
    get size () { return entries.size },
    close () {
      closed = true
      clearInterval(sweep)
      for (const entry of entries.values()) entry.outlet?.end()
    }
  }
}

const changedMessage = (kind: ListKind): Notification => ({ method: `notifications/${kind}/list_changed` })
