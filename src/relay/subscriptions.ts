// Who wants to hear of changes of which resource, and which connection was told so. Sessions that share a connection share its
// subscriptions: the first one makes them, the last one ends them. A connection that breaks is opened again for those who listen.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError, RpcError } from '../protocol/errors.ts'
import type { UpstreamName } from '../protocol/ids.ts'
import { has } from '../protocol/merge.ts'
import type { Notification, Request, Result } from '../protocol/messages.ts'
import type { Upstream } from '../protocol/seams.ts'
import type { LiveSession, LiveSessions } from '../session/live.ts'
import { nobody } from '../upstream/exchange.ts'
import type { Call, Place } from './call.ts'
import { createSubscribers } from './subscribers.ts'
import type { Source } from './subscribers.ts'
import { whileWanted } from './wanted.ts'

export interface Subscriptions {
  /**
   * `resources/subscribe` of `uri` as the upstream knows it, `shown` as the client does.
   * @throws GatewayError invalid_params where the upstream has no subscriptions, too_many; whatever the upstream answers
   */
  subscribe (call: Call, upstream: UpstreamName, uri: string, shown: string): Promise<Result>
  unsubscribe (call: Call, upstream: UpstreamName, uri: string): Promise<Result>
  /** `notifications/resources/updated` of a connection. */
  updated (definition: UpstreamDefinition, scope: string, notification: Notification): void
  /** The connection in use now: it is told what the one before it knew. */
  opened (definition: UpstreamDefinition, scope: string, upstream: Upstream): void
  /** The connection broke. */
  lost (definition: UpstreamDefinition, scope: string): void
  /** Does a session want to hear of it over this connection? */
  wants (definition: UpstreamDefinition, scope: string, uri: string): boolean
  /** The client listens: its connections stay, or are opened again. */
  touch (live: LiveSession): void
  /** The session ended. */
  drop (sessionKey: string): void
  /** After a reload: what another definition stands for now is subscribed there. */
  retain (hashes: ReadonlySet<string>): void
  close (): void
}

export interface SubscriptionsOptions {
  readonly live: LiveSessions
  readonly placeOf: (live: LiveSession) => Place | undefined
  readonly scopeOf: (definition: UpstreamDefinition, live: LiveSession) => string
  readonly definitionOf: (place: Place, upstream: UpstreamName) => UpstreamDefinition
  /** The connection that serves the session; calls `opened` when it is there. */
  readonly acquire: (definition: UpstreamDefinition, place: Place, live: LiveSession) => Promise<Upstream>
  /** The same for a call, no longer than it is wanted. */
  readonly connect: (call: Call, definition: UpstreamDefinition) => Promise<Upstream>
  readonly send: (call: Call, definition: UpstreamDefinition, upstream: Upstream, request: Request) => Promise<Result>
  /** To the session's own stream; `uri` as its client knows it, undefined: the notification's own, mapped. */
  readonly deliver: (live: LiveSession, definition: UpstreamDefinition, notification: Notification, uri: string | undefined) => void
  /** Does somebody who is no session, over the same connection? */
  readonly wantedElsewhere: (definition: UpstreamDefinition, scope: string, uri: string) => boolean
  readonly timer: (ms: number, run: () => void) => { close (): unknown, unref (): unknown }
  readonly log: Log
}

const maxPerSession = 1_000
const maxUriLength = 8_192
const firstRetryMs = 500
const longestRetryMs = 60_000
const silentMs = 30_000

