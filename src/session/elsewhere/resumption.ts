// Where a client that has come back to a stream goes on: at that stream, if it lives at this process, else with what
// the store has of it, and with the stream of its session that goes on in its place.

import { createMemoryAccount } from '../../limits/memory.ts'
import type { Clock } from '../../time/clock.ts'
import type { createResumeLimit, EventCopies } from '../event-copies.ts'
import { type HeldStream, type StreamHolders, lostAnswer, replay, replayRest } from '../replay.ts'
import type { Attachment, ClientStream, Sink, Stream } from '../stream.ts'
import type { StreamFeatures, StreamKind } from '../streams.ts'

export type Resumed =
  /** The connection gets the missed events and later ones. */
  | { readonly kind: 'connected'; readonly of: StreamKind; readonly attachment: Attachment }
  /** A new stream continues a stream of the session that does not live at this process. */
  | { readonly kind: 'continued'; readonly stream: ClientStream; readonly attachment: Attachment }
  /** Stored events were sent and the connection was closed: the call is answered, or goes on at another process. */
  | { readonly kind: 'replayed' }
  /** The stream has ended and the client already has all events. Nothing of it was written. */
  | { readonly kind: 'over' }
  /** The session has no such stream, and nothing was written. */
  | { readonly kind: 'unknown' }
  /** The session ended, or `wanted` was aborted. Something may have been written; the connection was not closed. */
  | { readonly kind: 'stopped' }

interface ResumptionOptions {
  readonly copies: EventCopies
  readonly resumes: ReturnType<typeof createResumeLimit>
  readonly holders: StreamHolders
  readonly clock: Pick<Clock, 'timer'>
  readonly idsOf: (sessionKey: string, streamId: string) => (seq: number) => string
  readonly live: (sessionKey: string, streamId: string) => { kind: StreamKind; stream: Stream } | undefined
  /** Opens a stream of the session. */
  readonly begin: (sessionKey: string, features: StreamFeatures) => { streamId: string; stream: Stream }
}

/** Streams that are followed, each to the one that goes on in its place; from the last of them, another one does. */
const maxFollowed = 16

const unlimited = createMemoryAccount().share('', '')

/** @returns what `Streams.resume` does once the event id is proven */
export function createResumption({ copies, resumes, holders, clock, idsOf, live: liveOf, begin }: ResumptionOptions) {
  /** @param after an event of this stream, -1 for all of them */
  async function resume(
    of: HeldStream,
    after: number,
    sink: Sink,
    features: StreamFeatures,
    wanted: AbortSignal | undefined,
    continued: (stream: ClientStream) => Promise<void>,
    followed = 0
  ): Promise<Resumed> {
    const { sessionKey, streamId } = of
    const live = liveOf(sessionKey, streamId)
    if (live !== undefined) return { kind: 'connected', of: live.kind, attachment: live.stream.resume(sink, after) }

    const { memory = unlimited, primes } = features
    const idOf = idsOf(sessionKey, streamId)
    const isHeld = (by: string): Promise<boolean> => holders.isHeld(by, of, memory)
    const { replayed, isLost, aborted } = await resumes.run(sessionKey, wanted, memory, async (stop) => {
      const stored = await copies.read(sessionKey, streamId, after)
      const goesOn = stored?.ended === false && !streamId.startsWith('s') ? stored.holder : undefined
      const isLost = goesOn !== undefined && !(await isHeld(goesOn.node))
      // The last events of its process may have reached the store meanwhile.
      const all = isLost ? await copies.read(sessionKey, streamId, after) : stored
      return { replayed: await replay(all, idOf, after, sink, stop, memory), isLost, aborted: stop.aborted }
    })
    if (aborted) return { kind: 'stopped' }
    const next = replayed?.next
    if (replayed?.ended === true && next === undefined) {
      if (replayed.last === after) return { kind: 'over' }
      sink.end()
      return { kind: 'replayed' }
    }
    if (streamId.startsWith('s')) {
      const first = primes ? 0 : -1
      const rest = (): Promise<boolean> => {
        const read = async (from: number) =>
          await resumes.run(sessionKey, wanted, memory, async (stop) => ({
            more: await replay(await copies.read(sessionKey, streamId, from), idOf, from, sink, stop, memory),
            isStopped: stop.aborted
          }))
        return replayRest(replayed?.last ?? after, read, isHeld, clock, wanted)
      }
      // Its client came back once before, and its connection broke before it knew of the stream that goes on.
      if (next !== undefined && followed < maxFollowed) {
        if (!(await rest())) return { kind: 'stopped' }
        return await resume({ sessionKey, streamId: next }, first, sink, features, wanted, continued, followed + 1)
      }
      // The process of this stream has ended or is another one: a new stream here lets the client go on listening.
      const { streamId: id, stream } = begin(sessionKey, features)
      stream.prime()
      const told = continued(stream)
      // It has ended where the client has left meanwhile, or this process stops.
      const isNamed = replayed !== undefined && liveOf(sessionKey, id) !== undefined
      await Promise.all([told, isNamed && copies.goOn(sessionKey, streamId, id)])
      if (!(await rest())) return { kind: 'stopped' }
      return { kind: 'continued', stream, attachment: stream.resume(sink, first) }
    }
    if (replayed === undefined) return { kind: 'unknown' }
    if (isLost && replayed.holder !== undefined) {
      sink.event(idOf(replayed.last + 1), lostAnswer(replayed.holder, features.requestId))
      sink.end()
      return { kind: 'replayed' }
    }
    if (primes) sink.pause(idOf(replayed.last))
    else sink.end()
    return { kind: 'replayed' }
  }
  return resume
}
