// Which resources each upstream connection is subscribed to, and for which subscribers. Sends nothing.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import { createSemaphore, type Semaphore } from '../../limits/limits.ts'
import type { HeldMemory } from '../../limits/memory.ts'
import { GatewayError, type JsonObject } from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { createDelay, type Clock } from '../../time/clock.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'

/** A session or a listen stream. */
export interface Subscriber {
  /** Gone: it is not subscribed any more. */
  readonly over: boolean
  /** The memory that its subscriptions are counted to. A listen stream's are part of its request. */
  readonly memory?: HeldMemory
  /** Whose they are: all subscriptions of a person, and of a tenant, count together, too. */
  readonly person: string
  readonly tenant: string
  /** Has a stream open, so that a connection that broke is opened again for it at once. */
  readonly listening: boolean
  /**
   * `params` of `notifications/resources/updated`, at most once for each of them.
   * @param shown the URI as the subscriber wrote it; undefined: it subscribed to a resource that contains this one
   */
  updated(definition: UpstreamDefinition, params: JsonObject, shown: string | undefined): void
  /** Opens the connection again. @throws GatewayError upstream_unavailable, too_many */
  connect(definition: UpstreamDefinition): Promise<Upstream>
  /** Returns the connection that takes over from one to this definition after a reload; undefined where none does. */
  successorOf(definition: UpstreamDefinition): SubscribedScope | undefined
}

/** The connections of a scope, one after the other. */
export interface SubscribedScope {
  readonly definition: UpstreamDefinition
  readonly scope: string
  /**
   * The connection is one session's own: its requests are passed on as they are, and at its end the connection is
   * closed.
   */
  readonly exclusive: boolean
}

export interface Subscription {
  /** The subscribers, with the URI as each of them wrote it. */
  readonly subscribers: Map<Subscriber, string>
  /** The connection on which the server was asked for updates. */
  upstream: Upstream | undefined
  /** A connection had it before, so that updates may have been missed since. */
  established: boolean
  /** Requests about one URI follow each other: a late "unsubscribe" must not undo a newer "subscribe". */
  readonly mutex: Semaphore
  /** Requests that run or wait for the mutex. */
  pending: number
}

export interface SubscribedConnection extends SubscribedScope {
  readonly uris: Map<string, Subscription>
  /** The connection that was asked for all of them. */
  current: Upstream | undefined
  failures: number
  readonly retry: ReturnType<typeof createDelay>
  /** Limits requests that no caller waits for. */
  readonly background: Semaphore
}

export type SubscriptionIndex = ReturnType<typeof createSubscriptionIndex>

const maxPerSubscriber = 1_000
/** Over all sessions and listen streams of a person, and of a tenant, at this process. */
const maxPerPerson = 10_000
const maxPerTenant = 100_000
/** Of a connection, at once. */
export const maxBackgroundRequests = 8

/** The bytes of a subscription beside its URIs: its entries here and at the connection. */
const subscriptionOverheadBytes = 2_048

/** Two spellings of the URI, of up to two bytes a character. */
const subscriptionBytes = (uri: string, shown: string): number =>
  subscriptionOverheadBytes + 2 * (uri.length + shown.length)

/** @param owner a caller of a tenant, as of its memory */
export const personOf = ({ tenant, caller }: WorkOwner): string => JSON.stringify([tenant, caller])

