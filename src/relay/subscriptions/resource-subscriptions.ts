// Subscriptions to resources, for sessions and for listen streams. Subscribers on the same connection share its
// subscriptions: the first makes them, the last ends them. A connection that breaks is opened again while a
// subscriber listens, and then each resource counts as updated, since nobody knows what was missed. Does not decide
// who may subscribe to what.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { GatewayError, type Notification, type Result } from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { abortable, type Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { createKeepAlive } from '../connections/keep-alive.ts'
import { createResubscription, requestSubscription } from './resubscription.ts'
import {
  createSubscriptionIndex,
  listenerOf,
  type SubscribedConnection,
  type SubscribedScope,
  type Subscriber,
  type Subscription,
  tellUpdated
} from './subscription-index.ts'

export interface SubscriptionRequest {
  readonly subscriber: Subscriber
  /** Where the subscriber is served, opened by the caller. */
  readonly connection: SubscribedScope & { readonly upstream: Upstream }
  /** As the upstream knows it. */
  readonly uri: string
  /** Sends the subscriber's own request. Default: a request of the gateway's, a few of them at a time. */
  readonly send?: () => Promise<Result>
  /** Gives up the wait for earlier requests about the same URI. */
  readonly signal?: AbortSignal
}

export interface ResourceSubscriptions {
  /**
   * Sends nothing where the server has been asked for this resource already.
   * @param shown the URI as the subscriber wrote it
   * @throws GatewayError session_unknown where the subscriber is over, too_many, cancelled; whatever the upstream
   * answers
   */
  subscribe(request: SubscriptionRequest, shown: string): Promise<Result>
  /**
   * Idempotent, and without effect on other subscribers.
   * @throws GatewayError cancelled; whatever the upstream answers
   */
  unsubscribe(request: SubscriptionRequest): Promise<Result>
  /** Ends all subscriptions of a subscriber. */
  drop(subscriber: Subscriber): void
  /** What a connection says that is about no call; anything but `notifications/resources/updated` is ignored. */
  notification(definition: UpstreamDefinition, scope: string, notification: Notification): void
  /** The connection in use now: it is asked for what the one before it had. */
  opened(definition: UpstreamDefinition, scope: string, upstream: Upstream): void
  /** The connection broke. */
  lost(definition: UpstreamDefinition, scope: string): void
  /** The subscriber listens: its connections stay open, or are opened again. */
  touch(subscriber: Subscriber): void
  /** After a reload: moves the subscriptions of definitions that are gone to the connections that take over. */
  retain(hashes: ReadonlySet<string>): void
  close(): void
}

export interface ResourceSubscriptionsOptions {
  readonly pool: Pick<Pool, 'touch'>
  readonly clock: Clock
  /** Between 0 and 1. */
  readonly random?: () => number
  readonly log: Log
}

const maxPerSubscriber = 1_000

export function createResourceSubscriptions({
  pool,
  clock,
  random = Math.random,
  log
}: ResourceSubscriptionsOptions): ResourceSubscriptions {
  const index = createSubscriptionIndex()
  const keepAlive = createKeepAlive(clock, () => {
    const used = index.all().filter((connection) => listenerOf(connection) !== undefined)
    for (const { scope, definition } of used) pool.touch(scope, definition)
    return Math.min(...used.map(({ definition }) => definition.idleMs))
  })
  const closing = new AbortController()
  const { renew, reopen, retryLater } = createResubscription({ index, closing: closing.signal, clock, random, log })

  /** Ends a subscription without subscribers, unless one comes meanwhile. Never rejects. */
  const end = (connection: SubscribedConnection, uri: string): Promise<void> =>
    index.inTurn(connection, uri, async (subscription) => {
      const { upstream, subscribers } = subscription
      if (subscribers.size > 0 || upstream === undefined) return
      subscription.upstream = undefined
      // A connection of its own is closed with its subscriber.
      if (closing.signal.aborted || connection.exclusive) return
      await requestSubscription(upstream, 'resources/unsubscribe', uri).catch((err: unknown) =>
        log.debug(
          { err, upstream: upstream.name },
          'a subscription without subscribers could not be ended; its updates are dropped'
        )
      )
    })

  return {
    async subscribe({ subscriber, connection: { upstream, ...scope }, uri, send, signal }, shown) {
      const connection = index.at(scope)
      const run = async (subscription: Subscription): Promise<Result> => {
        if (subscriber.over) throw new GatewayError('session_unknown', 'The session of the client ended.')
        const again = subscription.subscribers.has(subscriber)
        if (!again && index.count(subscriber) >= maxPerSubscriber) throw tooMany()
        // Before the request: an update may overtake the answer.
        index.add(connection, uri, subscriber, shown)
        if (subscriber.listening) keepAlive.add(connection.definition.idleMs)
        if (!connection.exclusive && subscription.upstream === upstream) return {}
        try {
          const result = await (send === undefined ? requestSubscription(upstream, 'resources/subscribe', uri) : send())
          subscription.upstream = upstream
          subscription.established = true
          return result
        } catch (error) {
          if (!again) index.remove(connection, uri, subscriber)
          throw error
        }
      }
      const turn = (): Promise<Result> => index.inTurn(connection, uri, run, signal)
      return await (send === undefined ? connection.background(turn, signal) : turn())
    },

    async unsubscribe({ subscriber, connection: { upstream: _open, ...scope }, uri, send, signal }) {
      if (scope.exclusive && send !== undefined) {
        const own = index.at(scope)
        const run = async (subscription: Subscription): Promise<Result> => {
          const result = await send()
          subscription.upstream = undefined
          index.remove(own, uri, subscriber)
          return result
        }
        return await index.inTurn(own, uri, run, signal)
      }
      const connection = index.find(scope.definition, scope.scope)
      if (connection !== undefined && index.remove(connection, uri, subscriber)) {
        const ended = end(connection, uri)
        await (signal === undefined ? ended : abortable(ended, signal))
      }
      return {}
    },

    drop(subscriber) {
      for (const [connection, uris] of index.of(subscriber)) {
        for (const uri of [...uris]) {
          if (index.remove(connection, uri, subscriber)) void connection.background(() => end(connection, uri))
        }
      }
    },

    notification(definition, scope, { method, params }) {
      if (method !== 'notifications/resources/updated' || params === undefined) return
      const connection = index.find(definition, scope)
      if (connection !== undefined) tellUpdated(connection, params)
    },

    opened(definition, scope, upstream) {
      const connection = index.find(definition, scope)
      if (connection !== undefined) void renew(connection, upstream)
    },

    lost(definition, scope) {
      const connection = index.find(definition, scope)
      if (connection === undefined) return
      connection.current = undefined
      for (const subscription of connection.uris.values()) subscription.upstream = undefined
      retryLater(connection)
    },

    touch(subscriber) {
      for (const [connection] of index.of(subscriber)) void reopen(connection)
    },

    retain(hashes) {
      for (const connection of index.all()) {
        if (hashes.has(connection.definition.hash)) continue
        for (const { uri, subscriber, shown } of index.clear(connection)) {
          const scope = subscriber.successorOf(connection.definition)
          if (scope === undefined) continue
          const next = index.at(scope)
          // Nobody knows what happens until the new connection is there.
          index.add(next, uri, subscriber, shown).established = true
          next.current = undefined
          retryLater(next)
        }
      }
    },

    close() {
      closing.abort()
      keepAlive.close()
      for (const { retry } of index.all()) retry?.close()
    }
  }
}

const tooMany = (): GatewayError =>
  new GatewayError(
    'too_many',
    `This session has ${maxPerSubscriber} subscriptions, which is the limit. End some of them first.`
  )
