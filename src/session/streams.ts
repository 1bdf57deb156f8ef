// The streams to clients, by session, and how a client comes back to one: from what this process holds while the stream lives here, else
// from the store. Ids name stream and sequence and carry a proof: a foreign or invented one replays nothing.

import type { Log } from '../observe/log.ts'
import { eventsKept, eventsKey, eventsTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { createStream } from './stream.ts'
import type { Attachment, ClientStream, Sink, Stream } from './stream.ts'

/** What a stream carries: the answer of one POST, or what belongs to no call. */
export type StreamKind = 'call' | 'session'

export interface StreamWishes {
  /** See `StreamOptions.primes`. */
  readonly primes: boolean
}

export type Resumed =
  /** Connected, and what comes will be sent. */
  | { readonly kind: 'connected', readonly of: StreamKind, readonly attachment: Attachment }
  /** A new stream that carries on for one of the session's own, which does not live here. */
  | { readonly kind: 'continued', readonly stream: ClientStream, readonly attachment: Attachment }
  /** All that is kept was sent, and the connection was closed: the call is answered, or goes on elsewhere. */
  | { readonly kind: 'replayed' }
  /** It has ended and the client has had all of it. Nothing was written. */
  | { readonly kind: 'over' }
  /** The id names no stream of this session, or nothing of it is kept any more. Nothing was written. */
  | { readonly kind: 'unknown' }

export interface Streams {
  open (sessionKey: string, kind: StreamKind, wishes: StreamWishes): ClientStream
  /**
   * Sends what is kept of what came after the event, then what comes.
   * @throws GatewayError unavailable
   */
  resume (sessionKey: string, lastEventId: string, sink: Sink, wishes: StreamWishes): Promise<Resumed>
  /** The session ended: nothing is kept for it any more. Calls that still end say so on their streams. */
  drop (sessionKey: string): void
  /** The process is about to end: whoever listens is told to come back. Answers of calls still go out. */
  leave (): void
  readonly size: number
  close (): void
}

export interface StreamsOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly clock: { now (): number }
  readonly randomBytes: (size: number) => Buffer
  readonly log: Log
  /** How long the stream of a session is held for a client that may come back. That of a call lives as long as the call. */
  readonly lingerMs?: number
}

/** Clients give up after a few attempts: they had better not all be over before the next process is there. */
const leaveRetryMs = 3_000
const finished = 'end'
/** What is no message of one line does not get out, whoever wrote it there. */
const event = /^(\d{1,15}):(\{[^\r\n]*\}|\[[^\r\n]*\])$/

interface Live {
  readonly kind: StreamKind
  readonly stream: Stream
}

export function createStreams ({ store, sealer, clock, randomBytes, log, lingerMs = eventsTtlMs }: StreamsOptions): Streams {
  const bySession = new Map<string, Map<string, Live>>()
  let size = 0
  let leaving = false

  const idOf = (sessionKey: string, stream: string, seq: number): string =>
    `${stream}.${seq}.${sealer.proof('event', [sessionKey, stream, String(seq)])}`

  const find = (sessionKey: string, id: string): Live | undefined => bySession.get(sessionKey)?.get(id)

  function forget (sessionKey: string, id: string): void {
    const streams = bySession.get(sessionKey)
    if (streams?.delete(id) === true) size--
    if (streams?.size === 0) bySession.delete(sessionKey)
  }

  const sweep = setInterval(() => {
    const before = clock.now() - lingerMs
    for (const [sessionKey, streams] of bySession) {
      for (const [id, { kind, stream }] of streams) {
        if (kind !== 'session' || stream.detachedAt === undefined || stream.detachedAt > before) continue
        stream.leave(0)
        forget(sessionKey, id)
      }
    }
  }, Math.min(lingerMs, 30_000))
  sweep.unref()

  function open (sessionKey: string, kind: StreamKind, { primes }: StreamWishes): Stream {
    // The kind is part of the id, and so of what is proven.
    const id = `${kind.slice(0, 1)}${randomBytes(9).toString('base64url')}`
    const logKey = eventsKey(sessionKey, id)
    const mirror = (entry: string, keep: number): void => {
      if (find(sessionKey, id) === undefined) return
      // Not awaited: the client has the message already. Lost is only the second copy, for another process or after a restart.
      store.append(logKey, entry, { ttlMs: eventsTtlMs, keep }).catch((err: unknown) => log.debug({ err }, 'an event could not be kept for resumption'))
    }
    const stream = createStream({
      now: () => clock.now(),
      primes,
      idOf: (seq) => idOf(sessionKey, id, seq),
      // The message as text: a number of many digits would not survive being read and written again.
      onEvent: (seq, data = '', keep) => mirror(`${seq}:${data}`, keep),
      onFinish () {
        mirror(finished, eventsKept)
        forget(sessionKey, id)
      }
    })
    const streams = bySession.get(sessionKey) ?? new Map<string, Live>()
    bySession.set(sessionKey, streams.set(id, { kind, stream }))
    size++
    if (leaving && kind === 'session') stream.leave(leaveRetryMs)
    return stream
  }

  /** @returns whether something was sent, and whether the stream has ended; undefined where nothing is kept */
  async function replayKept (sessionKey: string, id: string, after: number, sink: Sink): Promise<{ sent: boolean, ended: boolean, last: number } | undefined> {
    const entries = await store.entries(eventsKey(sessionKey, id))
    if (entries.length === 0) return undefined
    let last = after
    for (const entry of entries) {
      const [, text, data] = event.exec(entry) ?? []
      const seq = Number(text)
      if (data === undefined || seq <= last) continue
      last = seq
      if (!sink.event(idOf(sessionKey, id, seq), data)) await sink.drained()
    }
    return { sent: last > after, ended: entries.at(-1) === finished, last }
  }

  return {
    open,
    async resume (sessionKey, lastEventId, sink, wishes) {
      const [id = '', text = '', proof = '', ...rest] = lastEventId.slice(0, 200).split('.')
      if (rest.length > 0 || !/^\d{1,15}$/.test(text) || !sealer.proves('event', [sessionKey, id, text], proof)) return { kind: 'unknown' }
      const after = Number(text)
      const live = find(sessionKey, id)
      if (live !== undefined) return { kind: 'connected', of: live.kind, attachment: live.stream.resume(sink, after) }

      const kept = await replayKept(sessionKey, id, after, sink)
      if (kept?.ended === true) {
        if (!kept.sent) return { kind: 'over' }
        sink.end()
        return { kind: 'replayed' }
      }
      if (id.startsWith('s')) {
        // Of a process that has ended, or another one: the client wants to go on listening, wherever that is.
        const stream = open(sessionKey, 'session', wishes)
        return { kind: 'continued', stream, attachment: stream.attach(sink) }
      }
      if (kept === undefined) return { kind: 'unknown' }
      if (wishes.primes) sink.pause(idOf(sessionKey, id, kept.last))
      else sink.end()
      return { kind: 'replayed' }
    },
    drop (sessionKey) {
      size -= bySession.get(sessionKey)?.size ?? 0
      bySession.delete(sessionKey)
    },
    leave () {
      leaving = true
      for (const streams of bySession.values()) for (const { kind, stream } of streams.values()) if (kind === 'session') stream.leave(leaveRetryMs)
    },
    get size () { return size },
    close () {
      clearInterval(sweep)
      for (const streams of bySession.values()) for (const { stream } of streams.values()) stream.leave(leaveRetryMs)
      bySession.clear()
      size = 0
    }
  }
}
