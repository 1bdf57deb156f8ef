// Resources of older upstreams on the listen streams of 2026-07-28: `resources/subscribe` on a connection, for as long as somebody listens
// to the resource over it. A connection that breaks is opened again; then each resource counts as changed.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import { has } from '../../protocol/merge.ts'
import type { JsonObject, Notification } from '../../protocol/messages.ts'
import type { Upstream } from '../../protocol/seams.ts'
import { nobody } from '../../upstream/exchange.ts'
import { createTurnstile } from '../../upstream/turnstile.ts'
import type { PaceClock } from '../pace.ts'
import { covers } from '../subscriptions.ts'
import type { Connection } from './connections.ts'
import { createKeepOpen } from './keep-open.ts'
import type { Leg } from './listen-leg.ts'

export interface OldLegOptions {
  readonly definition: UpstreamDefinition
  /** As the upstream knows them. */
  readonly uris: readonly string[]
  /** The connection to listen on. */
  readonly watch: () => Promise<Connection>
  /** `params` of `notifications/resources/updated`. */
  readonly onUpdated: (params: JsonObject) => void
  /** What was not agreed to by then is not promised; milliseconds. */
  readonly patienceMs: number
}

export interface OldSubscriptions {
  open (options: OldLegOptions): Leg
  /** What a connection said that is about no call. */
  notification (definition: UpstreamDefinition, scope: string, notification: Notification): void
  /** The connection broke. */
  lost (definition: UpstreamDefinition, scope: string): void
  /** Does somebody listen to the resource over this connection? */
  wants (definition: UpstreamDefinition, scope: string, uri: string): boolean
  close (): void
}

export interface OldSubscriptionsOptions {
  /** Somebody listens: the connection is not idle. */
  readonly touch: (scope: string, definition: UpstreamDefinition) => void
  /** Does anybody else, over the same connection? */
  readonly wantedElsewhere: (definition: UpstreamDefinition, scope: string, uri: string) => boolean
  readonly clock: PaceClock
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: Log
}

interface Listener extends OldLegOptions {
  over: boolean
}

/** One connection and those after it. */
interface Source {
  readonly definition: UpstreamDefinition
  readonly scope: string
  readonly uris: Map<string, Subscription>
  /** What one server is slow to answer keeps nobody else waiting. */
  readonly throng: ReturnType<typeof createTurnstile>
  failures: number
  retry: { close (): unknown } | undefined
}

interface Subscription {
  readonly listeners: Set<Listener>
  /** The connection whose server knows of it. */
  told: Upstream | undefined
  /** Requests about one URI follow each other, else a late "unsubscribe" could undo a newer "subscribe". */
  readonly turn: ReturnType<typeof createTurnstile>
}

const atOnce = 8
const silentMs = 30_000
const firstRetryMs = 500
const longestRetryMs = 60_000

