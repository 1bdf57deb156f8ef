// The serving side of the bus: requests of other processes that this one works on.

import { GatewayError } from '../protocol/messages.ts'
import { busCallCancelled, encodeError, processSilent } from './bus-errors.ts'
import type { BusMessage, BusMessages, Heartbeat } from './bus-messages.ts'

export interface BusCall {
  /** What the serving side says ahead of its answer, in order. JSON. */
  readonly notify: (said: unknown) => void
  readonly signal: AbortSignal
}

/** Whom a request counts for. Opaque. */
export interface BusCaller {
  readonly tenant: string
  readonly caller: string
}

export type BusHandler = (question: unknown, call: BusCall) => Promise<unknown>

/** @returns what gives the place back; undefined where too many are taken */
export type TakePlace = (caller: BusCaller) => (() => void) | undefined

export interface BusQuestion {
  readonly whose: BusCaller
  readonly question: unknown
}

interface ServedRequest {
  readonly from: string
  readonly stop: AbortController
  readonly beat: Heartbeat
  readonly work: () => void
}

export interface BusServer {
  /** A question may arrive after its sender has given up: the work begins when the sender says `go`. */
  accept(message: BusMessage): void
  /** @returns whether the message belongs to a request that is served here */
  receive(message: BusMessage): boolean
  close(): void
}

export function createBusServer({ send, trySend, watch }: BusMessages, take: TakePlace, run: BusHandler): BusServer {
  const served = new Map<string, ServedRequest>()
  let closed = false
  return {
    accept({ id, from, body }) {
      const { whose, question } = body as BusQuestion
      const giveBack = closed ? undefined : take(whose)
      if (giveBack === undefined) {
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
      served.set(id, { from, stop, beat, work: () => void work() })
      trySend(from, 'ready', id)
    },
    receive({ word, id, from }) {
      const request = served.get(id)
      if (request?.from !== from) return false
      if (word === 'abort') request.stop.abort(busCallCancelled())
      else request.beat.renew()
      if (word === 'go') request.work()
      return true
    },
    close() {
      closed = true
      for (const [id, { from, stop }] of served) {
        trySend(from, 'error', id, encodeError(processSilent()))
        stop.abort(new GatewayError('shutting_down', 'The gateway is stopping.'))
      }
    }
  }
}
