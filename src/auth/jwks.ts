// The keys of one issuer for one tenant: fetched when needed, by one request at a time, and kept for a while when the
// issuer is away. Not jose's remote key set, which reads the system clock and forgets its keys in an outage.

import { hash } from 'node:crypto'
import { errors, type CryptoKey } from 'jose'
import { LRUCache } from 'lru-cache'
import type { IssuerConfig } from '../config/auth/auth-config.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import { refused } from './bearer.ts'
import type { Fetch } from '../egress/fetch.ts'
import { type KeySet, readKeySet } from './key-set.ts'
import { discoverJwksUri } from './provider-metadata.ts'

/** A withdrawn key is refused at the latest after this time. */
const maxAgeMs = 10 * 60_000
/** The time between two attempts to renew the keys. */
const retryMs = 30_000
/** The same time while there are no keys at all. */
const firstTryMs = 5000
/**
 * An unknown kid causes a fetch, unless there were this many fetches, for any reason, within the time below. One kid
 * causes only one of them, so that a repeated kid does not delay the fetch for a new key.
 */
const maxFetches = 2
const lookupMs = 60_000
/**
 * Exception for subjects that were let in before: unknown kids from strangers must not delay a new key for them. Such a
 * fetch begins at least so many milliseconds after any other, because a stranger may know the subject. It does not
 * count in `maxFetches`.
 */
const knownGapMs = 5_000
const maxKnownCallers = 1_000
/** How long known keys outlive `maxAgeMs` while the issuer cannot be reached, unless its configuration says it. */
const usualStaleMs = 60 * 60_000

export type KeySource = ReturnType<typeof createKeySource>

type KeyHeader = Readonly<Record<'alg', string> & Partial<Record<'kid', string>>>

