// What this process holds of a session while it is in use: its GET stream, its calls in flight, what it still has to be told.
// Nothing here is needed to serve the session elsewhere; what is idle is forgotten.

import { GatewayError } from '../protocol/errors.ts'
import type { EndpointName, TenantId } from '../protocol/ids.ts'
import { notificationMessage } from '../protocol/messages.ts'
import type { JsonObject, Notification, RequestId, ServerRequest } from '../protocol/messages.ts'
import type { AskOptions, ListKind } from '../protocol/seams.ts'
import type { Asks, Send } from './asks.ts'
import type { Session } from './sessions.ts'
import type { ClientStream } from './stream.ts'

export interface CallInFlight {
  readonly id: RequestId
  /** At the caller's wish: nothing is answered. */
  cancel (reason: string | undefined): void
  /** Not at the caller's wish: it is answered with the reason. */
  end (reason: Error): void
  /** Streams a message to the caller ahead of the answer. @returns false where the caller takes no stream */
  push (message: JsonObject): boolean
}

/** Where a session is told what belongs to no call: its GET stream, or the one stream of HTTP+SSE. */
export type Outlet = Pick<ClientStream, 'send' | 'finish' | 'attached'>

export interface LiveSession {
  readonly key: string
  readonly tenant: TenantId
  readonly endpoint: EndpointName
  /** As last loaded. */
  session: Session
  readonly calls: Set<CallInFlight>
  readonly asks: Asks
  /** What connections of the client still have to take, in bytes, each as of now. */
  readonly unread: Set<() => number>
  /** The stream of the session itself takes over from the one before; what the client still has to be told is sent. */
  listen (stream: Outlet): void
  /** A connection of the stream came or went: what the client still has to be told is sent, if it can be. */
  heard (): void
  readonly listening: boolean
  /** On the session's own stream; dropped where none was ever open (2025-11-25 basic/transports: the stream is the client's choice). */
  send (notification: Notification): void
  /**
   * A question to the client: ahead of the answer of the call that it belongs to (`first`), else on the session's own stream, else ahead
   * of the answer of the newest call that takes a stream.
   * @throws RpcError where the client can be reached on none
   */
  ask (request: ServerRequest, options?: AskOptions, first?: Send): Promise<unknown>
  /** Tells the client that a list changed: now, or as soon as it listens. Several changes of one kind become one message. */
  changed (kinds: Iterable<ListKind>): void
}

export interface LiveSessions {
  /** The live part of a session, made where there is none. */
  use (session: Session): LiveSession
  get (key: string): LiveSession | undefined
  all (): Iterable<LiveSession>
  /** Ends calls, questions and stream of a session that has ended. */
  drop (key: string): void
  onDrop (listener: (key: string) => void): void
  readonly size: number
  /** Nothing is asked and nobody listens any more; calls in flight go on. */
  close (): void
}

export interface LiveOptions {
  readonly clock: { now (): number }
  /** How long a session lives unused. What is longer unused here has ended, or lives at another process. */
  readonly idleMs?: () => number
  readonly asks: () => Asks
}

interface Entry extends LiveSession {
  usedAt: number
  stream: Outlet | undefined
  readonly pending: Set<ListKind>
}

export function createLiveSessions ({ clock, idleMs = () => 30 * 60_000, asks }: LiveOptions): LiveSessions {
  const entries = new Map<string, Entry>()
  const listeners: Array<(key: string) => void> = []
  let closed = false

  const sweep = setInterval(() => {
    const before = clock.now() - idleMs()
    for (const [key, entry] of entries) {
      // Clients seldom say goodbye: this is how most sessions let go of their connections.
      if (entry.usedAt < before && entry.calls.size === 0 && !entry.listening) drop(key)
    }
  }, Math.min(idleMs(), 30_000))
  sweep.unref()

  function drop (key: string): void {
    const entry = entries.get(key)
    entries.delete(key)
    // Whatever one of them makes of it: the others let go of connections and files all the same.
    inSpite([...(entry === undefined ? [] : endings(entry)), ...listeners.map((listener) => () => listener(key))])
  }

  function endings ({ calls, asks, stream }: Entry): Array<() => void> {
    const ended = new GatewayError('session_unknown', 'The session ended before the answer was there. Whether the call took effect is unknown.', { data: { outcome: 'unknown' } })
    return [
      ...[...calls].map((call) => () => call.end(ended)),
      () => asks.end(new GatewayError('session_unknown', 'The session of the client ended.')),
      () => stream?.finish()
    ]
  }

  function create (session: Session): Entry {
    const entry: Entry = {
      key: session.key,
      tenant: session.record.owner.tenant,
      endpoint: session.record.endpoint,
      session,
      calls: new Set(),
      unread: new Set(),
      usedAt: clock.now(),
      stream: undefined,
      asks: asks(),
      pending: new Set(),
      get listening () { return entry.stream?.attached === true },
      listen (stream) {
        // It came in just before the end of the process, whose wait it would prolong.
        if (closed) return stream.finish()
        const previous = entry.stream
        entry.stream = stream
        previous?.finish()
        entry.heard()
      },
      heard () {
        entry.usedAt = clock.now()
        if (!entry.listening) return
        for (const kind of entry.pending) entry.stream?.send(changedMessage(kind))
        entry.pending.clear()
      },
      send (notification) {
        entry.stream?.send(notificationMessage(notification))
      },
      changed (kinds) {
        for (const kind of kinds) entry.pending.add(kind)
        entry.heard()
      },
      ask (request, options, first) {
        const own = (message: JsonObject): boolean => {
          if (!entry.listening) return false
          entry.stream?.send(message)
          return true
        }
        // Looked up when it is needed: calls come and go while the question is open.
        const newest = (message: JsonObject): boolean => [...entry.calls].toReversed().some(({ push }) => push(message))
        return entry.asks.ask(request, first === undefined ? [own, newest] : [first, own, newest], options)
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
      for (const entry of entries.values()) {
        // Answers come by POST, and no new request is let in any more.
        entry.asks.end(new GatewayError('shutting_down', 'The gateway is stopping; the client cannot answer any more.'))
        entry.stream?.finish()
      }
    }
  }
}

const changedMessage = (kind: ListKind): JsonObject => notificationMessage({ method: `notifications/${kind}/list_changed` })


/** Runs all, and throws what the first failure was. */
function inSpite (steps: ReadonlyArray<() => void>): void {
  const failures = steps.flatMap((step) => {
    try {
      step()
      return []
    } catch (error) {
      return [error]
    }
  })
  if (failures.length > 0) throw failures[0]
}
