// One stream to a client. The last events are held, so that a connection may break and the next one go on where it
// ended: each event once, in order (2025-11-25 basic/transports "Resumability and Redelivery").

import type { JsonText } from '../protocol/json-text.ts'
import { bytesPerChar, type HeldMemory } from '../limits/memory.ts'
import { eventsKept } from '../store/keys.ts'
import { nextTurn } from '../time/turns.ts'

/** A connection of the client. Nothing here throws or rejects. */
export interface Sink {
  /**
   * @param data one line of text; undefined for an event with an id only, which primes the client
   * @returns false where the next event should wait for `drained`
   */
  event(id: string, data: JsonText | undefined): boolean
  /** Resolves when more can be written, or nothing will be any more. */
  drained(): Promise<void>
  /** Closes the connection, not the stream: the client is to come back for what follows this id. */
  pause(id: string, retryMs?: number): void
  end(): void
  /** Closes the connection of a client that does not read, at once. */
  overflow(): void
}

/** One connection of a stream. */
export interface Attachment {
  /** The connection is gone. */
  detach(): void
  /** Closes the connection of a client that can come back (2025-11-25 basic/transports: the client polls). */
  pause(): void
}

export type ClientStream = Pick<
  Stream,
  'send' | 'answer' | 'prime' | 'finish' | 'attach' | 'isAttached' | 'pendingChars'
>

export type Stream = ReturnType<typeof createStream>

/** Characters. */
const maxHeld = 4 * 1024 * 1024
/** Characters of newer events that a reader may be behind for more than `momentMs`; older events do not count. */
const maxBehind = 1024 * 1024
const momentMs = 1_000

interface Connection {
  readonly sink: Sink
  /** The first event after it connected. */
  readonly from: number
  /** The first event that it has not been given. */
  next: number
  /** The time since which the sink is full. */
  fullSince: number | undefined
  pausing: boolean
}

interface StreamOptions {
  readonly now: () => number
  /** Whether the client takes events without data, as from 2025-11-25 on. */
  readonly primes: boolean
  readonly idOf: (seq: number) => string
  /** @param data undefined for an event that only primes. @param keep how many of the last events are held */
  readonly onEvent: (seq: number, data: JsonText | undefined, keep: number) => void
  readonly onFinish: () => void
  /** The memory that the held events take up. */
  readonly memory: HeldMemory
}

/** The system takes megabytes from one connection before it lets it wait: not all of them in one turn. */
const taken = (sink: Sink): Promise<void> => sink.drained().then(nextTurn)

const lengthOf = (all: ReadonlyArray<JsonText | undefined>): number =>
  all.reduce((sum, data) => sum + (data?.length ?? 0), 0)

/** @param id the last that it was given, where its client can come back for what follows */
function endConnection(sink: Sink | undefined, id: string | undefined, retryMs: number): void {
  if (id === undefined) sink?.end()
  else sink?.pause(id, retryMs)
}

