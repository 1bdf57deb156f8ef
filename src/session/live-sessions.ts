// What this process holds of a session while it is in use: its stream, its calls in flight, and list changes not sent
// yet. No other process needs it; what is idle is forgotten.

import { createMemoryAccount, holdMemory, type HeldMemory, type MemoryShare } from '../limits/memory.ts'
import {
  type EndpointName,
  GatewayError,
  type JsonObject,
  type Notification,
  notificationMessage,
  type RequestId,
  type ServerRequest,
  type TenantId
} from '../protocol/messages.ts'
import type { ListKind, ServerRequestOptions } from '../protocol/seams.ts'
import { type Clock, every } from '../time/clock.ts'
import type { LeftOut } from './bus/left-out.ts'
import { createPendingServerRequests, type PendingServerRequests, type Send } from './pending-server-requests.ts'
import { callOfEndedSession, endOfSession, type LeftSession, runAll } from './session-end.ts'
import type { Session } from './sessions.ts'
import type { ClientStream } from './stream.ts'
import { createUndelivered } from './elsewhere/undelivered.ts'

export interface CallInFlight {
  readonly id: RequestId
  /** Cancels the call: it is not answered. */
  cancel(reason: string | undefined): void
  /** Ends the call: it is answered with the reason. */
  end(reason: Error): void
  /** Ahead of the answer. @returns false where the client takes no stream */
  push(message: JsonObject): boolean
}

/** Carries what belongs to no call: the GET stream of a session, or the one stream of HTTP+SSE. */
export interface SessionStream extends Pick<ClientStream, 'send' | 'finish' | 'isAttached'> {
  /**
   * Of one at another process: what that has not heard, and will not hear any more, is given to this one.
   * @returns what resolves when all of it is given, where that takes a moment
   */
  leaveRestTo?(next: (message: JsonObject) => void): Promise<void> | undefined
}

export interface LiveSession {
  readonly key: string
  readonly tenant: TenantId
  readonly endpoint: EndpointName
  /** The session as it was loaded last. */
  session: Session
  readonly calls: Set<CallInFlight>
  readonly serverRequests: PendingServerRequests
  /** The memory of the session and of its subscriptions. */
  readonly memory: HeldMemory
  /** Bytes that each connection of the client has not taken yet. */
  readonly unread: Set<() => number>
  /** The stream that it listens on, here or at another process. */
  readonly stream: SessionStream | undefined
  /** Finishes the one before, and sends what that did not get, and pending list changes. */
  setStream(stream: SessionStream): void
  /** Lets messages for the stream wait for a moment: the client may listen at another process, which will say so. */
  expectStream(): void
  /** Sends the list changes that wait, where a client is connected to the stream. */
  flushListChanges(): void
  /** Whether a client is connected to the stream. */
  isListening(): boolean
  /** Dropped where no stream was ever open, or is expected (2025-11-25 basic/transports: it is optional). */
  send(notification: Notification): void
  /**
   * Sends a server request ahead of the answer of the call that it belongs to (`first`), else on the session's own
   * stream, else ahead of the answer of the newest call that takes a stream.
   * @throws RpcError where the client can be reached on none
   */
  ask(request: ServerRequest, options?: ServerRequestOptions, first?: Send): Promise<unknown>
  /** Tells the client now, or as soon as it listens: once for several changes of one kind. */
  listsChanged(kinds: Iterable<ListKind>): void
}

interface Entry extends LiveSession {
  usedAt: number
  stream: SessionStream | undefined
  /** Ends the stream and drops what waits for it. */
  letGo(): void
}

/** The other processes hear at once that they have to say that they hold a stream. */
const expectedMs = 15_000
/**
 * Of an idle session: its entries here and there, its record, what its client declared. In bytes; an estimate from
 * above, to be compared with `npm run bench -- --only memory`.
 */
const sessionBytes = 16_384

const unlimited = createMemoryAccount().share('', '')

export type LiveSessions = ReturnType<typeof createLiveSessions>

/**
 * @param prefix this process, unique among those on one store: begins the ids of server requests
 * @param idleMs a session unused for so long has ended, or lives at another process
 * @param leftOut is told of messages for a stream that is expected, for which there is no room
 */
