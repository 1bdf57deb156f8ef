// The streams to clients, by session, and how a client comes back to one: from what this process holds while the stream lives here, else
// from the store. Ids name stream and sequence and carry a proof: a foreign or invented one replays nothing.

import type { Log } from '../observe/log.ts'
import { eventsKept, eventsKey, eventsTtlMs } from '../store/keys.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { createReplays } from './replays.ts'
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
  /** The session ended, or nobody wants it any more. Something may have been written; the connection was not closed. */
  | { readonly kind: 'stopped' }

export interface Streams {
  open (sessionKey: string, kind: StreamKind, wishes: StreamWishes): ClientStream
  /**
   * Sends what is kept of what came after the event, then what comes.
   * @param wanted stops the sending of what the store has when it is aborted; what lives here ends with `detach`
   * @throws GatewayError unavailable, too_many
   */
  resume (sessionKey: string, lastEventId: string, sink: Sink, wishes: StreamWishes, wanted?: AbortSignal): Promise<Resumed>
  /**
   * The session ended: nothing is kept for it any more, and nothing that is kept goes on being sent. Calls that still end say so on their
   * streams. Of the store it clears the streams that live here; those that ended before are not known any more, cannot be asked for
   * without a session, and expire within `eventsTtlMs`.
   */
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
  /** Characters copied to the store within the time that they are kept there: of one session, and of all of this process. */
  readonly copyLimits?: { readonly session: number, readonly process: number }
}

/** Clients give up after a few attempts: they had better not all be over before the next process is there. */
const leaveRetryMs = 3_000
const finished = 'end'
/** What is no message of one line does not get out, whoever wrote it there. */
const event = /^(\d{1,15}):(\{[^\r\n]*\}|\[[^\r\n]*\])$/

const defaultCopyLimits = { session: 8 * 1024 * 1024, process: 256 * 1024 * 1024 }
/** No session has this key: the account of all of them. */
const everyone = ''

interface Live {
  readonly kind: StreamKind
  readonly stream: Stream
}

export function createStreams ({ store, sealer, clock, randomBytes, log, lingerMs = eventsTtlMs, copyLimits = defaultCopyLimits }: StreamsOptions): Streams {
  const bySession = new Map<string, Map<string, Live>>()
  const replays = createReplays()
  let size = 0
  let leaving = false

  const idOf = (sessionKey: string, stream: string, seq: number): string =>
    `${stream}.${seq}.${sealer.proof('event', [sessionKey, stream, String(seq)])}`

  // A second copy is a convenience: what one session, or all together, may have of them is bounded. Whoever comes back to this process
  // is served from memory all the same.
  const copied = new Map<string, { size: number, until: number }>()
  const accountOf = (key: string): { size: number } => {
    let account = copied.get(key)
    if (account === undefined || account.until < clock.now()) copied.set(key, account = { size: 0, until: clock.now() + eventsTtlMs })
    return account
  }
  const affordable = (sessionKey: string, size: number): boolean => {
    const [own, all] = [accountOf(sessionKey), accountOf(everyone)]
    if (own.size + size > copyLimits.session || all.size + size > copyLimits.process) return false
    own.size += size
    all.size += size
    return true
  }

  const find = (sessionKey: string, id: string): Live | undefined => bySession.get(sessionKey)?.get(id)

  function forget (sessionKey: string, id: string): void {
    const streams = bySession.get(sessionKey)
    if (streams?.delete(id) === true) size--
    if (streams?.size === 0) bySession.delete(sessionKey)
  }

  const sweep = setInterval(() => {
    for (const [key, { until }] of copied) if (until < clock.now()) copied.delete(key)
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
    let mirrored = false
    // Of a stream without a priming event, the client has no id to come back with before the first message has arrived; where that is
    // all, because the answer follows nothing, a second copy serves nobody.
    let first: (() => void) | undefined
    const copyFirst = (): void => {
      first?.()
      first = undefined
    }
    const mirror = (entry: string, keep: number): void => {
      if (find(sessionKey, id) === undefined || !(entry === finished ? mirrored : affordable(sessionKey, entry.length))) return
      mirrored = true
      // Not awaited: the client has the message already. Lost is only the second copy, for another process or after a restart.
      store.append(logKey, entry, { ttlMs: eventsTtlMs, keep }).catch((err: unknown) => log.debug({ err }, 'an event could not be kept for resumption'))
    }
    const stream = createStream({
      now: () => clock.now(),
      primes,
      idOf: (seq) => idOf(sessionKey, id, seq),
      // The message as text: a number of many digits would not survive being read and written again.
      onEvent (seq, data = '', keep) {
        const copy = (): void => mirror(`${seq}:${data}`, keep)
        copyFirst()
        if (seq > 0 || primes || kind === 'session') return copy()
        first = copy
        // An answer and its end are one step. Whatever else was said first, the client may come back for what follows.
        queueMicrotask(copyFirst)
      },
      onFinish () {
        first = undefined
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
  async function replayKept (sessionKey: string, id: string, after: number, sink: Sink, stop: AbortSignal): Promise<{ sent: boolean, ended: boolean, last: number } | undefined> {
    const stopped = new Promise<void>((resolve) => { stop.addEventListener('abort', () => resolve(), { once: true }) })
    const entries = await store.entries(eventsKey(sessionKey, id))
    if (entries.length === 0) return undefined
    let last = after
    for (const entry of entries) {
      if (stop.aborted) break
      const [, text, data] = event.exec(entry) ?? []
      const seq = Number(text)
      if (data === undefined || seq <= last) continue
      last = seq
      if (!sink.event(idOf(sessionKey, id, seq), data)) await Promise.race([sink.drained(), stopped])
    }
    return { sent: last > after, ended: entries.at(-1) === finished, last }
  }

  return {
    open,
    async resume (sessionKey, lastEventId, sink, wishes, wanted) {
      const [id = '', text = '', proof = '', ...rest] = lastEventId.slice(0, 200).split('.')
      if (rest.length > 0 || !/^\d{1,15}$/.test(text) || !sealer.proves('event', [sessionKey, id, text], proof)) return { kind: 'unknown' }
      const after = Number(text)
      const live = find(sessionKey, id)
      if (live !== undefined) return { kind: 'connected', of: live.kind, attachment: live.stream.resume(sink, after) }

      const { kept, aborted } = await replays.run(sessionKey, wanted, async (stop) => ({ kept: await replayKept(sessionKey, id, after, sink, stop), aborted: stop.aborted }))
      if (aborted) return { kind: 'stopped' }
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
      const streams = bySession.get(sessionKey)
      size -= streams?.size ?? 0
      bySession.delete(sessionKey)
      replays.stop(sessionKey)
      for (const id of streams?.keys() ?? []) {
        // Not awaited, as the copying is not: what stays expires, and nobody can ask for it without its session.
        store.delete(eventsKey(sessionKey, id)).catch((err: unknown) => log.debug({ err }, 'the kept events of an ended session could not be deleted; they expire'))
      }
    },
    leave () {
      leaving = true
      for (const streams of bySession.values()) for (const { kind, stream } of streams.values()) if (kind === 'session') stream.leave(leaveRetryMs)
    },
    get size () { return size },
    close () {
      clearInterval(sweep)
      replays.close()
      for (const streams of bySession.values()) for (const { stream } of streams.values()) stream.leave(leaveRetryMs)
      bySession.clear()
      size = 0
    }
  }
}