export function createStream({ now, primes, idOf, onEvent, onFinish, memory }: StreamOptions) {
  const held: Array<JsonText | undefined> = []
  let heldLength = 0
  let seq = -1
  let over = false
  /** Connections are sent away, to come back after so long. */
  let awayMs: number | undefined
  let connection: Connection | undefined
  let detachedAt = now()

  const first = (): number => seq - held.length + 1

  function keep(data: JsonText | undefined, isReserved = false): void {
    seq++
    held.push(data)
    heldLength += data?.length ?? 0
    const fits = (): boolean => memory.fit(heldLength * bytesPerChar)
    const isTooMuch = (): boolean => held.length > eventsKept || (held.length > 1 && (heldLength > maxHeld || !fits()))
    while (isTooMuch()) heldLength -= held.shift()?.length ?? 0
    if (isReserved) memory.set(heldLength * bytesPerChar)
    const isLost = !fits()
    if (isLost) memory.set((held.length = heldLength = 0))
    onEvent(seq, data, held.length)
    if (isLost || (connection !== undefined && lags(connection))) close()?.overflow()
  }

  function add(text: JsonText, isReserved = false): void {
    if (over) return
    keep(text, isReserved)
    flow()
  }

  /** @returns whether it misses events that are not held any more, or does not read */
  function lags({ from, next, fullSince }: Connection): boolean {
    if (fullSince === undefined) return false
    if (next < first()) return true
    return lengthFrom(Math.max(next, from)) > maxBehind && now() - fullSince > momentMs
  }

  const lengthFrom = (at: number): number => lengthOf(held.slice(Math.max(0, at - first())))

  /** Writes as fast as the connection takes it: a queue for a reader that does not read would grow without end. */
  function flow(): void {
    const current = connection
    if (current === undefined || current.fullSince !== undefined) return
    while (current.next <= seq) {
      const at = current.next++
      const data = held[at - first()]
      if (data === undefined || current.sink.event(idOf(at), data)) continue
      current.fullSince = now()
      void taken(current.sink).then(() => {
        current.fullSince = undefined
        if (connection === current) flow()
      })
      return
    }
    if (over) close()?.end()
    else if (current.pausing) close()?.pause(idOf(seq))
    else if (awayMs !== undefined) sendAway(awayMs)
  }

  function close(): Sink | undefined {
    const sink = connection?.sink
    connection = undefined
    detachedAt = now()
    forgetIfOver()
    return sink
  }

  /** Nobody comes back for it: what it held is let go of with it. */
  function forgetIfOver(): void {
    if (over && connection === undefined) memory.set(0)
  }

  function sendAway(retryMs: number): void {
    const next = primes ? (connection?.next ?? 0) : 0
    endConnection(close(), next > 0 ? idOf(next - 1) : undefined, retryMs)
  }

  function connect(sink: Sink, next: number): Attachment {
    close()?.end()
    const current: Connection = (connection = {
      sink,
      from: seq + 1,
      next: Math.max(next, first()),
      fullSince: undefined,
      pausing: false
    })
    return {
      detach() {
        if (connection === current) close()
      },
      pause() {
        if (!primes || connection !== current) return
        current.pausing = true
        flow()
      }
    }
  }

  return {
    /** Sends a message, unless the stream is finished. Where there is no memory, it is lost, with the connection. */
    send: (message: unknown): void => add(JSON.stringify(message)),
    /** Sends the answer of a call, whose memory was taken before. */
    answer: (text: JsonText): void => add(text, true),
    /** Gives the client an id before the first message (2025-11-25: "prime the client to reconnect"). */
    prime(): void {
      if (over || !primes) return
      keep(undefined)
      if (connection === undefined) return
      connection.next = seq + 1
      connection.sink.event(idOf(seq), undefined)
    },
    finish(): void {
      if (over) return
      over = true
      onFinish()
      flow()
      forgetIfOver()
    },
    /** Tells the client to come back; it finds the stream unfinished. */
    leave(retryMs: number): void {
      if (over) return
      over = true
      sendAway(retryMs)
    },
    /** Sends the client away because this process stops: later events are for the process that asks the store. */
    leaveToStore: (retryMs: number): void => sendAway((awayMs = retryMs)),
    /** The connection gets what comes; the one before is ended. */
    attach(sink: Sink): Attachment {
      const attachment = connect(sink, seq + 1)
      flow()
      return attachment
    },
    /** Sends the held events after this one, then what comes. */
    resume(sink: Sink, after: number): Attachment {
      const attachment = connect(sink, after + 1)
      // A client that loses the connection before its first id forgets where it was.
      if (primes) sink.event(idOf(after), undefined)
      flow()
      return attachment
    },
    isAttached: (): boolean => connection !== undefined,
    /** Characters that the connection has not been given yet. */
    pendingChars: (): number => (connection === undefined ? 0 : lengthFrom(connection.next)),
    /** Epoch ms; undefined while it has a connection. */
    detachedAt: (): number | undefined => (connection === undefined ? detachedAt : undefined)
  }
}
