// Requests from process to process: the one that holds a call answers. Both sides prove all the time that they are
// alive. A request is never sent twice, and nothing is worked on that its sender has given up.

import { createMemoryAccount, type MemoryAccount } from '../../limits/memory.ts'
import { everyNode, nodeChannel } from '../../store/keys.ts'
import { type BusKind, createBusPlaces, maxRequests } from './bus-places.ts'
import { createBusRequests } from './bus-requests.ts'
import { type BusHandler, createBusServer } from './bus-server.ts'
import { createFlow } from './wire/bus-flow.ts'
import { latelyMs } from './wire/bus-heard.ts'
import { type BusMessage, type BusMessages, type BusMessagesOptions, createBusMessages } from './wire/bus-messages.ts'
import { createPeerWatch } from './wire/bus-peers.ts'
import { type BusHead, createReading } from './wire/bus-reading.ts'

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
  const { store, node, log, clock } = options
  const messages = createBusMessages(options)
  const { send, trySend } = messages
  const flow = createFlow(clock, (to, beat) => send(to, 'beat', '', beat))
  const peers = createPeerWatch(clock, async (to) => (store.live ? await flow.beat(to) : undefined))
  const listeners = new Map<BusKind, (said: never, from: string) => void>()
  const requests = createBusRequests(options, messages, peers, createBusPlaces(max))
  const serving = { memory: createMemoryAccount(), ...options }
  const server = createBusServer(messages, flow, serving, createBusPlaces(max))

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
    // The sender of a request that is unknown has given up.
    if (!server.receive(message) && !requests.receive(message) && word === 'ready') trySend(from, 'abort', id)
  }

  const unsubscribers = await listen(options, messages.open, createReading(receive, requests.sent, trySend).take)

  return {
    request: requests.request,
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
      requests.close()
      messages.flush()
      // Who heard this process lately may send it questions that are begun at once, and is told that it stops.
      if (messages.heard.any) await new Promise<void>((stopped) => clock.timer(latelyMs * 2, stopped))
      messages.flush()
      for (const unsubscribe of unsubscribers) await unsubscribe()
    }
  }
}

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
