// Requests from process to process: the one that holds a call answers. Both sides prove all the time that they are
// alive. A request is never sent twice, and nothing is worked on that its sender has given up.

import { createMemoryAccount, type MemoryAccount } from '../../limits/memory.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { everyNode, nodeChannel } from '../../store/keys.ts'
import {
  busCallCancelled,
  type BusMessage,
  type BusMessages,
  type BusMessagesOptions,
  createBusMessages,
  decodeError,
  type EncodedError,
  ProcessGone,
  processSilent
} from './bus-messages.ts'
import { createFlow } from './bus-flow.ts'
import { askForMissed, createGap, type SentRequest } from './bus-gaps.ts'
import { latelyMs } from './bus-heard.ts'
import { type BusHead, createReading } from './bus-reading.ts'
import { createPeerWatch } from './bus-peers.ts'
import {
  type BusCall,
  type BusCaller,
  type BusHandler,
  type BusKind,
  type BusQuestion,
  createBusPlaces,
  createBusServer,
  maxRequests
} from './bus-server.ts'

export type Bus = Awaited<ReturnType<typeof createBus>>

interface ToldMessage {
  readonly kind: BusKind
  readonly said: unknown
}

export interface BusOptions extends BusMessagesOptions {
  /** Requests at a time, in each direction. */
  readonly max?: number
  /** For what waits to be said to other processes. */
  readonly memory?: MemoryAccount
}

