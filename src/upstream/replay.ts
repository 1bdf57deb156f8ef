// What a session at an upstream was told and a new one has to be told again: its log level and its subscriptions
// (2025-11-25 server/utilities/logging, server/resources "Subscriptions").

import { nobody } from './exchange.ts'
import type { Log } from '../observe/log.ts'
import type { Request } from '../protocol/messages.ts'
import type { Exchange } from './exchange.ts'
import { createTurnstile } from './turnstile.ts'

export interface Replay {
  /** As the exchange's own, but remembers what the server granted. */
  readonly request: Exchange['request']
  /** Says it all again. What is refused now is noted in the log; nobody waits for it. */
  repeat (signal: AbortSignal): void
  /** URIs that are subscribed to. */
  subscriptions (): Iterable<string>
}

/** A server that has just forgotten a session had better not get all of this at once. */
const maxAtOnce = 8

export function createReplay (name: string, exchange: Exchange, log: Log): Replay {
  let level: Request | undefined
  // No cap of its own: a connection may serve many sessions, and one of them could use it up for all. It holds nothing that those above do
  // not hold too, who count by session (relay/subscriptions), so it is never more than the sum of what they allow each. URIs only: what
  // else a client wrote into its request, and how much of it, was for that request.
  const subscribed = new Set<string>()
  const through = createTurnstile(maxAtOnce)
  let rounds = 0

  function granted (request: Request): void {
    const uri = request.params?.['uri']
    if (request.method === 'logging/setLevel') level = request
    else if (typeof uri === 'string') subscribed.add(uri)
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
      const round = ++rounds
      const say = (request: Request, holds: () => boolean): void => {
        through(async () => {
          // Another session has begun meanwhile, the connection has ended, or it was unsubscribed.
          if (round !== rounds || signal.aborted || !holds()) return
          await exchange.request(request, nobody, signal)
        }).catch((err: unknown) => log.warn({ err, upstream: name, method: request.method }, 'the new session did not take what the old one was told'))
      }
      const known = level
      if (known !== undefined) say(known, () => known === level)
      for (const uri of subscribed) say({ method: 'resources/subscribe', params: { uri } }, () => subscribed.has(uri))
    },
    subscriptions: () => subscribed
  }
}
