// One stream to a client. What was sent is held for a while, so that a connection may break and the next one go on where it ended: each
// event once, in order (2025-11-25 basic/transports "Resumability and Redelivery").

import { eventsKept } from '../store/keys.ts'

/** A connection of the client on which a stream is written. Nothing here throws or rejects. */
export interface Sink {
  /**
   * @param data one line of text; undefined: an event with an id and no data, to prime the client
   * @returns false where more had better wait for `drained`
   */
  event (id: string, data: string | undefined): boolean
  /** Resolves when more can be written, or never will be. */
  drained (): Promise<void>
  /** Closes the connection, not the stream: the client is told to come back after a while, for what follows this id. */
  pause (id: string, retryMs?: number): void
  end (): void
  /** Closes what does not read, at once. */
  overflow (): void
}

/** One connection of a stream. */
export interface Attachment {
  /** The connection is gone. */
  detach (): void
  /** Lets the client poll, where it can (2025-11-25 basic/transports). */
  pause (): void
}

export interface ClientStream {
  /** Nothing is sent after `finish`. */
  send (message: unknown): void
  /** Gives the client an id to resume from before there is a message, where it can take one (2025-11-25: "prime the client to reconnect"). */
  prime (): void
  /** Nothing comes after this. */
  finish (): void
  /** The newest connection gets what comes; the one before is ended. */
  attach (sink: Sink): Attachment
  readonly attached: boolean
  /** What the connection has not had yet, in characters. */
  readonly behind: number
}

export interface Stream extends ClientStream {
  /** Sends what is held and came after the event, then what comes. */
  resume (sink: Sink, after: number): Attachment
  /** Nothing more is sent, but the client is told to come back, and finds the stream unfinished. */
  leave (retryMs: number): void
  /** Epoch ms; undefined while it has a connection. */
  readonly detachedAt: number | undefined
}

export interface StreamOptions {
  readonly now: () => number
  /** From 2025-11-25 on. Older clients stumble over an event without data. */
  readonly primes: boolean
  /** What the client has to name to resume after the event. */
  readonly idOf: (seq: number) => string
  /** `data` undefined: an event that only primes. `keep`: so many of the last events are held here. */
  readonly onEvent: (seq: number, data: string | undefined, keep: number) => void
  readonly onFinish: () => void
}

/** Of text, in characters. */
const maxHeld = 4 * 1024 * 1024
/** So much a reader may fall behind for longer than a moment. What it has to catch up with from before it came is not its fault. */
const maxBehind = 1024 * 1024
const momentMs = 1_000

interface Connection {
  readonly sink: Sink
  /** The first event that came after it. */
  readonly from: number
  /** The first event that it has not had. */
  next: number
  /** Since when it takes no more. */
  fullSince: number | undefined
  /** To be paused as soon as it is level. */
  pausing: boolean
}

export function createStream ({ now, primes, idOf, onEvent, onFinish }: StreamOptions): Stream {
  const held: Array<string | undefined> = []
  let heldLength = 0
  let seq = -1
  let over = false
  let connection: Connection | undefined
  let detachedAt = now()

  const first = (): number => seq - held.length + 1

  function keep (data: string | undefined): void {
    seq++
    held.push(data)
    heldLength += data?.length ?? 0
    while (held.length > eventsKept || (heldLength > maxHeld && held.length > 1)) heldLength -= held.shift()?.length ?? 0
    onEvent(seq, data, held.length)
    if (connection !== undefined && lags(connection)) close()?.overflow()
  }

  /** Would it miss events, or is it a reader that does not read? Nothing but what is held anyway is kept for it. */
  function lags ({ from, next, fullSince }: Connection): boolean {
    if (fullSince === undefined) return false
    if (next < first()) return true
    return lengthFrom(Math.max(next, from)) > maxBehind && now() - fullSince > momentMs
  }

  const lengthFrom = (at: number): number => held.slice(Math.max(0, at - first())).reduce((sum, data) => sum + (data?.length ?? 0), 0)

  /** Writes what the connection has not had, as fast as it takes it: to queue for it would cost all that the reader does not read. */
  function flow (): void {
    const current = connection
    if (current === undefined || current.fullSince !== undefined) return
    while (current.next <= seq) {
      const at = current.next++
      const data = held[at - first()]
      if (data === undefined || current.sink.event(idOf(at), data)) continue
      current.fullSince = now()
      void current.sink.drained().then(() => {
        current.fullSince = undefined
        if (connection === current) flow()
      })
      return
    }
    if (over) close()?.end()
    else if (current.pausing) close()?.pause(idOf(seq))
  }

  function close (): Sink | undefined {
    const sink = connection?.sink
    connection = undefined
    detachedAt = now()
    return sink
  }

  function connect (sink: Sink, next: number): Attachment {
    close()?.end()
    const current: Connection = connection = { sink, from: seq + 1, next: Math.max(next, first()), fullSince: undefined, pausing: false }
    return {
      detach () {
        if (connection === current) close()
      },
      pause () {
        if (!primes || connection !== current) return
        current.pausing = true
        flow()
      }
    }
  }

  return {
    send (message) {
      if (over) return
      keep(JSON.stringify(message))
      flow()
    },
    prime () {
      if (over || !primes) return
      keep(undefined)
      if (connection === undefined) return
      connection.next = seq + 1
      connection.sink.event(idOf(seq), undefined)
    },
    finish () {
      if (over) return
      over = true
      onFinish()
      flow()
    },
    leave (retryMs) {
      if (over) return
      over = true
      const next = connection?.next ?? 0
      const sink = close()
      if (primes && next > 0) sink?.pause(idOf(next - 1), retryMs)
      else sink?.end()
    },
    attach (sink) {
      const attachment = connect(sink, seq + 1)
      flow()
      return attachment
    },
    resume (sink, after) {
      const attachment = connect(sink, after + 1)
      // Clients that lose a connection before its first id forget where they were.
      if (primes) sink.event(idOf(after), undefined)
      flow()
      return attachment
    },
    get attached () { return connection !== undefined },
    get behind () { return connection === undefined ? 0 : lengthFrom(connection.next) },
    get detachedAt () { return connection === undefined ? detachedAt : undefined }
  }
}
