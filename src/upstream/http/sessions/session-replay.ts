// What a session was told, and what the new one is told in place of one that the server has forgotten.

import { createSemaphore } from '../../../limits/limits.ts'
import type { Log } from '../../../observe/log.ts'
import { isObject, type Request, type Result, type ServerCapabilities } from '../../../protocol/messages.ts'
import { type Client, noClient, type UpstreamEvents } from '../../../protocol/seams.ts'
import type { RpcClient } from '../../rpc/rpc-client.ts'

/** What a new session has to be told again. */
export interface SessionReplay {
  repeat(signal: AbortSignal): void
  /** URIs. */
  readonly subscriptions: ReadonlySet<string>
}

/** Requests to a server that has just lost its sessions. */
const maxAtOnce = 8

/**
 * What a session was told and a new one has to be told again: its log level and its subscriptions (2025-11-25
 * server/utilities/logging, server/resources "Subscriptions").
 */
export function createSessionReplay(name: string, rpc: RpcClient, log: Log) {
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
    /** What the server refuses now is logged; nobody waits for it. */
    repeat(signal: AbortSignal): void {
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

/** Notifications may have been missed. */
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
