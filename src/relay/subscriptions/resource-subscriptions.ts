// Subscriptions to resources, for sessions and for listen streams. Subscribers on the same connection share its
// subscriptions: the first makes them, the last ends them. A connection that breaks is opened again while a
// subscriber listens, and then each resource counts as updated, since nobody knows what was missed. Does not decide
// who may subscribe to what.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { Notification, Result } from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { endedSession } from '../../session/session-end.ts'
import { abortable, type Clock } from '../../time/clock.ts'
import type { Pool } from '../../upstream/pool/pool.ts'
import { createKeepAlive } from '../connections/keep-alive.ts'
import { createResubscription, requestSubscription } from './resubscription.ts'
import {
  createSubscriptionIndex,
  listenerOf,
  subscribersOf,
  type SubscribedConnection,
  type SubscribedScope,
  type Subscriber,
  type Subscription,
  type SubscriptionIndex
} from './subscription-index.ts'
import { tellUpdated } from './updates.ts'

export interface SubscriptionRequest {
  readonly subscriber: Subscriber
  /** The connection that serves the subscriber, opened by the caller. */
  readonly connection: SubscribedScope & { readonly upstream: Upstream }
  /** The URI as the upstream knows it. */
  readonly uri: string
  /** Sends the subscriber's own request. Default: a request of the gateway's, a few of them at a time. */
  readonly send?: () => Promise<Result>
  /** Gives up the wait for earlier requests about the same URI. */
  readonly signal?: AbortSignal
}

export type ResourceSubscriptions = ReturnType<typeof createResourceSubscriptions>

