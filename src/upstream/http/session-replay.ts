// What a session at an upstream was told and a new one has to be told again: its log level and its subscriptions
// (2025-11-25 server/utilities/logging, server/resources "Subscriptions").

import { noClient } from '../../protocol/seams.ts'
import { createSemaphore } from '../../limits/limits.ts'
import type { Log } from '../../observe/log.ts'
import type { Request } from '../../protocol/messages.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'

export interface SessionReplay {
  /** As that of the RPC client, but remembers what the server granted. */
  readonly request: RpcClient['request']
  /** Sends it all again. What the server refuses now is logged; nobody waits for it. */
  repeat(signal: AbortSignal): void
  /** URIs. */
  readonly subscriptions: ReadonlySet<string>
}

/** Requests to a server that has just lost its sessions. */
const maxAtOnce = 8

export function createSessionReplay(name: string, rpc: RpcClient, log: Log): SessionReplay {
  let level: Request | undefined
  // No limit of its own, which one of the client sessions behind the connection could use up for all: it never holds
  // more than the relay's subscriptions, which are limited for each session. URIs only, nothing else of a client's
  // request.
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
    request(request, client, signal) {
      const { method, params } = request
      if (method === 'resources/unsubscribe') subscriptions.delete(params?.['uri'] as string)
      const result = rpc.request(request, client, signal)
      if (method === 'resources/subscribe' || method === 'logging/setLevel') {
        // Where it is refused, there is nothing to remember.
        result.then(
          () => granted(request),
          () => {}
        )
      }
      return result
    },
    repeat(signal) {
      const round = ++rounds
      const send = (request: Request, holds: () => boolean): void => {
        limited(async () => {
          // Another session has begun meanwhile, the connection has ended, or the client unsubscribed.
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
