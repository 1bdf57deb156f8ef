// Listening at a server of 2026-07-28 for those who do not do so themselves: the shared listing, and clients of older revisions that
// subscribed to a resource. Each is a `subscriptions/listen` of its own, opened again when it ends (basic/patterns/subscriptions).

import { GatewayError, RpcError } from '../../protocol/errors.ts'
import { isObject } from '../../protocol/messages.ts'
import { deadline } from '../clock.ts'
import { cancelledError, timeoutError } from '../endings.ts'
import { nobody } from '../exchange.ts'
import { createNotices } from '../notices.ts'
import type { Log } from '../../observe/log.ts'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { JsonObject, Notification, Result, ServerCapabilities } from '../../protocol/messages.ts'
import type { Client, ListKind, UpstreamEvents } from '../../protocol/seams.ts'
import type { Clock, Timer } from '../clock.ts'
import type { Complaints } from '../complaints.ts'
import type { Exchange } from '../exchange.ts'

export interface WatchesOptions {
  readonly name: UpstreamName
  readonly timeoutMs: number
  readonly events: UpstreamEvents
  readonly clock: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: Log
  readonly complaints: Complaints
  exchange (): Exchange
}

export interface Watches {
  /** Listens for what may change in the lists, and reports it to `events`. Once. */
  lists (capabilities: ServerCapabilities): void
  /** `resources/subscribe`: resolves when the server has agreed. @throws GatewayError, RpcError */
  subscribe (uri: string, signal: AbortSignal): Promise<Result>
  unsubscribe (uri: string): void
  /** @param reason what those who wait are told; where the exchange has ended, they know it by then */
  end (reason: Error): void
}

interface Watch {
  /** The filter that the server agreed to first. */
  readonly agreed: Promise<JsonObject>
  /** Subscribers who wait for that. */
  waiting: number
  /** Somebody has what it is open for. */
  held: boolean
  stop (reason?: Error): void
}

const firstDelayMs = 1_000
const longestDelayMs = 60_000
/** A stream that lived so long was a good one. */
const provenMs = 60_000
/** Each is a request that stays open. */
const maxSubscriptions = 1_000
const kinds: readonly ListKind[] = ['tools', 'prompts', 'resources']

export function createWatches (options: WatchesOptions): Watches {
  const { name, timeoutMs, events, clock, random, log } = options
  const notice = createNotices(options)
  const open = new Map<string, Watch>()
  let listing: Watch | undefined

  /** @param missed it was not open for a while: something may have changed without our hearing of it */
  function watch (filter: JsonObject, missed: () => void): Watch {
    const stop = new AbortController()
    const first = Promise.withResolvers<JsonObject>()
    // Whoever waits for it is told.
    first.promise.catch(() => {})
    let failures = 0
    let agreed = false
    let timer: Timer | undefined

    function listen (): void {
      let since: number | undefined
      const listener: Client = {
        ...nobody,
        era: 'modern',
        notify (notification: Notification) {
          if (notification.method !== 'notifications/subscriptions/acknowledged') return notice(notification)
          if (failures > 0 || agreed) missed()
          since = clock.now()
          agreed = true
          const { notifications } = notification.params ?? {}
          first.resolve(isObject(notifications) ? notifications : {})
        }
      }
      const again = (): void => {
        if (stop.signal.aborted) return
        if (since !== undefined && clock.now() - since >= provenMs) failures = 0
        const delay = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(failures, 10) * (1 + random() * 0.25))
        failures++
        timer = clock.timer(delay, listen)
        timer.unref()
      }
      options.exchange().request({ method: 'subscriptions/listen', params: { notifications: filter } }, listener, stop.signal).then(again, (error: unknown) => {
        first.reject(error)
        if (stop.signal.aborted) return
        // It has no such method, or none for us.
        if (!agreed && error instanceof RpcError && (error.error.code === -32601 || error.error.code === -32602)) return log.debug({ upstream: name }, 'the upstream has no streams to listen on')
        again()
      })
    }

    listen()
    return {
      agreed: first.promise,
      waiting: 0,
      held: false,
      stop (reason) {
        if (reason !== undefined) first.reject(reason)
        timer?.close()
        stop.abort()
      }
    }
  }

  async function subscribe (uri: string, signal: AbortSignal): Promise<Result> {
    let found = open.get(uri)
    if (found === undefined) {
      if (open.size >= maxSubscriptions) throw new GatewayError('too_many', `There are ${maxSubscriptions} subscriptions at upstream ${name} already, which is the limit. Unsubscribe from some.`, { data: { upstream: name } })
      found = watch({ resourceSubscriptions: [uri] }, () => events.notification({ method: 'notifications/resources/updated', params: { uri } }))
      open.set(uri, found)
    }
    const mine = found
    mine.waiting++
    const limit = deadline(clock, timeoutMs, signal)
    try {
      const { resourceSubscriptions } = await unless(limit.signal, mine.agreed, () => limit.passed() ? timeoutError(name, timeoutMs) : cancelledError(name))
      if (Array.isArray(resourceSubscriptions) && resourceSubscriptions.includes(uri)) {
        mine.held = true
        return {}
      }
      throw new GatewayError('invalid_params', `Upstream ${name} does not tell of changes of this resource.`, { data: { upstream: name } })
    } finally {
      limit.close()
      mine.waiting--
      // Others may have joined it, or have been there before.
      if (!mine.held && mine.waiting === 0) {
        if (open.get(uri) === mine) open.delete(uri)
        mine.stop()
      }
    }
  }

  return {
    lists (capabilities) {
      const offered = kinds.filter((kind) => isObject(capabilities[kind]) && capabilities[kind]['listChanged'] === true)
      if (offered.length === 0) return
      listing = watch(Object.fromEntries(offered.map((kind) => [`${kind}ListChanged`, true])), () => {
        for (const kind of kinds) if (isObject(capabilities[kind])) events.listChanged(kind)
      })
    },
    subscribe,
    unsubscribe (uri) {
      open.get(uri)?.stop()
      open.delete(uri)
    },
    end (reason) {
      listing?.stop(reason)
      for (const each of open.values()) each.stop(reason)
      open.clear()
    }
  }
}

/** The work's own end, unless the signal comes first. */
function unless<Value> (signal: AbortSignal, work: Promise<Value>, reason: () => Error): Promise<Value> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(reason())
    if (signal.aborted) return giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}
