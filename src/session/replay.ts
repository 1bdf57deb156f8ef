// Sends what the store has of a stream to a client that came back, in slices; and what is left to say of a call whose
// stream nobody holds any more.

import { errorMessage, GatewayError } from '../protocol/messages.ts'
import { errorObject } from '../protocol/translate/error-object.ts'
import type { Sealer } from '../store/seal.ts'
import type { WorkOwner } from '../time/fair-queue.ts'
import { type Clock, pause } from '../time/clock.ts'
import { nextTurn, runSteps, type Steps } from '../time/turns.ts'
import type { EventCopies, StreamHolder } from './event-copies.ts'
import type { Sink } from './stream.ts'

/** Characters of stored events that are sent to one client in one turn of the event loop. */
const sliceChars = 262_144
/** Between two looks for the end of a stream that goes on here, the first time and the last; each wait is doubled. */
const firstWaitMs = 20
const longestWaitMs = 640

/** A stream of a session, which another process may hold. */
export interface HeldStream {
  readonly sessionKey: string
  readonly streamId: string
}

/** Finds the process that holds a stream. */
export interface StreamHolders {
  /** This process. */
  readonly node: string
  /** @returns false where the process is gone, or has ended the stream. @throws GatewayError unavailable, too_many */
  isHeld(node: string, stream: HeldStream, whose: WorkOwner): Promise<boolean>
}

/**
 * The answer to a call whose stream nobody holds: its process is gone, and with it what it still had to say.
 * @param requestId of the request that wants to hear of it
 * @returns one line of JSON
 */
export function lostAnswer({ id }: StreamHolder, requestId = ''): string {
  const text =
    'The process of the gateway that held the stream of this call is gone, and what it still had to say with it. ' +
    'Whether the call took effect is unknown.'
  const error = new GatewayError('upstream_lost', text, { data: { outcome: 'unknown' } })
  return JSON.stringify(errorMessage(id, errorObject(error, requestId)))
}

export function eventIds(sealer: Sealer, sessionKey: string, streamId: string): (seq: number) => string {
  const proofOf = sealer.proofs('event', [sessionKey, streamId])
  return (seq) => `${streamId}.${seq}.${proofOf(seq)}`
}

/** @returns the last event that was sent, and who holds the stream; undefined where nothing is stored */
export async function replay(
  stored: Awaited<ReturnType<EventCopies['read']>>,
  idOf: (seq: number) => string,
  after: number,
  sink: Sink,
  stop: AbortSignal,
  owner: WorkOwner
): Promise<{ ended: boolean; last: number; holder: StreamHolder | undefined } | undefined> {
  if (stored === undefined) return undefined
  const { events, ended, holder } = stored
  let last = after
  /** @returns why it stopped; undefined after the last event */
  function* sendSlice(): Steps<'full' | 'sliced' | undefined> {
    for (let chars = 0; chars < sliceChars;) {
      const { done, value } = events.next()
      if (done === true || stop.aborted) return undefined
      last = value.seq
      chars += value.data.length
      if (!sink.event(idOf(last), value.data)) return 'full'
      yield
    }
    return 'sliced'
  }

  const stopped = new Promise<void>((resolve) => {
    stop.addEventListener('abort', () => resolve(), { once: true })
  })
  while (!stop.aborted) {
    const state = await runSteps(sendSlice(), owner)
    if (state === undefined) break
    if (state === 'full') await Promise.race([sink.drained(), stopped])
    await nextTurn()
  }
  return { ended, last, holder }
}

/**
 * Replays what is added to a stream of a session after its client has come back here, until it has ended: its process
 * hears of that from the home of the session, which may have told it something before.
 * @param read replays what is stored after this event
 * @param isHeld whether the process that holds the stream is there
 * @returns false where it was stopped. @throws GatewayError unavailable, too_many
 */
export async function replayRest(
  after: number,
  read: (after: number) => Promise<{ more: Awaited<ReturnType<typeof replay>>; isStopped: boolean }>,
  isHeld: (node: string) => Promise<boolean>,
  clock: Pick<Clock, 'timer'>,
  wanted: AbortSignal | undefined
): Promise<boolean> {
  let last = after
  for (let waitMs = firstWaitMs, isGone = false; ; waitMs *= 2) {
    const { more, isStopped } = await read(last)
    if (isStopped) return false
    if (more?.ended !== false || isGone || waitMs > longestWaitMs) return true
    last = more.last
    // A stream of an earlier version, or without an event that primes, does not say who holds it.
    isGone = more.holder !== undefined && !(await isHeld(more.holder.node).catch(() => true))
    if (!isGone) await pause(clock, waitMs, wanted)
  }
}
