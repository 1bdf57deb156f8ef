// The requests of other processes that this one answers.

import { jsonSizeOf } from '../../limits/limits.ts'
import { type HeldMemory, holdMemory } from '../../limits/memory.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { busCallCancelled, encodeError, processSilent } from './bus-errors.ts'
import { createKeptMessages } from './bus-kept.ts'
import { createOutbox, type OutboxContext } from './bus-outbox.ts'
import type { BusKind, BusQuestion, LongQuestion, TakePlace } from './bus-places.ts'
import type { Flow } from './wire/bus-flow.ts'
import type { BusMessage, BusMessages } from './wire/bus-messages.ts'

/** Up to so many, as `jsonSizeOf` counts, a question is not refused for want of memory. */
const smallBytes = 4_096

export interface BusCall {
  /** Ahead of the answer, in order. JSON. */
  readonly notify: (said: unknown) => void
  readonly signal: AbortSignal
}

/** How a request of another process is answered. */
export interface ServedCall extends Pick<BusCall, 'signal'> {
  /** The process that asks. */
  readonly from: string
  /** Of whom the request is: it holds the question, until the answer was said. */
  readonly memory: HeldMemory
  /** Resolves when it was said, or nobody could be told; undefined where it was left out: there is no room for it. */
  readonly notify: (said: unknown) => Promise<void> | undefined
  /** How much of what it was notified of has not left, in bytes of memory. */
  readonly waitingBytes: () => number
}

export type BusHandler = (question: unknown, call: ServedCall) => Promise<unknown>

interface ServedRequest {
  readonly id: string
  readonly from: string
  /** Nobody waits for what becomes of it. */
  readonly stop: (reason: Error) => void
  /** Ends the work, whose sender waits for what becomes of it. */
  readonly ending: AbortController
  readonly beat: ReturnType<BusMessages['watch']>
  readonly work: () => void
  readonly isWorking: () => boolean
}

export function createBusServer(
  { sendText, trySend, watch, isYoung }: BusMessages,
  flow: Flow,
  context: OutboxContext,
  take: TakePlace
) {
  const handlers = new Map<BusKind, BusHandler>()
  const served = new Map<string, ServedRequest>()
  const kept = createKeptMessages(context.clock, trySend)
  /** Nothing is begun any more. */
  let ended = false
  return {
    handlers,
    /**
     * A question may arrive after its sender has given up: unless it is young, the work begins when that says `go`.
     * @param given holds the question; default: nothing does
     */
    accept({ id, from, heardAt, body }: BusMessage, given?: HeldMemory): void {
      if (ended) return trySend(from, 'gone', id)
      const { kind, whose, question } = body as BusQuestion
      const run = handlers.get(kind)
      const giveBack = take(kind === 'long' ? (question as LongQuestion).kind : kind, whose)
      const refuse = (refusal: GatewayError): void => trySend(from, 'error', id, encodeError(refusal))
      // A kind that nobody serves here is one of a later version: after the update a retry is served.
      if (giveBack === undefined || run === undefined) {
        giveBack?.()
        return refuse(tooManyServed())
      }
      const memory = given ?? holdMemory(context.memory.share(whose.tenant, whose.caller))
      const bytes = given === undefined ? jsonSizeOf(question) : 0
      // There are few at a time, and some are about what is held.
      if (bytes <= smallBytes) memory.set(memory.bytes + bytes)
      else if (!memory.take(bytes)) {
        giveBack()
        return refuse(memory.share.refusal(bytes, 'The request'))
      }
      const release = memory.retain()
      const ending = new AbortController()
      const unwanted = { aborted: false }
      let working = false
      const stop = (reason: Error): void => {
        unwanted.aborted = true
        ending.abort(reason)
      }
      const end = (): void => {
        beat.close()
        served.delete(id)
        giveBack()
        release()
      }
      const beat = watch(from, id, () => {
        stop(new GatewayError('cancelled', 'The process that asked is gone.'))
        if (!working) end()
      })
      const work = async (): Promise<void> => {
        if (working || unwanted.aborted) return
        working = true
        const outbox = createOutbox({ sendText, flow, keep: kept.keep }, { to: from, id, whose }, context, unwanted)
        try {
          const notify = (said: unknown): Promise<void> | undefined => outbox.say('said', said)
          const { waitingBytes } = outbox
          const answer = await run(question, { from, memory, notify, waitingBytes, signal: ending.signal })
          await outbox.say('answer', answer)
        } catch (error) {
          await outbox.say('error', encodeError(error))
        } finally {
          end()
        }
      }
      served.set(id, { id, from, stop, ending, beat, work: () => void work(), isWorking: () => working })
      if (!isYoung(heardAt)) return trySend(from, 'ready', id)
      beat.beginAtOnce()
      void work()
    },
    receive({ word, id, from, body }: BusMessage): boolean {
      const request = served.get(id)
      if (request?.from !== from) {
        if (word !== 'again') return false
        // What was answered, and is not kept, was lost.
        if (!kept.sayAgain(id, from, lastOf(body))) trySend(from, 'error', id, encodeError(processSilent()))
        return true
      }
      if (word === 'again') {
        if (request.isWorking()) {
          kept.sayAgain(id, from, lastOf(body))
          return true
        }
        // It was not heard that it may begin.
        request.stop(busCallCancelled())
        trySend(from, 'gone', id)
      } else if (word === 'abort') request.stop(busCallCancelled())
      else request.beat.renew()
      if (word === 'go') request.work()
      return true
    },
    /** Whether something is worked on whose sender has not heard of its end. */
    isWorking: (): boolean => [...served.values()].some(({ isWorking }) => isWorking()),
    /**
     * Ends the work; those who asked for it hear so. Not as `shutting_down`, which says that it can be sent once more
     * (errors.md). What was not begun can be done elsewhere, and so can what comes now.
     */
    endWork(): void {
      ended = true
      for (const request of [...served.values()]) {
        if (request.isWorking()) request.ending.abort(processSilent())
        else dismiss(request)
      }
    },
    close(): void {
      ended = true
      for (const request of [...served.values()]) {
        if (request.isWorking()) trySend(request.from, 'error', request.id, encodeError(processSilent()))
        dismiss(request)
      }
    }
  }

  function dismiss({ id, from, stop, isWorking }: ServedRequest): void {
    if (!isWorking()) trySend(from, 'gone', id)
    stop(new GatewayError('shutting_down', 'The gateway is stopping.'))
  }
}

const tooManyServed = (): GatewayError =>
  new GatewayError('too_many', 'The process that holds the call serves too many others. Retry later.')

/** What the sender has heard; one of an earlier version does not say, and wants the answer alone. */
const lastOf = (body: unknown): number => (typeof body === 'number' ? body : Infinity)
