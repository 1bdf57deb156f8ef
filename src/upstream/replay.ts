// What a session at an upstream was told and a new one has to be told again: its log level and its subscriptions
// (2025-11-25 server/utilities/logging, server/resources "Subscriptions").

import { nobody } from './exchange.ts'
import type { Log } from '../observe/log.ts'
import type { Request } from '../protocol/messages.ts'
import type { Exchange } from './exchange.ts'

export interface Replay {
  /** As the exchange's own, but remembers what the server granted. */
  readonly request: Exchange['request']
  /** Says it all again. What is refused now is noted in the log; nobody waits for it. */
  repeat (signal: AbortSignal): void
  /** URIs that are subscribed to. */
  subscriptions (): Iterable<string>
}

/** Of more than these, a new session learns nothing: each is a request of its own. */
const maxSubscriptions = 1_000

export function createReplay (name: string, exchange: Exchange, log: Log): Replay {
  let level: Request | undefined
  const subscribed = new Map<string, Request>()

  function granted (request: Request): void {
    const uri = request.params?.['uri']
    if (request.method === 'logging/setLevel') level = request
    else if (typeof uri !== 'string') return
    else if (subscribed.size < maxSubscriptions) subscribed.set(uri, request)
    else log.warn({ upstream: name, maxSubscriptions }, 'a subscription would be lost with the session of the upstream: there are too many')
  }

  return {
    request (request, client, signal) {
      const { method, params } = request
      if (method === 'resources/unsubscribe') subscribed.delete(params?.['uri'] as string)
      const result = exchange.request(request, client, signal)
      if (method === 'resources/subscribe' || method === 'logging/setLevel') {
        // Refused, there is nothing to remember.
        result.then(() => granted(request), () => {})
      }
      return result
    },
    repeat (signal) {
      for (const request of [...level === undefined ? [] : [level], ...subscribed.values()]) {
        exchange.request(request, nobody, signal).catch((err: unknown) => log.warn({ err, upstream: name, method: request.method }, 'the new session did not take what the old one was told'))
      }
    },
    subscriptions: () => subscribed.keys()
  }
}
