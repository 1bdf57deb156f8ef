// Subscriptions to resources on the connection that follows a broken one: they are made again, and that connection is
// opened while a subscriber listens, later and later where it fails.

import type { Log } from '../../observe/log.ts'
import { RpcError, type Result } from '../../protocol/messages.ts'
import { noClient, type Upstream } from '../../protocol/seams.ts'
import { backoffMs, timeoutSignal } from '../../time/clock.ts'
import { listenerOf, type SubscribedConnection, type SubscriptionIndex } from './subscription-index.ts'
import { tellUpdated } from './updates.ts'

const requestMs = 30_000
const retryDelay = { firstMs: 500, maxMs: 60_000 }

/** @throws RpcError the server's own error; GatewayError upstream_* */
export const requestSubscription = (upstream: Upstream, method: string, uri: string): Promise<Result> =>
  upstream.request({ method, params: { uri } }, noClient, timeoutSignal(requestMs))

/**
 * Makes subscriptions again on the connection that follows a broken one, and opens that connection while a subscriber
 * listens.
 * @param closing aborted when the gateway stops
 */
export function createResubscription(
  { runExclusive }: SubscriptionIndex,
  closing: AbortSignal,
  random: () => number,
  log: Log
) {
  /**
   * Asks a new connection for what the one before it had. Ends with the first request that the server does not answer,
   * which stands for the others: the next attempt asks for them. Never rejects.
   */
  async function renew(connection: SubscribedConnection, upstream: Upstream): Promise<void> {
    if (connection.current === upstream) return
    connection.current = upstream
    const { definition, uris, background } = connection
    let unanswered = false
    const again = (uri: string): Promise<void> =>
      runExclusive(connection, uri, async (subscription) => {
        if (unanswered || closing.aborted || connection.current !== upstream) return
        if (subscription.upstream === upstream || subscription.subscribers.size === 0) return
        await requestSubscription(upstream, 'resources/subscribe', uri).catch((error: unknown) => {
          unanswered ||= !(error instanceof RpcError)
          throw error
        })
        subscription.upstream = upstream
        if (subscription.established) tellUpdated(connection, { uri })
        subscription.established = true
      })
    try {
      await Promise.all([...uris.keys()].map((uri) => background(() => again(uri))))
      if (connection.current === upstream) connection.failures = 0
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

  /** Opens the connection for a subscriber that listens; the others get theirs with their next call. Never rejects. */
  async function reopen(connection: SubscribedConnection): Promise<void> {
    const subscriber = listenerOf(connection)
    if (closing.aborted || connection.retry.pending || subscriber === undefined) return
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
    if (closing.aborted || connection.retry.pending || listenerOf(connection) === undefined) return
    connection.retry.start(backoffMs(connection.failures++, { ...retryDelay, random }), () => {
      connection.current = undefined
      void reopen(connection)
    })
  }

  return { renew, reopen, retryLater }
}
