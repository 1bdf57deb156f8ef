// Listens at a server of 2026-07-28: for list changes, on behalf of the shared listing, and for changes of resources,
// on behalf of legacy clients that subscribed. Each stream is a `subscriptions/listen` request, sent again when it ends
// (2026-07-28 basic/patterns/subscriptions).

import {
  isObject,
  type JsonObject,
  type Result,
  rpcCodes,
  RpcError,
  type ServerCapabilities
} from '../../protocol/messages.ts'
import { type Client, type ListKind, noClient } from '../../protocol/seams.ts'
import { abortable, backoffMs, deadline, type Timer } from '../../time/clock.ts'
import { createConnectionNotifications } from '../rpc/notifications.ts'
import { cancelledError, timeoutError, upstreamError } from '../rpc/errors.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { LinkContext } from '../rpc/transport.ts'

const firstDelayMs = 1_000
const maxDelayMs = 60_000
/** A stream that lived this long does not count as a failure when it ends. */
const provenMs = 60_000
/** The most resource subscriptions of a connection: each is a request that stays open. */
const maxSubscriptions = 1_000
/** Codes of servers without `subscriptions/listen`, or without it for this client: the request is not repeated. */
const notOffered: ReadonlySet<number> = new Set([rpcCodes.methodNotFound, rpcCodes.invalidParams])
const kinds: readonly ListKind[] = ['tools', 'prompts', 'resources']

export type UpstreamSubscriptions = ReturnType<typeof createUpstreamSubscriptions>

export function createUpstreamSubscriptions(
  { name, timeoutMs }: Pick<UpstreamDefinition, 'name' | 'timeoutMs'>,
  link: Pick<LinkContext, 'events' | 'clock' | 'random' | 'log' | 'warnings'>,
  rpc: Pick<RpcClient, 'request'>
) {
  const { events, clock, random, log } = link
  const notifyOwner = createConnectionNotifications(link)
  const open = new Map<string, ReturnType<typeof openStream>>()
  let lists: ReturnType<typeof openStream> | undefined
  let isListed = false

  /**
   * @param missed called after an interruption, during which changes may have been missed
   * @param isLate asked at the first agreement: whether a list was read earlier, which may have changed since
   */
  function openStream(notifications: JsonObject, missed: () => void, isLate = (): boolean => false) {
    const stop = new AbortController()
    const first = Promise.withResolvers<JsonObject>()
    // No unhandled rejection: subscribers that wait for the agreement get the error.
    first.promise.catch(() => {})
    let failures = 0
    let agreed = false
    let timer: Timer | undefined

    function listen(): void {
      let since: number | undefined
      const listener: Client = {
        ...noClient,
        era: 'modern',
        notify(notification) {
          if (notification.method !== 'notifications/subscriptions/acknowledged') return notifyOwner(notification)
          if (failures > 0 || agreed || isLate()) missed()
          since = clock.now()
          agreed = true
          const accepted = notification.params?.['notifications']
          first.resolve(isObject(accepted) ? accepted : {})
        }
      }
      const again = (): void => {
        if (stop.signal.aborted) return
        if (since !== undefined && clock.now() - since >= provenMs) failures = 0
        timer = clock.timer(backoffMs(failures, { firstMs: firstDelayMs, maxMs: maxDelayMs, random }), listen)
        timer.unref()
        failures++
      }
      const request = { method: 'subscriptions/listen', params: { notifications } }
      rpc.request(request, listener, stop.signal).then(again, (error: unknown) => {
        first.reject(error)
        if (stop.signal.aborted) return
        if (!agreed && error instanceof RpcError && notOffered.has(error.error.code))
          return log.debug({ upstream: name }, 'the upstream has no streams to listen on')
        again()
      })
    }

    listen()
    return {
      /** The filter that the server agreed to first. */
      agreed: first.promise,
      /** The number of subscribers that wait for the agreement. */
      waiting: 0,
      /** Whether a subscriber uses the stream. */
      subscribed: false,
      stop(reason?: Error): void {
        if (reason !== undefined) first.reject(reason)
        timer?.close()
        stop.abort()
      }
    }
  }

  /** `resources/subscribe`: resolves when the server has agreed. @throws GatewayError, RpcError */
  async function subscribe(uri: string, signal: AbortSignal): Promise<Result> {
    if (!open.has(uri) && open.size >= maxSubscriptions)
      throw upstreamError(
        name,
        'too_many',
        `There are ${maxSubscriptions} subscriptions at upstream ${name} already, which is the limit. ` +
          'Unsubscribe from some.'
      )
    const updated = { method: 'notifications/resources/updated', params: { uri } }
    const stream = open.get(uri) ?? openStream({ resourceSubscriptions: [uri] }, () => events.notification(updated))
    open.set(uri, stream)
    stream.waiting++
    const limit = deadline(clock, timeoutMs, signal)
    try {
      const { resourceSubscriptions } = await abortable(stream.agreed, limit.signal, () =>
        limit.passed() ? timeoutError(name, timeoutMs) : cancelledError(name)
      )
      if (Array.isArray(resourceSubscriptions) && resourceSubscriptions.includes(uri)) {
        stream.subscribed = true
        return {}
      }
      throw upstreamError(name, 'invalid_params', `Upstream ${name} does not tell of changes of this resource.`)
    } finally {
      limit.close()
      stream.waiting--
      // Closed only if no other subscriber uses it or waits for it.
      if (!stream.subscribed && stream.waiting === 0) {
        if (open.get(uri) === stream) open.delete(uri)
        stream.stop()
      }
    }
  }

  return {
    /** Reports changes of the lists to `events`. Once. */
    watchLists(capabilities: ServerCapabilities): void {
      const offered = kinds.filter((kind) => isObject(capabilities[kind]) && capabilities[kind]['listChanged'] === true)
      if (offered.length === 0) return
      const missed = (): void => {
        for (const kind of kinds) if (isObject(capabilities[kind])) events.listChanged(kind, 'gateway')
      }
      lists = openStream(
        Object.fromEntries(offered.map((kind) => [`${kind}ListChanged`, true])),
        missed,
        () => isListed
      )
    },
    /** Called when the server has answered with a list. */
    listed(): void {
      isListed = true
    },
    subscribe,
    unsubscribe(uri: string): void {
      open.get(uri)?.stop()
      open.delete(uri)
    },
    /** @param reason the error for subscribers that still wait for an agreement */
    end(reason: Error): void {
      lists?.stop(reason)
      for (const stream of open.values()) stream.stop(reason)
      open.clear()
    }
  }
}
