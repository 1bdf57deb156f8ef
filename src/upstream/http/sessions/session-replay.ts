// Repeats the log level and the subscriptions of a session in the new one, after the server has forgotten it.

import { createSemaphore } from '../../../limits/limits.ts'
import type { Log } from '../../../observe/log.ts'
import { isObject, type Request, type Result, type ServerCapabilities } from '../../../protocol/messages.ts'
import { type Client, noClient, type UpstreamEvents } from '../../../protocol/seams.ts'
import type { RpcClient } from '../../rpc/rpc-client.ts'

/** The state of a session that a new one does not have. */
export interface SessionReplay {
  repeat(signal: AbortSignal): void
  /** The subscribed URIs. */
  readonly subscriptions: ReadonlySet<string>
}

/** The most repeated requests at once: a server that lost its sessions gets those of all of them. */
const maxAtOnce = 8

/**
 * Keeps the log level and the subscriptions of a session, and repeats them in a new one (2025-11-25
 * server/utilities/logging, server/resources "Subscriptions").
 */
export function createSessionReplay(name: string, rpc: RpcClient, log: Log) {
  let level: Request | undefined
  // No limit here, because one of the client sessions behind the connection could use it up for all others: the set
  // holds no more than the relay's subscriptions, which are limited for each client session. It keeps URIs only,
  // nothing else of a client's request.
  const subscriptions = new Set<string>()
  const limited = createSemaphore(maxAtOnce)
  let rounds = 0

  function granted(request: Request): void {
    const uri = request.params?.['uri']
    if (request.method === 'logging/setLevel') level = request
    else if (typeof uri === 'string') subscriptions.add(uri)
  }

  return {
    subscriptions,
    request(request: Request, client: Client, signal: AbortSignal): Promise<Result> {
      const { method, params } = request
      if (method === 'resources/unsubscribe') subscriptions.delete(params?.['uri'] as string)
      const result = rpc.request(request, client, signal)
      if (method === 'resources/subscribe' || method === 'logging/setLevel') {
        result.then(
          () => granted(request),
          () => {}
        )
      }
      return result
    },
    /** Sends the requests in the background; a refusal is logged. */
    repeat(signal: AbortSignal): void {
      const round = ++rounds
      const send = (request: Request, holds: () => boolean): void => {
        limited(async () => {
          // Skipped if another session has begun meanwhile, the connection has ended, or the client has unsubscribed.
          if (round === rounds && !signal.aborted && holds()) await rpc.request(request, noClient, signal)
        }).catch((err: unknown) =>
          log.warn(
            { err, upstream: name, method: request.method },
            'the new session refused what the old one had granted'
          )
        )
      }
      const known = level
      if (known !== undefined) send(known, () => known === level)
      for (const uri of subscriptions)
        send({ method: 'resources/subscribe', params: { uri } }, () => subscriptions.has(uri))
    }
  }
}

/** Reports all lists and subscribed resources as changed, because notifications may have been missed. */
export function announce(
  events: UpstreamEvents,
  capabilities: ServerCapabilities,
  { subscriptions }: SessionReplay
): void {
  for (const kind of ['tools', 'prompts', 'resources'] as const) {
    if (isObject(capabilities[kind])) events.listChanged(kind, 'gateway')
  }
  for (const uri of subscriptions) {
    events.notification({ method: 'notifications/resources/updated', params: { uri } })
  }
}
