// The streams to clients, by session. A client that comes back to a stream gets the missed events from memory if the
// stream lives at this process, else from the store. An event id names the stream and the number of the event and
// carries a proof, so an id that is invented or belongs to another session replays nothing.

import { createMemoryAccount, holdMemory, type MemoryShare } from '../limits/memory.ts'
import type { Log } from '../observe/log.ts'
import { eventsTtlMs } from '../store/keys.ts'
import type { RequestId } from '../protocol/messages.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { type Clock, every } from '../time/clock.ts'
import { type CopyLimits, createEventCopies, createResumeLimit, type EventCopy } from './event-copies.ts'
import { eventIds, type HeldStream, type StreamHolders, lostAnswer, replay, replayRest } from './replay.ts'
import { type Attachment, type ClientStream, createStream, type Sink, type Stream } from './stream.ts'

/** The kind of a stream: `call` carries the answer of one POST, `session` the messages that belong to no call. */
type StreamKind = 'call' | 'session'

export interface StreamFeatures {
  /** See `StreamOptions.primes`. */
  readonly primes: boolean
  /** The share that the held events count for. Default: a share without limits. */
  readonly memory?: MemoryShare
  /** The id of the call. */
  readonly request?: RequestId
  /** The id of the HTTP request that resumes the stream, for the log of its call. */
  readonly requestId?: string
}

const unlimited = createMemoryAccount().share('', '')

type Resumed =
  /** The connection gets the missed events and later ones. */
  | { readonly kind: 'connected'; readonly of: StreamKind; readonly attachment: Attachment }
  /** A new stream continues a stream of the session that does not live at this process. */
  | { readonly kind: 'continued'; readonly stream: ClientStream; readonly attachment: Attachment }
  /** Stored events were sent and the connection was closed: the call is answered, or goes on at another process. */
  | { readonly kind: 'replayed' }
  /** The stream has ended and the client already has all events. Nothing was written. */
  | { readonly kind: 'over' }
  /** The session has no such stream, and nothing was written. */
  | { readonly kind: 'unknown' }
  /** The session ended, or `wanted` was aborted. Something may have been written; the connection was not closed. */
  | { readonly kind: 'stopped' }

export type Streams = ReturnType<typeof createStreams>

export interface StreamsOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly clock: Clock
  readonly randomBytes: (size: number) => Buffer
  readonly log: Log
  /** How long a stream of kind `session` waits for its client; one of kind `call` lives as long as the call. */
  readonly lingerMs?: number
  readonly copyLimits?: CopyLimits
  readonly holders: StreamHolders
}

/**
 * After how long clients come back when this process stops. They give up after a few attempts, which should not all
 * fail before the next process has started.
 */
const leaveRetryMs = 3_000

interface LiveStream {
  readonly kind: StreamKind
  readonly stream: Stream
  readonly copy: EventCopy
}