export function createSubscriptions (options: SubscriptionsOptions): Subscriptions {
  const { live: sessions, placeOf, scopeOf, definitionOf, acquire, connect, send, deliver, wantedElsewhere, timer, log } = options
  const subscribers = createSubscribers()
  const { inTurn, join, leave } = subscribers
  let closed = false

  /** Where nobody wants it any more, the server is told, unless somebody has come meanwhile. Never rejects. */
  async function abandon (source: Source, uri: string): Promise<void> {
    await inTurn(source, uri, async (subscription) => {
      const { told } = subscription
      if (subscription.sessions.size > 0 || told === undefined) return
      subscription.told = undefined
      // A connection of its own ends with its session.
      if (source.definition.isolation === 'session' || wantedElsewhere(source.definition, source.scope, uri)) return
      await told.request({ method: 'resources/unsubscribe', params: { uri } }, nobody, AbortSignal.timeout(silentMs)).catch((err: unknown) =>
        log.debug({ err, upstream: source.definition.name }, 'a subscription that nobody wants could not be ended; its updates are dropped'))
    })
  }

  async function reach (call: Call, name: UpstreamName): Promise<{ definition: UpstreamDefinition, upstream: Upstream }> {
    const definition = definitionOf(call, name)
    const upstream = await connect(call, definition)
    if (!has(upstream.capabilities, ['resources', 'subscribe'])) {
      throw new GatewayError('invalid_params', `Upstream ${name} does not support subscriptions to its resources. Read them again when they are needed.`)
    }
    return { definition, upstream }
  }

  /** What this connection does not know yet is subscribed again. What changed in between nobody knows, so all of it counts as changed. */
  function renew (source: Source, upstream: Upstream): void {
    source.current = upstream
    for (const [uri, { told }] of source.uris) {
      if (told === upstream) continue
      inTurn(source, uri, async (subscription) => {
        if (subscription.told === upstream || subscription.sessions.size === 0) return
        await upstream.request({ method: 'resources/subscribe', params: { uri } }, nobody, AbortSignal.timeout(silentMs))
        subscription.told = upstream
        if (subscription.known) updated(source.definition, source.scope, { method: 'notifications/resources/updated', params: { uri } })
        subscription.known = true
      }).catch((err: unknown) => {
        // A refusal stands for this connection; what was not answered is tried with the next call.
        if (!(err instanceof RpcError) && source.current === upstream) source.current = undefined
        log.warn({ err, upstream: source.definition.name, tenant: source.definition.tenant }, 'a subscription could not be made again on the new connection')
      })
    }
  }

  const listener = (source: Source): LiveSession | undefined => {
    for (const { sessions: keys } of source.uris.values()) {
      for (const key of keys.keys()) {
        const session = sessions.get(key)
        if (session?.listening === true) return session
      }
    }
    return undefined
  }

  /** Only for somebody who listens; the others get their connection with their next call. */
  function reopen (source: Source): void {
    const session = listener(source)
    const place = session === undefined ? undefined : placeOf(session)
    if (closed || source.retry !== undefined || session === undefined || place === undefined) return
    acquire(source.definition, place, session).then(() => { source.failures = 0 }, (err: unknown) => {
      log.debug({ err, upstream: source.definition.name }, 'a connection with subscriptions could not be opened again yet')
      later(source)
    })
  }

  function later (source: Source): void {
    if (closed || source.retry !== undefined || source.uris.size === 0) return
    const retry = timer(Math.min(longestRetryMs, firstRetryMs * 2 ** Math.min(source.failures++, 10)), () => {
      source.retry = undefined
      reopen(source)
    })
    retry.unref()
    source.retry = retry
  }

  function updated (definition: UpstreamDefinition, scope: string, notification: Notification): void {
    const uri = notification.params?.['uri']
    const source = subscribers.find(definition, scope)
    if (source === undefined || typeof uri !== 'string') return
    // Once per session, under its own spelling where it subscribed to this very URI.
    const shown = new Map<string, string | undefined>()
    for (const [subscribed, subscription] of source.uris) {
      if (!covers(subscribed, uri)) continue
      for (const [key, own] of subscription.sessions) if (subscribed === uri || !shown.has(key)) shown.set(key, subscribed === uri ? own : undefined)
    }
    for (const [key, own] of shown) {
      const session = sessions.get(key)
      if (session !== undefined) deliver(session, definition, notification, own)
    }
  }

  return {
    async subscribe (call, name, uri, shown) {
      if (uri.length > maxUriLength) throw new GatewayError('invalid_params', `The URI is longer than ${maxUriLength} characters.`)
      const { definition, upstream } = await reach(call, name)
      const { key } = call.live
      const source = subscribers.source(definition, scopeOf(definition, call.live))
      return await inTurn(source, uri, async (subscription) => {
        if (sessions.get(key) === undefined) throw new GatewayError('session_unknown', 'The session of the client ended.')
        const again = subscription.sessions.has(key)
        if (!again && subscribers.count(key) >= maxPerSession) throw new GatewayError('too_many', `This session has ${maxPerSession} subscriptions, which is the limit. End some of them first.`)
        // Before the request: an update may overtake the answer.
        join(source, uri, key, shown)
        if (definition.isolation !== 'session' && subscription.told === upstream) return {}
        try {
          const result = await send(call, definition, upstream, { method: call.request.method, params: { ...call.request.params, uri } })
          subscription.told = upstream
          subscription.known = true
          return result
        } catch (error) {
          if (!again) leave(source, uri, key)
          throw error
        }
      }, call.signal)
    },

    async unsubscribe (call, name, uri) {
      const { definition, upstream } = await reach(call, name)
      const scope = scopeOf(definition, call.live)
      if (definition.isolation !== 'session') {
        // What others share with it goes on; what it never had, it has not now.
        const shared = subscribers.find(definition, scope)
        // It goes on without its caller: whoever has left has left.
        if (shared !== undefined && leave(shared, uri, call.live.key)) await whileWanted(abandon(shared, uri), call.signal)
        return {}
      }
      const source = subscribers.source(definition, scope)
      return await inTurn(source, uri, async (subscription) => {
        const result = await send(call, definition, upstream, { method: call.request.method, params: { ...call.request.params, uri } })
        subscription.told = undefined
        leave(source, uri, call.live.key)
        return result
      }, call.signal)
    },

    updated,

    wants: (definition, scope, uri) => (subscribers.find(definition, scope)?.uris.get(uri)?.sessions.size ?? 0) > 0,

    opened (definition, scope, upstream) {
      const source = subscribers.find(definition, scope)
      if (source !== undefined && source.current !== upstream) renew(source, upstream)
    },

    lost (definition, scope) {
      const source = subscribers.find(definition, scope)
      if (source !== undefined && listener(source) !== undefined) later(source)
    },

    touch (live) {
      for (const [source] of subscribers.of(live.key)) reopen(source)
    },

    drop (sessionKey) {
      for (const [source, uris] of subscribers.of(sessionKey)) {
        for (const uri of [...uris]) if (leave(source, uri, sessionKey)) void source.farewells(() => abandon(source, uri))
      }
    },

    retain (hashes) {
      for (const source of subscribers.all()) {
        if (hashes.has(source.definition.hash)) continue
        for (const { uri, sessionKey, shown } of subscribers.remove(source)) {
          const live = sessions.get(sessionKey)
          const place = live === undefined ? undefined : placeOf(live)
          const definition = place?.tenant.upstreams.get(source.definition.name)
          if (live === undefined || definition === undefined || place?.endpoint.members.some(({ upstream }) => upstream === definition.name) !== true) continue
          const next = subscribers.source(definition, scopeOf(definition, live))
          // Of what happens until the new connection is there, nobody will know.
          join(next, uri, sessionKey, shown).known = true
          next.current = undefined
          later(next)
        }
      }
    },

    close () {
      closed = true
      for (const source of subscribers.all()) source.retry?.close()
    }
  }
}

/** 2025-11-25 server/resources: the URI of an update "might be a sub-resource of the one that the client actually subscribed to". */
export function covers (subscribed: string, updated: string): boolean {
  if (!updated.startsWith(subscribed)) return false
  return updated.length === subscribed.length || /[/?#]$/.test(subscribed) || /^[/?#]/.test(updated.slice(subscribed.length))
}
