// Requests from process to process: the one that holds a call answers. Both sides prove all the time that they are
// alive. A request is never sent twice, and nothing is worked on that its sender has given up.

import { createQuota, type Quota } from '../limits/limits.ts'
import { GatewayError } from '../protocol/messages.ts'
import { nodeChannel } from '../store/keys.ts'
import {
  busCallCancelled,
  type BusMessage,
  type BusMessages,
  type BusMessagesOptions,
  createBusMessages,
  decodeError,
  type EncodedError,
  encodeError,
  processSilent
} from './bus-messages.ts'

export type Bus = Awaited<ReturnType<typeof createBus>>

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

interface BusQuestion {
  readonly whose: BusCaller
  readonly question: unknown
}

type BusHandler = (question: unknown, call: BusCall) => Promise<unknown>

export interface BusOptions extends BusMessagesOptions {
  /** Requests at a time, in each direction: at most a quarter of them of one tenant, and a sixteenth of one caller. */
  readonly max?: number
}

interface SentRequest {
  readonly to: string
  receive(word: BusMessage['word'], body: unknown): void
  settle(error: Error | undefined, answer?: unknown): void
}

export async function createBus({ max = 1_024, ...options }: BusOptions) {
  const { store, node, log } = options
  const messages = createBusMessages(options)
  const { send, trySend, watch } = messages
  const sent = new Map<string, SentRequest>()
  const sending = createQuota()
  let requests = 0
  let server: ReturnType<typeof createBusServer> | undefined

  const take = (quota: Quota, { tenant, caller }: BusCaller) =>
    quota.take(1, [
      ['all', max],
      [`tenant ${tenant}`, Math.ceil(max / 4)],
      [`caller ${tenant} ${caller}`, Math.ceil(max / 16)]
    ])

  /**
   * Asks another process, once; an abort of `signal` is passed on. All values are JSON.
   * @throws GatewayError invalid_state where it is gone, upstream_lost where it fell silent while it worked, too_many,
   * unavailable; RpcError and GatewayError as the other side threw them
   */
  async function request(to: string, whose: BusCaller, question: unknown, { notify, signal }: BusCall) {
    if (signal.aborted) throw busCallCancelled()
    if (!store.live) {
      // The answer would not arrive.
      const message = 'The process that holds the call cannot be reached. Retry in a second.'
      throw new GatewayError('unavailable', message, { headers: { 'Retry-After': '1' } })
    }
    const giveBack = take(sending, whose)
    if (giveBack === undefined)
      throw new GatewayError('too_many', 'Too many calls are forwarded between processes. Retry later.')
    const id = `${node}-${++requests}`
    return await new Promise<unknown>((resolve, reject) => {
      let working = false
      const settle = (error: Error | undefined, result?: unknown): void => {
        if (!sent.delete(id)) return
        beat.close()
        giveBack()
        signal.removeEventListener('abort', onAbort)
        if (error === undefined) resolve(result)
        else reject(error)
      }
      const giveUp = (error: Error): void => {
        trySend(to, 'abort', id)
        settle(error)
      }
      const onAbort = (): void => giveUp(busCallCancelled())
      const beat = watch(to, id, () => {
        const gone =
          'The process that held the call of this requestState is gone, and the call with it. Whether it took effect ' +
          'is unknown: find out before you send it again without requestState.'
        giveUp(working ? processSilent() : new GatewayError('invalid_state', gone, { data: { outcome: 'unknown' } }))
      })
      sent.set(id, {
        to,
        settle,
        receive(word, body) {
          if (word === 'answer') return settle(undefined, body)
          if (word === 'error') return settle(decodeError(body as EncodedError))
          beat.renew()
          if (word === 'said') notify(body)
          if (word !== 'ready' || working) return
          working = true
          send(to, 'go', id).catch(() => settle(processSilent()))
        }
      })
      signal.addEventListener('abort', onAbort, { once: true })
      const body: BusQuestion = { whose, question }
      send(to, 'question', id, body).catch((error: unknown) => settle(error as Error))
    })
  }

  function receive(sealed: string): void {
    const message = messages.open(sealed)
    if (message === undefined) return
    const { word, id, from, body } = message
    if (word === 'question') return server?.accept(message)
    if (server?.receive(message) === true) return
    const ours = sent.get(id)
    if (ours?.to === from) ours.receive(word, body)
    // The sender of this request has given up.
    else if (word === 'ready') trySend(from, 'abort', id)
  }

  const unsubscribe = await store.subscribe(nodeChannel(node), (sealed) => {
    try {
      receive(sealed)
    } catch (err) {
      // The process that waits for it finds out by the silence.
      log.warn({ err }, 'dropped a message of another process that could not be read')
    }
  })

  return {
    request,
    /** Answers the other processes. `signal` is aborted when the sender gives up or is gone. To be called once. */
    serve(handler: BusHandler): void {
      const serving = createQuota()
      server = createBusServer(messages, (caller) => take(serving, caller), handler)
    },
    async close(): Promise<void> {
      server?.close()
      for (const { settle } of [...sent.values()]) settle(new GatewayError('shutting_down', 'The gateway is stopping.'))
      await unsubscribe()
    }
  }
}

/**
 * The requests of other processes that this one works on.
 * @param take gives the function that gives the place back; undefined where too many are taken
 */
function createBusServer(
  { send, trySend, watch }: BusMessages,
  take: (caller: BusCaller) => (() => void) | undefined,
  run: BusHandler
) {
  const served = new Map<
    string,
    {
      readonly from: string
      readonly stop: AbortController
      readonly beat: ReturnType<typeof watch>
      readonly work: () => void
    }
  >()
  let closed = false
  return {
    /** A question may arrive after its sender has given up: the work begins when the sender says `go`. */
    accept({ id, from, body }: BusMessage): void {
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
      for (const [id, { from, stop }] of served) {
        trySend(from, 'error', id, encodeError(processSilent()))
        stop.abort(new GatewayError('shutting_down', 'The gateway is stopping.'))
      }
    }
  }
}