export function createOldSubscriptions ({ touch, wantedElsewhere, clock, random, log }: OldSubscriptionsOptions): OldSubscriptions {
  const sources = new Map<string, Source>()
  const inUse = createKeepOpen(() => sources.values(), touch, clock)
  let closed = false

  const keyOf = (definition: UpstreamDefinition, scope: string): string => `${definition.hash}\n${scope}`

  function subscriptionOf (definition: UpstreamDefinition, scope: string, uri: string): { source: Source, subscription: Subscription } {
    const key = keyOf(definition, scope)
    let source = sources.get(key)
    if (source === undefined) sources.set(key, source = { definition, scope, uris: new Map(), throng: createTurnstile(atOnce), failures: 0, retry: undefined })
    let subscription = source.uris.get(uri)
    if (subscription === undefined) source.uris.set(uri, subscription = { listeners: new Set(), told: undefined, turn: createTurnstile(1) })
    inUse.begin()
    return { source, subscription }
  }

  const tell = (upstream: Upstream, method: string, uri: string): Promise<unknown> =>
    upstream.request({ method, params: { uri } }, nobody, AbortSignal.timeout(silentMs))

  /** The server knows of it, when this resolves. @returns whether it is news to it @throws what the server or the connection says against it */
  async function subscribe ({ throng }: Source, subscription: Subscription, upstream: Upstream, uri: string): Promise<boolean> {
    return await subscription.turn(() => throng(async () => {
      // Looked at when it is its turn: whoever wanted it may have left meanwhile.
      if (subscription.told === upstream || subscription.listeners.size === 0) return false
      await tell(upstream, 'resources/subscribe', uri)
      subscription.told = upstream
      return true
    }))
  }

  function leave (source: Source, uri: string, listener: Listener): void {
    const subscription = source.uris.get(uri)
    if (subscription === undefined || !subscription.listeners.delete(listener) || subscription.listeners.size > 0) return
    void subscription.turn(async () => {
      const { told } = subscription
      if (subscription.listeners.size > 0) return
      subscription.told = undefined
      if (told !== undefined && !closed && !wantedElsewhere(source.definition, source.scope, uri)) {
        await source.throng(() => tell(told, 'resources/unsubscribe', uri)).catch((err: unknown) =>
          log.debug({ err, upstream: source.definition.name }, 'a subscription that nobody wants could not be ended; its updates are dropped'))
      }
      if (subscription.listeners.size > 0 || source.uris.get(uri) !== subscription) return
      source.uris.delete(uri)
      if (source.uris.size === 0) drop(source)
    })
  }

  function drop (source: Source): void {
    source.retry?.close()
    const key = keyOf(source.definition, source.scope)
    if (sources.get(key) === source) sources.delete(key)
  }

  /** What was promised is made true again, for as long as it takes. */
  function renew (source: Source): void {
    if (closed || source.retry !== undefined) return
    const delay = Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(source.failures++, 10))
    // All connections to an upstream break at the same moment, and must not come back at the same moment.
    const timer = clock.timer(Math.round(delay * (1 + random() * 0.5)), () => {
      source.retry = undefined
      void reopen(source)
    })
    timer.unref()
    source.retry = timer
  }

  async function reopen (source: Source): Promise<void> {
    const [listener] = [...source.uris.values()].flatMap(({ listeners }) => [...listeners])
    if (closed || listener === undefined) return
    try {
      const { upstream, release } = await listener.watch()
      // Its listeners have places of their own, from before it broke.
      release()
      await Promise.all([...source.uris].map(async ([uri, subscription]) => {
        if (!await subscribe(source, subscription, upstream, uri)) return
        // What changed in between nobody knows.
        for (const { over, onUpdated } of subscription.listeners) if (!over) onUpdated({ uri })
      }))
      source.failures = 0
    } catch (err) {
      log.debug({ err, upstream: source.definition.name, tenant: source.definition.tenant }, 'a connection with subscriptions could not be made whole again yet')
      renew(source)
    }
  }

  return {
    open (options) {
      const listener: Listener = { ...options, over: false }
      const { definition, uris } = options
      const begun = Promise.withResolvers<void>()
      const granted: string[] = []
      const joined = new Map<string, Source>()
      let settled = false
      let lease: Connection | undefined
      const patience = clock.timer(options.patienceMs, begin)

      /** What is agreed to from now on comes too late. */
      function begin (): void {
        settled = true
        patience.close()
        begun.resolve()
        for (const [uri, source] of joined) if (!granted.includes(uri)) leave(source, uri, listener)
      }

      async function connect (): Promise<void> {
        lease = await options.watch()
        if (listener.over) return lease.release()
        const { era, capabilities } = lease.upstream
        // Whoever became modern meanwhile has listen streams, which the next one of this client will use.
        if (era !== 'legacy' || !has(capabilities, ['resources', 'subscribe'])) return
        const { scope, upstream } = lease
        await Promise.all(uris.map((uri) => join(uri, scope, upstream)))
      }

      async function join (uri: string, scope: string, upstream: Upstream): Promise<void> {
        if (listener.over || settled) return
        const { source, subscription } = subscriptionOf(definition, scope, uri)
        // Before the request: an update may overtake the answer.
        subscription.listeners.add(listener)
        joined.set(uri, source)
        try {
          await subscribe(source, subscription, upstream, uri)
          if (!settled && !listener.over) granted.push(uri)
        } catch (err) {
          leave(source, uri, listener)
          log.debug({ err, upstream: definition.name, tenant: definition.tenant }, 'an upstream refused a subscription; its client is not promised any')
        }
      }

      connect().catch((err: unknown) => log.info({ err, upstream: definition.name, tenant: definition.tenant }, 'an upstream could not be listened to')).finally(begin)

      return {
        definition,
        begun: begun.promise,
        granted: { uris: granted, taskIds: [] },
        end () {
          listener.over = true
          begin()
          for (const [uri, source] of joined) leave(source, uri, listener)
          lease?.release()
        }
      }
    },

    notification (definition, scope, { method, params }) {
      const source = method === 'notifications/resources/updated' ? sources.get(keyOf(definition, scope)) : undefined
      const uri = params?.['uri']
      if (source === undefined || params === undefined || typeof uri !== 'string') return
      const concerned = new Set([...source.uris].filter(([subscribed]) => covers(subscribed, uri)).flatMap(([, { listeners }]) => [...listeners]))
      for (const { over, onUpdated } of concerned) if (!over) onUpdated(params)
    },

    lost (definition, scope) {
      const source = sources.get(keyOf(definition, scope))
      if (source === undefined) return
      for (const subscription of source.uris.values()) subscription.told = undefined
      renew(source)
    },

    wants: (definition, scope, uri) => (sources.get(keyOf(definition, scope))?.uris.get(uri)?.listeners.size ?? 0) > 0,

    close () {
      closed = true
      inUse.close()
      for (const source of sources.values()) source.retry?.close()
    }
  }
}
