// Requests from process to process: the one that holds a call answers. Both sides prove all the time that they are
// alive. A request is never sent twice, and nothing is worked on that its sender has given up.

import { createMemoryAccount, type HeldMemory, type MemoryAccount } from '../../limits/memory.ts'
import { everyNode, nodeChannel } from '../../store/keys.ts'
import { type BusKind, createBusPlaces, maxRequests } from './bus-places.ts'
import { createBusRequests } from './bus-requests.ts'
import { type BusHandler, createBusServer } from './bus-server.ts'
import { createTold } from './bus-told.ts'
import { createLeftOut } from './left-out.ts'
import { serveLongQuestions } from './long-questions.ts'
import { createFlow } from './wire/bus-flow.ts'
import { latelyMs } from './wire/bus-heard.ts'
import { type BusMessage, type BusMessages, type BusMessagesOptions, createBusMessages } from './wire/bus-messages.ts'
import { createPeerWatch } from './wire/bus-peers.ts'
import { type BusHead, createReading } from './wire/bus-reading.ts'

export type Bus = Awaited<ReturnType<typeof createBus>>

export interface BusOptions extends BusMessagesOptions {
  /** Requests at a time, in each direction. */
  readonly max?: number
  /** For what waits to be said to other processes, and what these ask. */
  readonly memory?: MemoryAccount
}

export async function createBus({ max = maxRequests, ...options }: BusOptions) {
  const { store, node, log, clock } = options
  const messages = createBusMessages(options)
  const { send, trySend } = messages
  const context = { memory: createMemoryAccount(), ...options, leftOut: createLeftOut(clock, log) }
  // Not to all at once: each would answer for itself.
  const flow = createFlow(clock, async (to, beat) => (to === everyNode ? 1 : await send(to, 'beat', '', beat)))
  const peers = createPeerWatch(clock, async (to) => (store.live ? await flow.beat(to) : undefined))
  const requests = createBusRequests(context, { messages, flow, peers, clock }, createBusPlaces(max))
  const server = createBusServer(messages, flow, context, createBusPlaces(max))
  const told = createTold(messages, flow, context)
  serveLongQuestions(server.handlers, requests)

  function receive(message: BusMessage, memory?: HeldMemory): void {
    const { word, id, from, body } = message
    peers.heard(from)
    if (word === 'gone') messages.heard.forget(from)
    if (word === 'alive') flow.alive(from, body)
    if (word === 'beat' && id === '') return trySend(from, 'alive', '', body)
    if (word === 'told') return told.receive(message)
    if (word === 'question') return server.accept(message, memory)
    // The sender of a request that is unknown has given up.
    if (!server.receive(message) && !requests.receive(message) && word === 'ready') trySend(from, 'abort', id)
  }

  const reading = createReading(receive, requests.sent, trySend, context)
  const unsubscribers = await listen(options, messages.open, reading.take)

  return {
    request: requests.request,
    /** Answers the other processes. `signal` is aborted when the sender gives up or is gone. Once for each kind. */
    serve(kind: BusKind, handler: BusHandler): void {
      server.handlers.set(kind, handler)
    },
    tell: told.tell,
    hear: told.hear,
    peers: { knows: peers.knows, wasThere: peers.wasThere, follow: peers.follow },
    /** Messages of this tenant were left out: there is no room for them. */
    leftOut: context.leftOut,
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
