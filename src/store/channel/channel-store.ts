// The store of a worker: the embedded store, which the primary has, over the channel to it. While the primary does not
// answer, every call fails.

import type { Log } from '../../observe/log.ts'
import { every, steadyClock } from '../../time/clock.ts'
import type { StoreFault, WorkerChannel } from '../../workers/messages.ts'
import type { TokenLease } from '../lease.ts'
import { type Store, createChannelListeners, guarded, unavailable, wholeMs } from '../port.ts'
import { sizeOf } from './serve-store.ts'

/** Between two looks at the calls that wait, in milliseconds. A stall of this process counts as one. */
const lookMs = 150
/** The looks that a call waits while the primary answers nobody. */
const maxTicks = 5
/** The looks that a call waits while it answers others: long values, of this worker or another, come before it. */
const maxBusyTicks = 200
/** What this process may have sent that the primary has not read, in bytes: beyond it, calls fail at once. */
const maxUnsentBytes = 33_554_432

interface Waiting {
  ticks: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: unknown) => void
}

/** @param lasting whether what the store keeps outlives the primary. @param tickMs longer in tests */
export function createChannelStore(channel: WorkerChannel, lasting: boolean, log: Log, tickMs = lookMs): Store {
  const listeners = createChannelListeners(log)
  const waiting = new Map<number, Waiting>()
  const lostListeners: Array<() => void> = []
  let lastId = 0
  let isAnswered = true
  let ticksWithoutAnswer = 0
  let isBeating = false
  let closed = false

  const tellLost = (): void => {
    for (const listener of lostListeners) guarded(log, listener)
  }
  const away = (cause: string) =>
    unavailable('The store of the gateway cannot be reached. Retry in a second.', new Error(cause))

  function ask(operation: string, ...args: readonly unknown[]): Promise<unknown> {
    const bytes = sizeOf(args)
    if (closed || !channel.isOpen) return Promise.reject(away('the channel to the primary is closed'))
    // It would run what it reads later, when the caller has long heard that it failed. A ping finds it back.
    if (!isAnswered && operation !== 'ping') return Promise.reject(away('the primary does not answer'))
    if (channel.waitingBytes + bytes > maxUnsentBytes)
      return Promise.reject(away('the primary does not read what this worker sends'))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const id = ++lastId
    waiting.set(id, { ticks: 0, resolve, reject })
    channel.send({ kind: 'store', id, operation, args: args.filter((each) => each !== undefined) }, bytes)
    return promise
  }

  function failAll(cause: string): void {
    for (const { reject } of waiting.values()) reject(away(cause))
    waiting.clear()
  }

  function silent(): void {
    if (!isAnswered) return
    isAnswered = false
    log.warn('the primary process does not answer; local copies are not trusted')
    tellLost()
  }

  /** Messages go in order: whatever is asked from now on is answered after these subscriptions. */
  function restored(): void {
    isAnswered = true
    for (const name of listeners.names()) void subscribeTo(name)
    tellLost()
  }

  /** What fails is made good once the primary answers. */
  const subscribeTo = (name: string): Promise<unknown> => ask('subscribe', name).catch(silent)

  function tick(): void {
    const isSilent = ++ticksWithoutAnswer >= maxTicks
    for (const [id, call] of waiting) {
      if (++call.ticks < (isSilent ? maxTicks : maxBusyTicks)) continue
      waiting.delete(id)
      call.reject(away('the primary did not answer in time'))
      if (isSilent) silent()
    }
    if (isBeating) return
    isBeating = true
    ask('ping').then(
      () => (isBeating = false),
      () => (isBeating = false)
    )
  }
  const ticks = every(steadyClock, tickMs, tick)

  channel.on('stored', ({ id, value, fault }) => {
    const call = waiting.get(id)
    waiting.delete(id)
    ticksWithoutAnswer = 0
    if (!isAnswered) restored()
    if (fault === undefined) call?.resolve(value)
    else call?.reject(errorOf(fault))
  })
  channel.on('published', ({ channel: name, message }) => {
    if (listeners.has(name)) listeners.deliver(name, message)
    // An `unsubscribe` that failed is made good.
    else ask('unsubscribe', name).catch(() => {})
  })
  channel.on('lost', () => {
    log.warn('messages of other workers were missed; local copies are not trusted')
    tellLost()
  })
  channel.onClosed(() => failAll('the channel to the primary was closed'))

  return {
    get: async (key) => (await ask('get', key)) as string | undefined,
    set: async (key, value, { ttlMs, when } = {}) =>
      (await ask('set', key, value, {
        ...(ttlMs !== undefined && { ttlMs: wholeMs(ttlMs) }),
        ...(when !== undefined && { when })
      })) as boolean,
    delete: async (key, when) => (await ask('delete', key, when)) as boolean,
    touch: async (key, ttlMs) => (await ask('touch', key, wholeMs(ttlMs))) as boolean,
    count: async (key, by, ttlMs) => (await ask('count', key, by, wholeMs(ttlMs))) as number,
    async lease(key, request) {
      const { waitMs, ...lease } = (await ask('lease', key, request)) as TokenLease & { readonly waitMs: number | null }
      // JSON has no Infinity.
      return { ...lease, waitMs: waitMs ?? Infinity }
    },
    async append(key, entry, options) {
      await ask('append', key, entry, { ...options, ttlMs: wholeMs(options.ttlMs) })
    },
    entries: async (key) => (await ask('entries', key)) as string[],
    async addMember(key, member, options) {
      await ask('addMember', key, member, { ...options, ttlMs: wholeMs(options.ttlMs) })
    },
    async removeMember(key, member) {
      await ask('removeMember', key, member)
    },
    members: async (key, options) => (await ask('members', key, options)) as string[],
    publish: async (name, message) => (await ask('publish', name, message)) as number,
    async subscribe(name, listener) {
      const stop = listeners.add(name, listener)
      await subscribeTo(name)
      return () => stop(() => ask('unsubscribe', name).catch(silent))
    },
    onLost: (listener) => void lostListeners.push(listener),
    get live() {
      return isAnswered && channel.isOpen && !closed
    },
    shared: true,
    lasting,
    async ping() {
      await ask('ping')
    },
    async close() {
      closed = true
      ticks.close()
      failAll('the store is closed')
    }
  }
}

function errorOf({ message, cause, isUnavailable }: StoreFault): Error {
  const inner = cause === undefined ? undefined : new Error(cause)
  return isUnavailable ? unavailable(message, inner) : new Error(message, { cause: inner })
}