export async function createBus({ max = maxRequests, ...options }: BusOptions) {
  const { store, node, log } = options
  const messages = createBusMessages(options)
  const { send, trySend, watch, heardAt } = messages
  const flow = createFlow(options.clock, (to, beat) => send(to, 'beat', '', beat))
  const peers = createPeerWatch(options.clock, async (to) => (store.live ? await flow.beat(to) : undefined))
  const sent = new Map<string, SentRequest>()
  const listeners = new Map<BusKind, (said: never, from: string) => void>()
  const sending = createBusPlaces(max)
  let requests = 0
  const serving = { memory: createMemoryAccount(), ...options }
  const server = createBusServer(messages, flow, serving, createBusPlaces(max))

  /**
   * Asks another process, once; an abort of `signal` is passed on. All values are JSON.
   * @param call default: nothing that precedes the answer is wanted, and it is waited for to its end
   * @throws GatewayError invalid_state where it is gone, upstream_lost where it fell silent while it worked, too_many,
   * unavailable; RpcError and GatewayError as the other side threw them
   */
  async function request(
    to: string,
    kind: BusKind,
    whose: BusCaller,
    question: unknown,
    { notify, signal }: BusCall = { notify() {}, signal: new AbortController().signal }
  ): Promise<unknown> {
    if (signal.aborted) throw busCallCancelled()
    // The answer would not arrive.
    if (!store.live) throw unreachable()
    const giveBack = sending(kind, whose)
    if (giveBack === undefined)
      throw new GatewayError('too_many', 'Too many calls are forwarded between processes. Retry later.')
    const id = `${node}-${++requests}`
    return await new Promise<unknown>((resolve, reject) => {
      const atOnce = heardAt(to)
      /** Whether it may have been begun; told to, or at once. */
      let working = atOnce !== undefined
      let told = false
      /** Of what the other side said on this request. */
      let last = 0
      const askAgain = () => send(to, 'again', id, last)
      const isMissing = createGap(options.clock, () => void askAgain().catch(() => {}))
      const settle = (error: Error | undefined, result?: unknown): void => {
        if (!sent.delete(id)) return
        beat.close()
        unfollow()
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
      const onGone = (): void => giveUp(working ? processSilent() : new ProcessGone())
      const beat = watch(to, id, onGone)
      const unfollow = peers.follow(to, onGone)
      sent.set(id, {
        to,
        whose,
        isWorking: () => working,
        askAgain,
        settle,
        receive({ word, body, seq, after }) {
          if (seq !== undefined && seq <= last) return
          if (seq !== undefined && isMissing((after ?? seq - 1) > last)) return beat.renew()
          last = seq ?? last
          if (word === 'answer') return settle(undefined, body)
          if (word === 'error') return settle(decodeError(body as EncodedError))
          if (word === 'gone') return settle(new ProcessGone())
          beat.renew()
          if (word === 'said') notify(body)
          if (word !== 'ready' || told) return
          working = told = true
          send(to, 'go', id).catch(() => settle(processSilent()))
        }
      })
      signal.addEventListener('abort', onAbort, { once: true })
      const body: BusQuestion = { kind, whose, question }
      // It may have arrived although the store did not confirm it in time, or counted no listener of another node: what
      // may be worked on is not refused, nor run elsewhere.
      send(to, 'question', id, body, { heardAt: atOnce }).catch((error: unknown) => {
        if (!working || isTooLarge(error)) settle(error as Error)
      })
    })
  }

  function receive(message: BusMessage): void {
    const { word, id, from, body } = message
    peers.heard(from)
    if (word === 'gone') messages.heard.forget(from)
    if (word === 'alive') flow.alive(from, body)
    if (word === 'beat' && id === '') return trySend(from, 'alive', '', body)
    if (word === 'told') {
      const { kind, said } = body as ToldMessage
      return listeners.get(kind)?.(said as never, from)
    }
    if (word === 'question') return server.accept(message)
    if (server.receive(message)) return
    const ours = sent.get(id)
    if (ours?.to === from) ours.receive(message)
    // The sender of this request has given up.
    else if (word === 'ready') trySend(from, 'abort', id)
  }

  askForMissed(options, sent)
  const unsubscribers = await listen(options, messages.open, createReading(receive, sent, trySend).take)

  return {
    request,
    /** Answers the other processes. `signal` is aborted when the sender gives up or is gone. Once for each kind. */
    serve(kind: BusKind, handler: BusHandler): void {
      server.handlers.set(kind, handler)
    },
    /**
     * Tells another process, or every one, this one included, something that needs no answer.
     * @returns false where nobody listens; true is no proof that it arrived. Never rejects
     */
    async tell(to: string, kind: BusKind, said: unknown): Promise<boolean> {
      try {
        return (await send(to, 'told', '', { kind, said } satisfies ToldMessage)) > 0
      } catch (err) {
        log.debug({ err, kind }, 'a message to another process was lost')
        return false
      }
    },
    /** Takes what is told; once for each kind. */
    hear(kind: BusKind, listener: (said: never, from: string) => void): void {
      listeners.set(kind, listener)
    },
    peers: { knows: peers.knows, wasThere: peers.wasThere, follow: peers.follow },
    isWorking: server.isWorking,
    endWork: server.endWork,
    /** Whether other processes are on the same store. */
    shared: store.shared,
    node,
    async close(): Promise<void> {
      server.close()
      peers.close()
      for (const { settle } of [...sent.values()]) settle(new GatewayError('shutting_down', 'The gateway is stopping.'))
      messages.flush()
      // Who heard this process lately may send it questions that are begun at once, and is told that it stops.
      if (messages.heard.any) await new Promise<void>((stopped) => options.clock.timer(latelyMs * 2, stopped))
      messages.flush()
      for (const unsubscribe of unsubscribers) await unsubscribe()
    }
  }
}

/** Then it was not sent. */
const isTooLarge = (error: unknown): boolean => error instanceof GatewayError && error.code === 'upstream_protocol'

/** To what is said to this process, and to every one. */
async function listen(
  { store, node, log }: BusOptions,
  open: BusMessages['open'],
  take: (message: BusMessage | BusHead, onFault: (fault: unknown) => void) => void
): Promise<ReadonlyArray<() => Promise<void>>> {
  // The process that waits for it finds out by the silence.
  const onFault = (err: unknown): void =>
    log.warn({ err }, 'dropped a message of another process that could not be read')
  function attempt<T>(read: () => T): T | undefined {
    try {
      return read()
    } catch (err) {
      onFault(err)
      return undefined
    }
  }
  const subscriptions = [node, everyNode].map((to) =>
    store.subscribe(nodeChannel(to), (sealed) => {
      // One that cannot be read does not take those that came with it.
      for (const message of attempt(() => open(to, sealed)) ?? []) attempt(() => take(message, onFault))
    })
  )
  return await Promise.all(subscriptions)
}

const unreachable = (): GatewayError =>
  new GatewayError('unavailable', 'The process that holds the call cannot be reached. Retry in a second.', {
    headers: { 'Retry-After': '1' }
  })