export function createKeySource(
  config: Pick<IssuerConfig, 'issuer' | 'jwksUri' | 'hosts' | 'staleSeconds'>,
  { fetch, clock, log }: { fetch: Fetch; clock: Pick<Clock, 'now'>; log: Log }
) {
  const { issuer } = config
  const staleMs = config.staleSeconds === undefined ? usualStaleMs : config.staleSeconds * 1000
  const closing = new AbortController()
  let uri = config.jwksUri
  let known: { readonly set: KeySet; readonly at: number } | undefined
  let pending: Promise<void> | undefined
  let begun = 0
  /** The times at which the fetches began that count in `maxFetches`, the newest last. */
  let fetchedAt: readonly number[] = []
  let begunAt: number | undefined
  let triedAt: number | undefined
  let failing = false
  /** The kids for which keys were fetched lately. */
  const lookedUp = new Map<string, number>()
  /** The callers whose tokens were valid, by digest of the subject. */
  const knownCallers = new LRUCache<string, true>({ max: maxKnownCallers })

  async function download(): Promise<KeySet> {
    uri ??= await discoverJwksUri(config, fetch, closing.signal)
    const response = await fetch(uri, {
      headers: { accept: 'application/jwk-set+json, application/json' },
      signal: closing.signal
    })
    if (response.status !== 200) throw new Error(`${uri} answers with status ${response.status}`)
    return readKeySet(await response.json())
  }

  /** Never rejects: a failure is logged and sets `failing`. */
  async function refresh(at: number): Promise<void> {
    try {
      const set = await download()
      known = { set, at }
      failing = false
      if (set.ignored.length > 0) log.warn({ issuer, ignored: set.ignored }, 'keys of an issuer are not used')
      if (set.size === 0) log.warn({ issuer }, 'an issuer publishes no usable key: its tokens are refused')
    } catch (error) {
      failing = true
      // The key set may have moved: the next attempt discovers it again.
      uri = config.jwksUri
      if (!closing.signal.aborted)
        log.warn(
          { issuer, reason: error instanceof Error ? error.message : 'unknown', keysKept: known?.set.size ?? 0 },
          'keys of an issuer cannot be fetched'
        )
    } finally {
      pending = undefined
    }
  }

  const gap = (): number => (known === undefined ? firstTryMs : retryMs)

  function count(now: number): void {
    fetchedAt = [...fetchedAt, now].slice(-maxFetches)
  }

  function begin(now: number): Promise<void> {
    begun++
    begunAt = now
    pending = refresh(now)
    return pending
  }

  /** Joins the request in flight, starts one, or does nothing where the last attempt is too recent. */
  function renewIfAllowed(): Promise<void> | undefined {
    if (pending !== undefined) return pending
    const now = clock.now()
    if (within(triedAt, gap(), now) || closing.signal.aborted) return undefined
    triedAt = now
    count(now)
    return begin(now)
  }

  /**
   * Fetches the keys for an unknown kid: the issuer may sign with a new key.
   * @param attempts the number of fetches when the token came: after a later fetch no other one is needed
   */
  function lookUp(kid: string, subject: string | undefined, attempts: number): Promise<void> | undefined {
    if (pending !== undefined) return pending
    if (begun > attempts || closing.signal.aborted) return undefined
    const now = clock.now()
    for (const [each, at] of lookedUp) if (!within(at, lookupMs, now)) lookedUp.delete(each)
    const lately = fetchedAt.filter((at) => within(at, lookupMs, now))
    if (lately.length < maxFetches && !lookedUp.has(kid)) {
      lookedUp.set(kid, now)
      count(now)
      return begin(now)
    }
    if (subject === undefined || !knownCallers.has(callerOf(subject))) return undefined
    return within(begunAt, knownGapMs, now) ? undefined : begin(now)
  }

  function unavailable(): GatewayError {
    const waitMs = gap() - (clock.now() - (triedAt ?? 0))
    const seconds = Math.max(1, Math.min(retryMs / 1000, Math.ceil(waitMs / 1000)))
    return new GatewayError(
      'unavailable',
      "The keys of the token's issuer cannot be fetched at the moment. Retry later.",
      { headers: { 'Retry-After': String(seconds) } }
    )
  }

  return {
    /**
     * Returns the key that a token's header names. Only `alg` and `kid` of the header are read.
     * @param subject the unverified subject of the token; undefined: it has none
     * @throws GatewayError `unauthenticated` if the issuer has no such key, `unavailable` if it cannot be reached
     */
    async key(header: KeyHeader, subject?: string): Promise<CryptoKey> {
      const attempts = begun
      if (!within(known?.at, maxAgeMs, clock.now())) {
        const attempt = renewIfAllowed()
        // In an outage no caller waits for another timeout while the known keys may still serve.
        if (!failing || !within(known?.at, maxAgeMs + staleMs, clock.now())) await attempt
      } else if (!within(known?.at, maxAgeMs / 2, clock.now())) {
        void renewIfAllowed()
      }
      let key = await find(known?.set, header)
      if (known === undefined) throw unavailable()
      // The fetch in flight may have begun before the key was published: another one may have to follow.
      for (const next of [() => pending, () => lookUp(header.kid ?? '', subject, attempts)]) {
        if (key !== undefined) break
        await next()
        key = await find(known.set, header)
      }
      if (key === undefined)
        throw refused('kid', 'The token is signed with a key that its issuer does not publish. Get a new token.')
      if (!within(known.at, maxAgeMs + staleMs, clock.now())) throw unavailable()
      return key
    },

    /** A token of this subject was valid. */
    letIn(subject: string): void {
      knownCallers.set(callerOf(subject), true)
    },

    /** Aborts a request in flight. */
    close(): void {
      closing.abort()
    }
  }
}

const callerOf = (subject: string): string => hash('sha256', subject, 'base64url')

/** A start in the future counts as long ago: a clock that is set back must not prolong anything. */
const within = (since: number | undefined, durationMs: number, now: number): boolean =>
  since !== undefined && now >= since && now < since + durationMs

async function find(set: KeySet | undefined, header: KeyHeader): Promise<CryptoKey | undefined> {
  try {
    return await set?.find(header)
  } catch (error) {
    if (error instanceof errors.JWKSNoMatchingKey) return undefined
    // Several keys and no kid, or a key that cannot be imported: only tokens of this issuer are lost.
    throw refused(
      'kid',
      'The token does not name one usable key of its issuer.',
      error instanceof Error ? error.name : undefined
    )
  }
}