export function createLiveSessions(clock: Clock, prefix: string, idleMs = () => 30 * 60_000, leftOut?: LeftOut) {
  const entries = new Map<string, Entry>()
  const createListeners: Array<(session: LiveSession) => void> = []
  const dropListeners: Array<(key: string, left?: LeftSession) => void> = []
  let closed = false

  const sweep = every(clock, Math.min(idleMs(), 30_000), () => {
    const before = clock.now() - idleMs()
    for (const [key, { session, usedAt, calls, isListening }] of entries) {
      if (usedAt >= before || calls.size > 0 || isListening()) continue
      // Few clients end their sessions: this is how most sessions release their connections.
      drop(key, session.record.home === prefix ? { ...session, usedAt } : undefined)
    }
  })

  function drop(key: string, left?: LeftSession): void {
    const entry = entries.get(key)
    entries.delete(key)
    runAll([
      ...[...(entry?.calls ?? [])].map((call) => () => call.end(callOfEndedSession)),
      () => entry?.serverRequests.end(endOfSession),
      () => entry?.letGo(),
      ...dropListeners.map((listener) => () => listener(key, left)),
      // Subscriptions have been given up by then.
      () => entry?.memory.set(0)
    ])
  }

  function create(session: Session, memory: HeldMemory): Entry {
    const changed = new Set<ListKind>()
    const waiting = createUndelivered(holdMemory(memory.share))
    let expectedUntil = 0
    /** The messages that the stream before has left over are sent first. */
    let rest: Promise<void> | undefined
    const sendWaiting = (given?: Promise<void>): void => {
      if (rest === given) rest = undefined
      if (rest === undefined) for (const message of waiting.takeAll()) entry.stream?.send(message)
    }
    const entry: Entry = {
      key: session.key,
      memory,
      tenant: session.record.owner.tenant,
      endpoint: session.record.endpoint,
      session,
      calls: new Set(),
      unread: new Set(),
      usedAt: clock.now(),
      stream: undefined,
      serverRequests: createPendingServerRequests(clock, prefix),
      isListening: () => entry.stream?.isAttached() === true,
      setStream(stream) {
        // The process is stopping, and would wait for it; one at another process goes on.
        if (closed && stream.leaveRestTo === undefined) return stream.finish()
        const previous = entry.stream
        entry.stream = stream
        const left = previous?.leaveRestTo?.((message) => entry.stream?.send(message))
        rest = left ?? rest
        void left?.then(() => sendWaiting(left))
        sendWaiting()
        previous?.finish()
        entry.flushListChanges()
      },
      expectStream() {
        expectedUntil = clock.now() + expectedMs
      },
      flushListChanges() {
        entry.usedAt = clock.now()
        if (!entry.isListening()) return
        for (const kind of changed)
          entry.stream?.send(notificationMessage({ method: `notifications/${kind}/list_changed` }))
        changed.clear()
      },
      send(notification) {
        const message = notificationMessage(notification)
        if (entry.stream !== undefined && rest === undefined) entry.stream.send(message)
        else if ((rest !== undefined || clock.now() < expectedUntil) && waiting.add(message)) leftOut?.(entry)
      },
      letGo() {
        waiting.takeAll()
        void entry.stream?.leaveRestTo?.(() => {})
        entry.stream?.finish()
      },
      listsChanged(kinds) {
        for (const kind of kinds) changed.add(kind)
        entry.flushListChanges()
      },
      ask(request, options, first) {
        const own = (message: JsonObject): boolean => {
          const isListening = entry.isListening()
          if (isListening) entry.stream?.send(message)
          return isListening
        }
        // Looked up for each message: calls come and go while the request is open.
        const newest = (message: JsonObject): boolean => [...entry.calls].toReversed().some(({ push }) => push(message))
        return entry.serverRequests.ask(request, first === undefined ? [own, newest] : [first, own, newest], options)
      }
    }
    return entry
  }

  return {
    /**
     * The live part of a session, made where there is none.
     * @param share of its owner; default: without limits
     * @throws GatewayError too_many; session_unknown where it has ended since it was read
     */
    use(session: Session, share: MemoryShare = unlimited): LiveSession {
      let entry = entries.get(session.key)
      if (entry === undefined) {
        const memory = holdMemory(share)
        memory.require(sessionBytes, 'The session')
        entry = create(session, memory)
        entries.set(session.key, entry)
        for (const listener of createListeners) listener(entry)
      }
      entry.session = session
      entry.usedAt = clock.now()
      return entry
    },
    get: (key: string): LiveSession | undefined => entries.get(key),
    all: (): Iterable<LiveSession> => entries.values(),
    /** The session has ended: ends its calls, server requests and stream. */
    drop,
    /** Each listener is called when the live part of a session is made. */
    onCreate: (listener: (session: LiveSession) => void): void => void createListeners.push(listener),
    /** Each listener is called when the live part of a session is dropped. */
    onDrop: (listener: (key: string, left?: LeftSession) => void): void => void dropListeners.push(listener),
    get size() {
      return entries.size
    },
    get closed() {
      return closed
    },
    /**
     * Calls in flight go on.
     * @param canAnswer whether clients can answer server requests by other processes; otherwise these end
     */
    close({ canAnswer = false } = {}): void {
      closed = true
      sweep.close()
      for (const entry of entries.values()) {
        // Responses come by POST, and no new request is accepted any more.
        if (!canAnswer)
          entry.serverRequests.end(
            new GatewayError('shutting_down', 'The gateway is stopping; the client cannot answer any more.')
          )
      }
    }
  }
}
