// Makes subscriptions again on the connection that follows a broken one, and opens that connection while a subscriber
// listens.

import type { Log } from '../../observe/log.ts'
import { type Result, RpcError } from '../../protocol/messages.ts'
import { noClient, type Upstream } from '../../protocol/seams.ts'
import { backoffMs, type Clock, timeoutSignal } from '../../time/clock.ts'
import { listenerOf, type SubscribedConnection, type SubscriptionIndex, tellUpdated } from './subscription-index.ts'

export interface Resubscription {
  /** Asks a new connection for what the one before it had. Never rejects. */
  renew(connection: SubscribedConnection, upstream: Upstream): Promise<void>
  /** Opens the connection for a subscriber that listens; the others get theirs with their next call. Never rejects. */
  reopen(connection: SubscribedConnection): Promise<void>
  retryLater(connection: SubscribedConnection): void
}

export interface ResubscriptionOptions {
  readonly index: SubscriptionIndex
  /** Aborted when the gateway stops. */
  readonly closing: AbortSignal
  readonly clock: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: Log
}

const requestMs = 30_000
const retryDelay = { firstMs: 500, maxMs: 60_000 }

/** @throws RpcError the server's own error; GatewayError upstream_* */
export const requestSubscription = (upstream: Upstream, method: string, uri: string): Promise<Result> =>
  upstream.request({ method, params: { uri } }, noClient, timeoutSignal(requestMs))

export function createResubscription({ index, closing, clock, random, log }: ResubscriptionOptions): Resubscription {
  async function renew(connection: SubscribedConnection, upstream: Upstream): Promise<void> {
    if (connection.current === upstream) return
    connection.current = upstream
    const { definition, uris, background } = connection
    const again = (uri: string): Promise<void> =>
      index.inTurn(connection, uri, async (subscription) => {
        if (subscription.upstream === upstream || subscription.subscribers.size === 0) return
        await requestSubscription(upstream, 'resources/subscribe', uri)
        subscription.upstream = upstream
        if (subscription.established) tellUpdated(connection, { uri })
        subscription.established = true
      })
    try {
      await Promise.all([...uris.keys()].map((uri) => background(() => again(uri))))
      connection.failures = 0
    } catch (err) {
      log.warn(
        { err, upstream: definition.name, tenant: definition.tenant },
        'a subscription could not be made again on the new connection'
      )
      // The next call does not repeat what the server has refused on this connection.
      if (!(err instanceof RpcError) && connection.current === upstream) connection.current = undefined
      retryLater(connection)
    }
  }

  async function reopen(connection: SubscribedConnection): Promise<void> {
    const subscriber = listenerOf(connection)
    if (closing.aborted || connection.retry !== undefined || subscriber === undefined) return
    try {
      await renew(connection, await subscriber.connect(connection.definition))
    } catch (err) {
      log.debug(
        { err, upstream: connection.definition.name },
        'a connection with subscriptions could not be opened yet'
      )
      retryLater(connection)
    }
  }

  function retryLater(connection: SubscribedConnection): void {
    if (closing.aborted || connection.retry !== undefined || listenerOf(connection) === undefined) return
    connection.retry = clock.timer(backoffMs(connection.failures++, { ...retryDelay, random }), () => {
      connection.retry = undefined
      connection.current = undefined
      void reopen(connection)
    })
    connection.retry.unref()
  }

  return { renew, reopen, retryLater }
}
