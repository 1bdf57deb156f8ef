// One stream of events to a client. The last events are held, so that a client whose connection broke can come back and
// gets each event once and in order (2025-11-25 basic/transports "Resumability and Redelivery").

import type { JsonText } from '../protocol/json-text.ts'
import type { HeldMemory } from '../limits/memory.ts'
import { nextTurn } from '../time/turns.ts'
import { createHeldEvents } from './held-events.ts'

/** A connection of the client. Its methods never throw or reject. */
export interface Sink {
  /**
   * @param data one line of text; undefined for an event that only gives the client its id ("primes" it)
   * @returns false if the next event should wait for `drained`
   */
  event(id: string, data: JsonText | undefined): boolean
  /** Resolves when more can be written, or the connection is closed. */
  drained(): Promise<void>
  /** Closes the connection, but not the stream: the client should come back for the events after this id. */
  pause(id: string, retryMs?: number): void
  end(): void
  /** Closes the connection of a client that does not read, at once. */
  overflow(): void
}

/** One connection of a stream. */
export interface Attachment {
  /** Must be called when the connection is closed. */
  detach(): void
  /** Closes the connection of a client that can come back (2025-11-25 basic/transports: the client polls). */
  pause(): void
}

export type ClientStream = Pick<
  Stream,
  'send' | 'answer' | 'prime' | 'finish' | 'attach' | 'isAttached' | 'pendingChars'
>

export type Stream = ReturnType<typeof createStream>

/** How many characters of events since it connected a client may leave unread for more than `momentMs`. */
const maxBehind = 1024 * 1024
const momentMs = 1_000

interface Connection {
  readonly sink: Sink
  /** The number of the first event that was added after the connection was made. */
  readonly from: number
  /** The number of the next event to write. */
  next: number
  /** The time since which the client does not read; undefined while it reads. */
  fullSince: number | undefined
  pausing: boolean
}

interface StreamOptions {
  readonly now: () => number
  /** Whether the client accepts events without data, which clients of 2025-11-25 and later do. */
  readonly primes: boolean
  readonly idOf: (seq: number) => string
  /** @param data undefined for an event that only primes. @param keep how many events are held, this one included */
  readonly onEvent: (seq: number, data: JsonText | undefined, keep: number) => void
  readonly onFinish: () => void
  /** The memory that the held events take up. */
  readonly memory: HeldMemory
}

/** Waits for the next turn too: the system may accept megabytes before the sink is full, too much for one turn. */
const taken = (sink: Sink): Promise<void> => sink.drained().then(nextTurn)

/** @param id the last event that the client was given; undefined if it cannot come back for the next ones */
function endConnection(sink: Sink | undefined, id: string | undefined, retryMs: number): void {
  if (id === undefined) sink?.end()
  else sink?.pause(id, retryMs)
}

export function createStream({ now, primes, idOf, onEvent, onFinish, memory }: StreamOptions) {
  const held = createHeldEvents(memory)
  let seq = -1
  let over = false
  /** After how long clients should come back; undefined unless the process stops. */
  let awayMs: number | undefined
  let connection: Connection | undefined
  let detachedAt = now()

  const first = (): number => seq - held.count() + 1

  function keep(data: JsonText | undefined, isReserved = false): void {
    seq++
    const isHeld = held.add(data, isReserved)
    onEvent(seq, data, held.count())
    if (!isHeld || (connection !== undefined && lags(connection))) close()?.overflow()
  }

  function add(text: JsonText, isReserved = false): void {
    if (over) return
    keep(text, isReserved)
    flow()
  }

  /** @returns whether the connection lost events that are no longer held, or its client does not read */
  function lags({ from, next, fullSince }: Connection): boolean {
    if (fullSince === undefined) return false
    if (next < first()) return true
    return lengthFrom(Math.max(next, from)) > maxBehind && now() - fullSince > momentMs
  }

  const lengthFrom = (at: number): number => held.charsFrom(at - first())

  /** Writes until the sink is full, and again when it is drained. */
  function flow(): void {
    const current = connection
    if (current === undefined || current.fullSince !== undefined) return
    while (current.next <= seq) {
      const at = current.next++
      const data = held.get(at - first())
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

  /** Forgets the events of a finished stream without a connection: its client can no longer come back to it. */
  function forgetIfOver(): void {
    if (over && connection === undefined) held.clear()
  }

  function sendAway(retryMs: number): void {
    const next = primes ? (connection?.next ?? 0) : 0
    endConnection(close(), next > 0 ? idOf(next - 1) : undefined, retryMs)
  }

  function connect(sink: Sink, next: number): Attachment {
    close()?.end()
    const current: Connection = {
      sink,
      from: seq + 1,
      next: Math.max(next, first()),
      fullSince: undefined,
      pausing: false
    }
    connection = current
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
    /** Sends a message, unless the stream is finished. If there is no memory for it, the connection is closed. */
    send: (message: unknown): void => add(JSON.stringify(message)),
    /** Sends the answer of a call, whose memory is already reserved. */
    answer: (text: JsonText): void => add(text, true),
    /** Sends an id before the first message (2025-11-25 basic/transports: "prime the client to reconnect"). */
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
    /** Ends the stream here, unfinished, and tells the client to come back after this time. */
    leave(retryMs: number): void {
      if (over) return
      over = true
      sendAway(retryMs)
    },
    /** Tells the client to come back to another process, which reads later events from the store. */
    leaveToStore(retryMs: number): void {
      awayMs = retryMs
      sendAway(retryMs)
    },
    /** Sends later events to this connection, and ends the one before. */
    attach(sink: Sink): Attachment {
      const attachment = connect(sink, seq + 1)
      flow()
      return attachment
    },
    /** Sends the held events after the one with this number, then later ones. */
    resume(sink: Sink, after: number): Attachment {
      const attachment = connect(sink, after + 1)
      // A client that loses the connection before it gets an id forgets its last one.
      if (primes) sink.event(idOf(after), undefined)
      flow()
      return attachment
    },
    isAttached: (): boolean => connection !== undefined,
    /** The number of characters that were not yet written to the connection; 0 without one. */
    pendingChars: (): number => (connection === undefined ? 0 : lengthFrom(connection.next)),
    /** When the last connection was lost, in epoch ms; undefined while there is one. */
    detachedAt: (): number | undefined => (connection === undefined ? detachedAt : undefined)
  }
}
