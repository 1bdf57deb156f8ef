// The requests of other processes that this one answers.

import { GatewayError } from '../protocol/messages.ts'
import { busCallCancelled, type BusMessage, type BusMessages, encodeError, processSilent } from './bus-messages.ts'

/** What a message between processes is about, which decides who takes it. */
export type BusKind =
  | 'modern'
  | 'response'
  | 'request'
  | 'http-sse'
  | 'cancel'
  | 'progress'
  | 'notification'
  | 'stream'
  | 'home'
  | 'deliver'

export interface BusCall {
  /** Ahead of the answer, in order. JSON. */
  readonly notify: (said: unknown) => void
  readonly signal: AbortSignal
}

/** Whom a request counts for. Opaque. */
export interface BusCaller {
  readonly tenant: string
  readonly caller: string
}

export interface BusQuestion {
  readonly kind: BusKind
  readonly whose: BusCaller
  readonly question: unknown
}

export type BusHandler = (question: unknown, call: BusCall) => Promise<unknown>

/**
 * @param take gives the function that gives the place back; undefined where too many are taken
 */
export function createBusServer(
  { send, trySend, watch }: BusMessages,
  take: (caller: BusCaller) => (() => void) | undefined
) {
  const handlers = new Map<BusKind, BusHandler>()
  const served = new Map<
    string,
    {
      readonly from: string
      readonly stop: AbortController
      readonly beat: ReturnType<typeof watch>
      readonly work: () => void
      readonly isWorking: () => boolean
    }
  >()
  let closed = false
  return {
    handlers,
    /** A question may arrive after its sender has given up: the work begins when the sender says `go`. */
    accept({ id, from, body }: BusMessage): void {
      if (closed) return trySend(from, 'gone', id)
      const { kind, whose, question } = body as BusQuestion
      const run = handlers.get(kind)
      const giveBack = run === undefined ? undefined : take(whose)
      if (giveBack === undefined || run === undefined) {
        const refusal = new GatewayError(
          'too_many',
          'The process that holds the call serves too many others. Retry later.'
        )
        return trySend(from, 'error', id, encodeError(refusal))
      }
      const stop = new AbortController()
      let working = false
      const end = (): void => {
        beat.close()
        served.delete(id)
        giveBack()
      }
      const beat = watch(from, id, () => {
        stop.abort(new GatewayError('cancelled', 'The process that asked is gone.'))
        if (!working) end()
      })
      const work = async (): Promise<void> => {
        if (working || stop.signal.aborted) return
        working = true
        try {
          const notify = (said: unknown): void => trySend(from, 'said', id, said)
          await send(from, 'answer', id, await run(question, { notify, signal: stop.signal }))
        } catch (error) {
          trySend(from, 'error', id, encodeError(error))
        } finally {
          end()
        }
      }
      served.set(id, { from, stop, beat, work: () => void work(), isWorking: () => working })
      trySend(from, 'ready', id)
    },
    receive({ word, id, from }: BusMessage): boolean {
      const request = served.get(id)
      if (request?.from !== from) return false
      if (word === 'abort') request.stop.abort(busCallCancelled())
      else request.beat.renew()
      if (word === 'go') request.work()
      return true
    },
    close(): void {
      closed = true
      for (const [id, { from, stop, isWorking }] of served) {
        // What was not begun never will be: its sender can have it done elsewhere.
        if (isWorking()) trySend(from, 'error', id, encodeError(processSilent()))
        else trySend(from, 'gone', id)
        stop.abort(new GatewayError('shutting_down', 'The gateway is stopping.'))
      }
    }
  }
}