export function createStreams(options: StreamsOptions) {
  const { store, sealer, clock, randomBytes, log, holders, lingerMs = eventsTtlMs } = options
  const { node } = holders
  const bySession = new Map<string, Map<string, LiveStream>>()
  const copies = createEventCopies(store, clock, log, options.copyLimits)
  const resumes = createResumeLimit()
  let size = 0
  let leaving = false

  const idsOf = (sessionKey: string, streamId: string) => eventIds(sealer, sessionKey, streamId)

  function forget(sessionKey: string, streamId: string): void {
    const streams = bySession.get(sessionKey)
    if (streams?.delete(streamId) === true) size--
    if (streams?.size === 0) bySession.delete(sessionKey)
  }

  const sweep = every(clock, Math.min(lingerMs, 30_000), () => {
    copies.sweep()
    const before = clock.now() - lingerMs
    for (const [sessionKey, streams] of bySession) {
      for (const [streamId, { kind, stream }] of streams) {
        if (kind !== 'session' || (stream.detachedAt() ?? Infinity) > before) continue
        stream.leave(0)
        forget(sessionKey, streamId)
      }
    }
  })

  function open(sessionKey: string, kind: StreamKind, { primes, memory = unlimited, request }: StreamFeatures): Stream {
    // The id contains the kind, so the proof covers it.
    const streamId = `${kind.slice(0, 1)}${randomBytes(9).toString('base64url')}`
    // Without a priming event, the client has no id to come back with before the first message. An answer that is the
    // only message of its stream is then not copied to the store.
    const holder = kind === 'call' && request === undefined ? undefined : { node, id: request ?? streamId }
    const copy = copies.open(sessionKey, memory, streamId, primes || kind === 'session', holder)
    const stream = createStream({
      now: () => clock.now(),
      primes,
      memory: holdMemory(memory),
      idOf: idsOf(sessionKey, streamId),
      onEvent: (seq, data = '', keep) => copy.add(seq, data, keep),
      onFinish() {
        copy.end()
        forget(sessionKey, streamId)
      }
    })
    const streams = bySession.get(sessionKey) ?? new Map<string, LiveStream>()
    bySession.set(sessionKey, streams.set(streamId, { kind, stream, copy }))
    size++
    if (leaving && kind === 'session') stream.leaveToStore(leaveRetryMs)
    return stream
  }

  const everyOne = (): LiveStream[] => [...bySession.values()].flatMap((streams) => [...streams.values()])

  return {
    open,
    /**
     * Sends the kept events after this one, then later ones.
     * @param continued called with the new stream; resolves when messages of the session are sent to it
     * @param wanted aborted when the client is gone, which stops the replay from the store; a connection to a stream
     * that lives here ends with `detach`
     * @throws GatewayError unavailable, too_many
     */
    async resume(
      sessionKey: string,
      lastEventId: string,
      sink: Sink,
      features: StreamFeatures,
      wanted?: AbortSignal,
      continued: (stream: ClientStream) => Promise<void> = () => Promise.resolve()
    ): Promise<Resumed> {
      const [streamId = '', text = '', proof = '', ...rest] = lastEventId.slice(0, 200).split('.')
      const after = Number(text)
      if (rest.length > 0 || !/^\d{1,15}$/.test(text) || String(after) !== text) return { kind: 'unknown' }
      if (!sealer.proves('event', [sessionKey, streamId], after, proof)) return { kind: 'unknown' }
      const live = bySession.get(sessionKey)?.get(streamId)
      if (live !== undefined) return { kind: 'connected', of: live.kind, attachment: live.stream.resume(sink, after) }

      const { memory = unlimited } = features
      const idOf = idsOf(sessionKey, streamId)
      const isHeld = (by: string): Promise<boolean> => holders.isHeld(by, { sessionKey, streamId }, memory)
      const { replayed, isLost, aborted } = await resumes.run(sessionKey, wanted, memory, async (stop) => {
        const stored = await copies.read(sessionKey, streamId, after)
        const goesOn = stored?.ended === false && !streamId.startsWith('s') ? stored.holder : undefined
        const isLost = goesOn !== undefined && !(await isHeld(goesOn.node))
        // The last events of its process may have reached the store meanwhile.
        const all = isLost ? await copies.read(sessionKey, streamId, after) : stored
        return { replayed: await replay(all, idOf, after, sink, stop, memory), isLost, aborted: stop.aborted }
      })
      if (aborted) return { kind: 'stopped' }
      if (replayed?.ended === true) {
        if (replayed.last === after) return { kind: 'over' }
        sink.end()
        return { kind: 'replayed' }
      }
      if (streamId.startsWith('s')) {
        // The process of this stream has ended or is another one: a new stream here lets the client go on listening.
        const stream = open(sessionKey, 'session', features)
        stream.prime()
        await continued(stream)
        const read = async (from: number) =>
          await resumes.run(sessionKey, wanted, memory, async (stop) => ({
            more: await replay(await copies.read(sessionKey, streamId, from), idOf, from, sink, stop, memory),
            isStopped: stop.aborted
          }))
        if (!(await replayRest(replayed?.last ?? after, read, isHeld, clock, wanted))) return { kind: 'stopped' }
        return { kind: 'continued', stream, attachment: stream.resume(sink, features.primes ? 0 : -1) }
      }
      if (replayed === undefined) return { kind: 'unknown' }
      if (isLost && replayed.holder !== undefined) {
        sink.event(idOf(replayed.last + 1), lostAnswer(replayed.holder, features.requestId))
        sink.end()
        return { kind: 'replayed' }
      }
      if (features.primes) sink.pause(idOf(replayed.last))
      else sink.end()
      return { kind: 'replayed' }
    },
    /**
     * Forgets the streams of a session that has ended: nothing more is stored, and running replays stop. Calls that end
     * later are still answered on their streams.
     */
    drop(sessionKey: string): void {
      const streams = bySession.get(sessionKey)
      size -= streams?.size ?? 0
      bySession.delete(sessionKey)
      resumes.stop(sessionKey)
      for (const { copy } of streams?.values() ?? []) copy.drop()
    },
    /** Tells listening clients to come back to another process. Calls are still answered on their streams. */
    leave(): void {
      leaving = true
      for (const { kind, stream } of everyOne()) if (kind === 'session') stream.leaveToStore(leaveRetryMs)
    },
    /** Whether the stream lives at this process. */
    has: ({ sessionKey, streamId }: HeldStream): boolean => bySession.get(sessionKey)?.has(streamId) === true,
    get size() {
      return size
    },
    close(): void {
      sweep.close()
      resumes.close()
      for (const { stream } of everyOne()) stream.leave(leaveRetryMs)
      bySession.clear()
      size = 0
    }
  }
}
