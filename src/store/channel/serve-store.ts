// The primary's half of the store of workers: it calls the embedded store for them, and passes on what they publish.

import type { Log } from '../../observe/log.ts'
import type { PrimaryChannel, StoreFault } from '../../workers/messages.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { Store } from '../port.ts'

/** Of messages and answers that one worker has not read yet, in bytes: beyond it, it misses some. */
const maxUnreadBytes = 33_554_432

/** What a worker may call as it stands in the port. */
const operations = new Set([
  'get',
  'set',
  'delete',
  'touch',
  'count',
  'lease',
  'append',
  'entries',
  'addMember',
  'removeMember',
  'members',
  'ping'
] satisfies Array<keyof Store>)

type Operation = (...args: readonly unknown[]) => Promise<unknown>

export function createStoreServer(store: Store, log: Log) {
  /** By channel of the store. */
  const subscribers = new Map<string, Set<Subscriber>>()

  function publish(channel: string, message: string): number {
    let reached = 0
    for (const subscriber of subscribers.get(channel) ?? []) if (subscriber.publish(channel, message)) reached += 1
    return reached
  }

  async function answer(subscriber: Subscriber, operation: string, args: readonly unknown[]): Promise<unknown> {
    const [channel = '', message = ''] = args as readonly string[]
    if (operation === 'publish') return publish(channel, message)
    if (operation === 'subscribe') {
      subscribers.set(channel, (subscribers.get(channel) ?? new Set()).add(subscriber))
      return undefined
    }
    if (operation === 'unsubscribe') return leave(subscriber, channel)
    if (!operations.has(operation as never)) throw new Error(`The store has no operation ${operation}.`)
    return await (store[operation as keyof Store] as Operation)(...args)
  }

  function leave(subscriber: Subscriber, channel: string): void {
    const heard = subscribers.get(channel)
    if (heard?.delete(subscriber) === true && heard.size === 0) subscribers.delete(channel)
  }

  return {
    /** Serves a worker until its channel is closed. */
    serve(channel: PrimaryChannel, worker: number): void {
      const subscriber = createSubscriber(channel, () =>
        log.warn({ of: worker }, 'messages to this worker are left out: it does not read')
      )
      channel.on('store', ({ id, operation, args }) => {
        answer(subscriber, operation, args).then(
          (value) => subscriber.answer(id, { value }),
          (error: unknown) => subscriber.answer(id, { fault: faultOf(error) })
        )
      })
      channel.onClosed(() => {
        for (const name of subscribers.keys()) leave(subscriber, name)
      })
    }
  }
}

type Subscriber = ReturnType<typeof createSubscriber>

function createSubscriber(channel: PrimaryChannel, onLosing: () => void) {
  let isLosing = false
  const isFull = (bytes: number): boolean => channel.waitingBytes + bytes > maxUnreadBytes
  /** It is told as soon as it has read what was sent before. */
  const written = (): void => {
    if (!isLosing || channel.waitingBytes > 0) return
    isLosing = false
    channel.send({ kind: 'lost' })
  }
  return {
    /** @returns whether the worker gets it */
    publish(name: string, message: string): boolean {
      const bytes = name.length + message.length
      if (isFull(bytes)) {
        if (!isLosing) onLosing()
        isLosing = true
        return false
      }
      channel.send({ kind: 'published', channel: name, message }, bytes, written)
      return true
    },
    answer(id: number, result: { readonly value: unknown } | { readonly fault: StoreFault }): void {
      const bytes = sizeOf(result)
      if (isFull(bytes)) return channel.send({ kind: 'stored', id, fault: unread }, 0, written)
      channel.send({ kind: 'stored', id, ...result }, bytes, written)
    }
  }
}

const unread: StoreFault = {
  message: 'The store of the gateway is busy. Retry in a second.',
  cause: 'the worker does not read its answers',
  isUnavailable: true
}

/** Of the texts of a value, or of the arguments of a call. */
export function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 0
  return Object.values(value).reduce<number>((sum, each) => sum + sizeOf(each), 0)
}

function faultOf(error: unknown): StoreFault {
  const { message, cause } = error instanceof Error ? error : new Error(String(error))
  const isUnavailable = error instanceof GatewayError && error.code === 'unavailable'
  return { message, isUnavailable, ...(cause instanceof Error && { cause: cause.message }) }
}