/** @param random between 0 and 1 */
export function createResourceSubscriptions(pool: Pick<Pool, 'touch'>, clock: Clock, log: Log, random = Math.random) {
  const index = createSubscriptionIndex(clock)
  const closing = new AbortController()
  const { renew, reopen, retryLater } = createResubscription(index, closing.signal, random, log)
  const keepAlive = createKeepAlive(clock, () => {
    const used = index.all().filter((connection) => listenerOf(connection) !== undefined)
    for (const { scope, definition } of used) pool.touch(scope, definition)
    return Math.min(...used.map(({ definition }) => definition.idleMs))
  })

  const end = (connection: SubscribedConnection, uri: string): Promise<void> =>
    endUnused(index, connection, uri, closing.signal, log)

  /** Adds a subscriber. @throws GatewayError session_unknown, too_many */
  function add(connection: SubscribedConnection, uri: string, subscriber: Subscriber, shown: string): void {
    if (subscriber.over) throw endedSession()
    const again = connection.uris.get(uri)?.subscribers.has(subscriber) === true
    if (!again) index.checkRoom(subscriber, uri, shown)
    index.add(connection, uri, subscriber, shown)
    if (subscriber.listening) keepAlive.add(connection.definition.idleMs)
  }

  return {
    /**
     * Subscribes where nothing has to be sent and nothing waited for: the server has been asked for this resource.
     * @returns false where it has not
     * @throws GatewayError session_unknown where the subscriber is over, too_many
     */
    join({ subscriber, connection: scope, uri }: SubscriptionRequest, shown: string): boolean {
      const connection = index.find(scope)
      const known = connection?.uris.get(uri)
      const isAsked = known?.pending === 0 && known.upstream === scope.upstream && !scope.exclusive
      if (connection === undefined || !isAsked) return false
      add(connection, uri, subscriber, shown)
      return true
    },

    /**
     * Sends nothing where the server has been asked for this resource already.
     * @param shown the URI as the subscriber wrote it
     * @throws GatewayError session_unknown where the subscriber is over, too_many, cancelled; whatever the upstream
     * answers
     */
    async subscribe(
      { subscriber, connection: { upstream, ...scope }, uri, send, signal }: SubscriptionRequest,
      shown: string
    ): Promise<Result> {
      const connection = index.at(scope)
      const run = async (subscription: Subscription): Promise<Result> => {
        const again = subscription.subscribers.has(subscriber)
        // Before the request: an update may overtake the answer.
        add(connection, uri, subscriber, shown)
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
      const exclusive = (): Promise<Result> => index.runExclusive(connection, uri, run, signal)
      return send === undefined ? connection.background(exclusive, signal) : exclusive()
    },

    /**
     * Idempotent, and without effect on other subscribers.
     * @throws GatewayError cancelled; whatever the upstream answers
     */
    async unsubscribe({ subscriber, connection: scope, uri, send, signal }: SubscriptionRequest): Promise<Result> {
      if (scope.exclusive && send !== undefined) {
        const own = index.at(scope)
        const run = async (subscription: Subscription): Promise<Result> => {
          const result = await send()
          subscription.upstream = undefined
          index.remove(own, uri, subscriber)
          return result
        }
        return await index.runExclusive(own, uri, run, signal)
      }
      const connection = index.find(scope)
      if (connection !== undefined && index.remove(connection, uri, subscriber)) {
        const ended = end(connection, uri)
        await (signal === undefined ? ended : abortable(ended, signal))
      }
      return {}
    },

    /** Ends all subscriptions of a subscriber. */
    drop(subscriber: Subscriber) {
      for (const [connection, uris] of index.of(subscriber)) {
        for (const uri of [...uris]) {
          if (!index.remove(connection, uri, subscriber)) continue
          // Where others are subscribed there is nothing to end: many streams may have the same resources.
          if (connection.uris.get(uri)?.subscribers.size === 0) void connection.background(() => end(connection, uri))
        }
      }
    },

    /**
     * What a connection says that is about no call; anything but `notifications/resources/updated` is ignored.
     * @returns is anybody known to have subscribed to it?
     */
    notification(definition: UpstreamDefinition, scope: string, { method, params }: Notification): boolean {
      if (method !== 'notifications/resources/updated' || params === undefined) return false
      const connection = index.find({ definition, scope })
      if (connection === undefined || subscribersOf(connection, String(params['uri'])).size === 0) return false
      tellUpdated(connection, params)
      return true
    },

    /** The connection in use now: it is asked for what the one before it had. */
    opened(open: Pick<SubscribedScope, 'definition' | 'scope'> & { readonly upstream: Upstream }) {
      const connection = index.find(open)
      if (connection !== undefined) void renew(connection, open.upstream)
    },

    /** The connection broke. */
    lost(definition: UpstreamDefinition, scope: string) {
      const connection = index.find({ definition, scope })
      if (connection === undefined) return
      connection.current = undefined
      for (const subscription of connection.uris.values()) subscription.upstream = undefined
      retryLater(connection)
    },

    /** The subscriber listens: its connections stay open, or are opened again. */
    touch(subscriber: Subscriber) {
      for (const [connection] of index.of(subscriber)) void reopen(connection)
    },

    /**
     * Moves the subscriptions of removed definitions to the connections that take over; to be called after a reload.
     */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>) {
      for (const moved of moveRemoved(index, hashes)) retryLater(moved)
    },

    close() {
      closing.abort()
      keepAlive.close()
      for (const { retry } of index.all()) retry.close()
    }
  }
}

/** Ends a subscription without subscribers, unless one comes meanwhile. Never rejects. */
const endUnused = (
  index: SubscriptionIndex,
  connection: SubscribedConnection,
  uri: string,
  closing: AbortSignal,
  log: Log
): Promise<void> =>
  index.runExclusive(connection, uri, async (subscription) => {
    const { upstream, subscribers } = subscription
    if (subscribers.size > 0 || upstream === undefined) return
    subscription.upstream = undefined
    // A connection of its own is closed with its subscriber.
    if (closing.aborted || connection.exclusive) return
    await requestSubscription(upstream, 'resources/unsubscribe', uri).catch((err: unknown) =>
      log.debug(
        { err, upstream: upstream.name },
        'a subscription without subscribers could not be ended; its updates are dropped'
      )
    )
  })

/** Moves the subscriptions of removed definitions. @returns the connections that take over */
function moveRemoved(index: SubscriptionIndex, hashes: Pick<ReadonlySet<string>, 'has'>): Set<SubscribedConnection> {
  const moved = new Set<SubscribedConnection>()
  for (const connection of index.all()) {
    if (hashes.has(connection.definition.hash)) continue
    for (const { uri, subscriber, shown } of index.clear(connection)) {
      const scope = subscriber.successorOf(connection.definition)
      if (scope === undefined) continue
      const next = index.at(scope)
      // Nobody knows what happens until the new connection is there.
      index.add(next, uri, subscriber, shown).established = true
      next.current = undefined
      moved.add(next)
    }
  }
  return moved
}