export function createSubscriptionIndex(clock: Clock) {
  const connections = new Map<string, SubscribedConnection>()
  const bySubscriber = new Map<Subscriber, Map<SubscribedConnection, Set<string>>>()
  /** How many there are of a person, and of a tenant, whose id is no JSON of two texts. */
  const counts = new Map<string, number>()

  function count({ person, tenant }: Subscriber, more: number): void {
    for (const key of [person, tenant]) {
      const now = (counts.get(key) ?? 0) + more
      if (now > 0) counts.set(key, now)
      else counts.delete(key)
    }
  }

  const keyOf = ({ definition, scope }: Pick<SubscribedScope, 'definition' | 'scope'>): string =>
    `${definition.hash}\n${scope}`

  function subscriptionOf({ uris }: SubscribedConnection, uri: string): Subscription {
    const found = uris.get(uri) ?? {
      subscribers: new Map(),
      upstream: undefined,
      established: false,
      mutex: createSemaphore(1),
      pending: 0
    }
    uris.set(uri, found)
    return found
  }

  function forget(connection: SubscribedConnection): void {
    connection.retry.close()
    const key = keyOf(connection)
    if (connections.get(key) === connection) connections.delete(key)
  }

  /** `runExclusive` has to follow: it forgets a subscription without subscribers. @returns whether it was there */
  function remove(connection: SubscribedConnection, uri: string, subscriber: Subscriber): boolean {
    const shown = connection.uris.get(uri)?.subscribers.get(subscriber)
    if (shown === undefined) return false
    connection.uris.get(uri)?.subscribers.delete(subscriber)
    const { memory } = subscriber
    memory?.set(memory.bytes - subscriptionBytes(uri, shown))
    count(subscriber, -1)
    const own = bySubscriber.get(subscriber)
    const uris = own?.get(connection)
    uris?.delete(uri)
    if (uris?.size === 0) own?.delete(connection)
    if (own?.size === 0) bySubscriber.delete(subscriber)
    return true
  }

  return {
    /** Made where there is none; forgotten with its last subscription. */
    at({ definition, scope, exclusive }: SubscribedScope): SubscribedConnection {
      const key = keyOf({ definition, scope })
      const found = connections.get(key) ?? {
        definition,
        scope,
        exclusive,
        uris: new Map(),
        current: undefined,
        failures: 0,
        retry: createDelay(clock),
        background: createSemaphore(maxBackgroundRequests)
      }
      connections.set(key, found)
      return found
    },
    // Every call looks here, and most gateways have no subscriptions: no key is built for them.
    find: (place: Pick<SubscribedScope, 'definition' | 'scope'>) =>
      connections.size === 0 ? undefined : connections.get(keyOf(place)),
    all: () => [...connections.values()],
    /** URIs of a subscriber by connection. */
    of: (subscriber: Subscriber) => [...(bySubscriber.get(subscriber) ?? [])],
    /** Checks that one more may be added. @throws GatewayError too_many */
    checkRoom(subscriber: Subscriber, uri: string, shown: string): void {
      const own = [...(bySubscriber.get(subscriber)?.values() ?? [])].reduce((sum, uris) => sum + uris.size, 0)
      if (own >= maxPerSubscriber) throw tooMany('This session has', maxPerSubscriber)
      if ((counts.get(subscriber.person) ?? 0) >= maxPerPerson)
        throw tooMany('All sessions of this caller together have', maxPerPerson)
      if ((counts.get(subscriber.tenant) ?? 0) >= maxPerTenant)
        throw tooMany('All sessions of the tenant of this caller together have', maxPerTenant)
      const bytes = subscriptionBytes(uri, shown)
      const share = subscriber.memory?.share
      if (share?.has(bytes) === false) throw share.refusal(bytes, 'The subscription')
    },
    add(connection: SubscribedConnection, uri: string, subscriber: Subscriber, shown: string): Subscription {
      const subscription = subscriptionOf(connection, uri)
      const before = subscription.subscribers.get(subscriber)
      const { memory } = subscriber
      const added = subscriptionBytes(uri, shown) - (before === undefined ? 0 : subscriptionBytes(uri, before))
      memory?.set(memory.bytes + added)
      if (before === undefined) count(subscriber, 1)
      subscription.subscribers.set(subscriber, shown)
      const own = bySubscriber.get(subscriber) ?? new Map<SubscribedConnection, Set<string>>()
      bySubscriber.set(subscriber, own.set(connection, (own.get(connection) ?? new Set()).add(uri)))
      return subscription
    },
    remove,
    /** Removes a connection and all of its subscribers. @returns what each of them had */
    clear(connection: SubscribedConnection) {
      forget(connection)
      return [...connection.uris].flatMap(([uri, { subscribers }]) =>
        [...subscribers].map(([subscriber, shown]) => {
          remove(connection, uri, subscriber)
          return { uri, subscriber, shown }
        })
      )
    },
    /**
     * Runs after all requests about this URI that came before.
     * @param signal gives up the wait for the mutex; then `run` does not run
     * @throws GatewayError cancelled; whatever `run` throws
     */
    async runExclusive<T>(
      connection: SubscribedConnection,
      uri: string,
      run: (subscription: Subscription) => Promise<T>,
      signal?: AbortSignal
    ): Promise<T> {
      const subscription = subscriptionOf(connection, uri)
      subscription.pending++
      try {
        return await subscription.mutex(() => run(subscription), signal)
      } finally {
        if (--subscription.pending === 0 && subscription.subscribers.size === 0) connection.uris.delete(uri)
        if (connection.uris.size === 0) forget(connection)
      }
    }
  }
}

const tooMany = (who: string, limit: number): GatewayError =>
  new GatewayError('too_many', `${who} ${limit} subscriptions, which is the limit. End some of them first.`)

/** A subscriber for which the connection is opened again when it breaks. */
export function listenerOf({ uris }: SubscribedConnection): Subscriber | undefined {
  for (const { subscribers } of uris.values()) {
    for (const subscriber of subscribers.keys()) if (subscriber.listening) return subscriber
  }
  return undefined
}

/** Returns who subscribed to the resource, or to one that contains it, and as what it is shown to them. */
export function subscribersOf({ uris }: SubscribedConnection, uri: string): Map<Subscriber, string | undefined> {
  const found = new Map<Subscriber, string | undefined>()
  for (const [subscribed, { subscribers }] of uris) {
    if (!coversUri(subscribed, uri)) continue
    for (const [subscriber, shown] of subscribers) {
      if (subscribed === uri) found.set(subscriber, shown)
      else if (!found.has(subscriber)) found.set(subscriber, undefined)
    }
  }
  return found
}

/**
 * 2025-11-25 server/resources: the URI of an update "might be a sub-resource of the one that the client actually
 * subscribed to".
 */
export function coversUri(subscribed: string, updated: string): boolean {
  if (!updated.startsWith(subscribed)) return false
  const rest = updated.slice(subscribed.length)
  return rest === '' || /[/?#]$/.test(subscribed) || /^[/?#]/.test(rest)
}
