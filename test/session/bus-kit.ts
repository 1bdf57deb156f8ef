// Two processes on one store, over messages that a test can lose, double and play again.

import pino from 'pino'
import { randomBytes } from 'node:crypto'
import { GatewayError } from '../../src/protocol/messages.ts'
import { type Bus, type BusOptions, createBus } from '../../src/session/bus/bus.ts'
import { type BusCall } from '../../src/session/bus/bus-server.ts'
import type { Store } from '../../src/store/port.ts'
import { createSealer, type Sealer } from '../../src/store/seal.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'

export interface Wire {
  readonly one: Bus
  readonly two: Bus
  readonly store: Store
  readonly sealer: Sealer
  /** Channel and text of everything that was published. */
  readonly published: Array<[string, string]>
  /** The processes hear that messages may have been lost. */
  tellLost(): void
  /** Messages for which this is true are lost. */
  lose: (channel: string, message: string) => boolean
  /**
   * The store is away for messages for which this says something, whether it takes them or not; a promise: it takes
   * them, and is away when that resolves.
   */
  fail: (channel: string) => 'taken' | 'lost' | Promise<void> | undefined
  /** A message leaves when this resolves. */
  hold: (text: string) => Promise<void> | undefined
  /** Nobody is counted who listens, as in a failover of Redis. */
  uncounted: boolean
  /** How often each one comes. */
  times: number
  /** Nothing can be opened. */
  broken: boolean
  live: boolean
  /** Timers that start now end in a hundredth of their time. Else a busy machine does not make a peer count as gone. */
  hurry: boolean
  today: number
  /** By the steady clock of both processes. */
  elapsed: number
}

const log = pino({ level: 'silent' })

export async function wire(
  t: { teardown(run: () => unknown): void },
  more: Partial<BusOptions> = {},
  ofTwo: Partial<BusOptions> = {}
): Promise<Wire> {
  const store = await createSqliteStore({ path: ':memory:', clock: { now: Date.now }, log })
  const timer = (ms: number, run: () => void) => setTimeout(run, ms)
  const sealer = await createSealer({ store, randomBytes, timer, log })
  const guarded: Sealer = {
    ...sealer,
    open(...given) {
      if (made.broken) throw new GatewayError('unavailable', 'the key is away')
      return sealer.open(...given)
    }
  }
  const made = {
    store,
    sealer,
    published: [] as Array<[string, string]>,
    tellLost(): void {
      for (const listener of lostListeners) listener()
    },
    lose: () => false,
    fail: () => undefined,
    hold: () => undefined,
    uncounted: false,
    times: 1,
    broken: false,
    live: true,
    hurry: false,
    today: 1_000_000,
    elapsed: 0
  } as Omit<Wire, 'one' | 'two'> & { one?: Bus; two?: Bus }
  const lostListeners: Array<() => void> = []
  const wrapped: Store = {
    ...store,
    onLost: (listener) => void lostListeners.push(listener),
    get live() {
      return made.live
    },
    async publish(channel, message) {
      made.published.push([channel, message])
      await made.hold(message)
      const failure = made.fail(channel)
      if (failure !== undefined && failure !== 'lost') await store.publish(channel, message)
      await failure
      if (failure !== undefined) throw new GatewayError('unavailable', 'the store is away')
      let listening = 1
      for (let n = 0; n < made.times; n++)
        if (!made.lose(channel, message)) listening = await store.publish(channel, message)
      return made.uncounted ? 0 : listening
    }
  }
  const bus = (node: string, own: Partial<BusOptions> = {}): Promise<Bus> =>
    createBus({
      store: wrapped,
      sealer: guarded,
      node,
      clock: { now: () => made.today, timer: (ms, run) => timer(made.hurry ? ms / 100 : ms, run) },
      steady: { now: () => made.elapsed },
      log,
      ackMs: 10_000,
      silenceMs: 30_000,
      ...more,
      ...own
    })
  made.one = await bus('one')
  made.two = await bus('two', ofTwo)
  // The timers of a bus keep no process alive.
  const awake = setInterval(() => {}, 1_000)
  t.teardown(async () => {
    clearInterval(awake)
    await made.one?.close()
    await made.two?.close()
    sealer.close()
    await store.close()
  })
  return made as Wire
}

export const call = (more: Partial<BusCall> = {}): BusCall => ({
  notify() {},
  signal: new AbortController().signal,
  ...more
})
export const ada = { tenant: 'acme', caller: 'ada' }
export const never = (): Promise<unknown> => new Promise(() => {})
