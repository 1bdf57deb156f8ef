// The books of the subscriptions: which connection has which URIs, for which sessions. Sends nothing.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Upstream } from '../protocol/seams.ts'
import { createTurnstile } from '../upstream/turnstile.ts'
import type { Turnstile } from '../upstream/turnstile.ts'
import { whileWanted } from './wanted.ts'

export interface Subscription {
  /** Session -> the URI as its client wrote it. */
  readonly sessions: Map<string, string>
  /** The connection whose server knows of it. */
  told: Upstream | undefined
  /** Some connection knew of it, so updates may have been missed since. */
  known: boolean
  /** Requests about one URI follow each other, else a late "unsubscribe" could undo a newer "subscribe". */
  busy: boolean
  /** Those who wait for their turn, in order. */
  readonly waiting: Set<() => void>
}

/** Of what the end of a session leaves to be said to one server: so much at a time. */
const maxFarewells = 8

/** What one connection, and those after it, are subscribed to. */
export interface Source {
  readonly definition: UpstreamDefinition
  readonly scope: string
  readonly uris: Map<string, Subscription>
  /** The connection that was told all of them. */
  current: Upstream | undefined
  failures: number
  retry: { close (): unknown } | undefined
  /** For what a server is told only because a session ended. */
  readonly farewells: Turnstile
}

export interface Subscribers {
  /** Made where there is none; forgotten with its last subscription. */
  source (definition: UpstreamDefinition, scope: string): Source
  find (definition: UpstreamDefinition, scope: string): Source | undefined
  all (): Iterable<Source>
  /** URIs of a session by source. */
  of (sessionKey: string): Iterable<readonly [Source, ReadonlySet<string>]>
  count (sessionKey: string): number
  join (source: Source, uri: string, sessionKey: string, shown: string): Subscription
  /** To be followed by a turn, which forgets what is not needed any more. @returns whether the session had it */
  leave (source: Source, uri: string, sessionKey: string): boolean
  /** Takes it out of the books. @returns who had what */
  remove (source: Source): Array<{ readonly uri: string, readonly sessionKey: string, readonly shown: string }>
  /**
   * Runs after all that was begun about this URI; the subscription stays at least as long.
   * @param signal of the call that waits: one that is over gives up its place, and its run is left out
   * @throws GatewayError cancelled; whatever `run` throws
   */
  inTurn<T> (source: Source, uri: string, run: (subscription: Subscription) => Promise<T>, signal?: AbortSignal): Promise<T>
}

export function createSubscribers (): Subscribers {
  const sources = new Map<string, Source>()
  const bySession = new Map<string, Map<Source, Set<string>>>()

  const keyOf = (definition: UpstreamDefinition, scope: string): string => `${definition.hash}\n${scope}`

  function subscription (source: Source, uri: string): Subscription {
    let found = source.uris.get(uri)
    if (found === undefined) source.uris.set(uri, found = { sessions: new Map(), told: undefined, known: false, busy: false, waiting: new Set() })
    return found
  }

  function forgetUnused (source: Source, uri: string): void {
    const found = source.uris.get(uri)
    if (found?.sessions.size === 0 && !found.busy) source.uris.delete(uri)
    if (source.uris.size > 0) return
    source.retry?.close()
    const key = keyOf(source.definition, source.scope)
    if (sources.get(key) === source) sources.delete(key)
  }

  /** Its place goes to the first of those who wait, directly: nobody who comes now gets it before them. */
  function handOn (source: Source, uri: string, current: Subscription): void {
    const [next] = current.waiting
    if (next === undefined) current.busy = false
    else {
      current.waiting.delete(next)
      next()
    }
    forgetUnused(source, uri)
  }

  async function place (source: Source, uri: string, current: Subscription, signal: AbortSignal | undefined): Promise<void> {
    if (!current.busy) {
      current.busy = true
      return
    }
    let come = (): void => {}
    const turn = new Promise<void>((resolve) => { current.waiting.add(come = resolve) })
    try {
      await (signal === undefined ? turn : whileWanted(turn, signal))
    } catch (error) {
      // Its turn may have come at the same moment.
      if (!current.waiting.delete(come)) handOn(source, uri, current)
      throw error
    }
  }

  function leave (source: Source, uri: string, sessionKey: string): boolean {
    if (source.uris.get(uri)?.sessions.delete(sessionKey) !== true) return false
    const own = bySession.get(sessionKey)
    const uris = own?.get(source)
    uris?.delete(uri)
    if (uris?.size === 0) own?.delete(source)
    if (own?.size === 0) bySession.delete(sessionKey)
    return true
  }

  return {
    source (definition, scope) {
      const key = keyOf(definition, scope)
      let found = sources.get(key)
      if (found === undefined) sources.set(key, found = { definition, scope, uris: new Map(), current: undefined, failures: 0, retry: undefined, farewells: createTurnstile(maxFarewells) })
      return found
    },
    // Asked for with every call: most gateways have nothing to look for.
    find: (definition, scope) => sources.size === 0 ? undefined : sources.get(keyOf(definition, scope)),
    all: () => [...sources.values()],
    of: (sessionKey) => [...bySession.get(sessionKey) ?? []],
    count: (sessionKey) => [...bySession.get(sessionKey)?.values() ?? []].reduce((sum, uris) => sum + uris.size, 0),
    join (source, uri, sessionKey, shown) {
      const joined = subscription(source, uri)
      joined.sessions.set(sessionKey, shown)
      const own = bySession.get(sessionKey) ?? new Map<Source, Set<string>>()
      bySession.set(sessionKey, own.set(source, (own.get(source) ?? new Set()).add(uri)))
      return joined
    },
    leave,
    remove (source) {
      source.retry?.close()
      sources.delete(keyOf(source.definition, source.scope))
      return [...source.uris].flatMap(([uri, { sessions }]) => [...sessions].map(([sessionKey, shown]) => {
        leave(source, uri, sessionKey)
        return { uri, sessionKey, shown }
      }))
    },
    async inTurn (source, uri, run, signal) {
      const current = subscription(source, uri)
      await place(source, uri, current, signal)
      try {
        return await run(current)
      } finally {
        handOn(source, uri, current)
      }
    }
  }
}
