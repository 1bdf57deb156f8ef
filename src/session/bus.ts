// Requests from process to process: the one that holds a call answers, and says things meanwhile. Both sides prove all
// the time that they are alive. A request is never sent twice, and nothing is worked on that its sender has given up.

import { createQuota, type Quota } from '../limits/limits.ts'
import { GatewayError } from '../protocol/messages.ts'
import { nodeChannel } from '../store/keys.ts'
import { busCallCancelled, decodeError, type EncodedError, processGone, processSilent } from './bus-errors.ts'
import { type BusMessage, type BusMessagesOptions, createBusMessages } from './bus-messages.ts'
import {
  type BusCall,
  type BusCaller,
  type BusHandler,
  type BusQuestion,
  type BusServer,
  createBusServer
} from './bus-server.ts'

export interface Bus {
  /**
   * Asks another process, once; an abort of `signal` is passed on. All values are JSON.
   * @throws GatewayError invalid_state where it is gone, upstream_lost where it fell silent while it worked, too_many,
   * unavailable; RpcError and GatewayError as the other side threw them
   */
  request(node: string, caller: BusCaller, question: unknown, call: BusCall): Promise<unknown>
  /** Answers the other processes. `signal` is aborted when the sender gives up or is gone. To be called once. */
  serve(handler: BusHandler): void
  close(): Promise<void>
}

export interface BusOptions extends BusMessagesOptions {
  /** Requests at a time, in each direction: at most a quarter of them of one tenant, and a sixteenth of one caller. */
  readonly max?: number
}

interface SentRequest {
  readonly to: string
  receive(word: BusMessage['word'], body: unknown): void
  settle(error: Error | undefined, answer?: unknown): void
}

export async function createBus({ max = 1_024, ...options }: BusOptions): Promise<Bus> {
  const { store, node, log } = options
  const messages = createBusMessages(options)
  const { send, trySend, watch } = messages
  const sent = new Map<string, SentRequest>()
  const sending = createQuota()
  let requests = 0
  let server: BusServer | undefined

  const take = (quota: Quota, { tenant, caller }: BusCaller): (() => void) | undefined =>
    quota.take(1, [
      ['all', max],
      [`tenant ${tenant}`, Math.ceil(max / 4)],
      [`caller ${tenant} ${caller}`, Math.ceil(max / 16)]
    ])

  function request(to: string, body: BusQuestion, { notify, signal }: BusCall, giveBack: () => void): Promise<unknown> {
    const id = `${node}-${++requests}`
    return new Promise((resolve, reject) => {
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
      const beat = watch(to, id, () => giveUp(working ? processSilent() : processGone()))
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
    async request(to, whose, question, call) {
      if (call.signal.aborted) throw busCallCancelled()
      if (!store.live) {
        // The answer would not arrive.
        const message = 'The process that holds the call cannot be reached. Retry in a second.'
        throw new GatewayError('unavailable', message, { headers: { 'Retry-After': '1' } })
      }
      const giveBack = take(sending, whose)
      if (giveBack === undefined)
        throw new GatewayError('too_many', 'Too many calls are forwarded between processes. Retry later.')
      return await request(to, { whose, question }, call, giveBack)
    },
    serve(handler) {
      const serving = createQuota()
      server = createBusServer(messages, (caller) => take(serving, caller), handler)
    },
    async close() {
      server?.close()
      for (const { settle } of [...sent.values()]) settle(new GatewayError('shutting_down', 'The gateway is stopping.'))
      await unsubscribe()
    }
  }
}
