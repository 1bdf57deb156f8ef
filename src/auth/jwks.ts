// The keys of one issuer for one tenant: fetched when needed, by one request at a time, and kept for a while when the
// issuer is away. Not jose's remote key set, which reads the system clock and forgets its keys in an outage.

import { errors, type CryptoKey } from 'jose'
import type { IssuerConfig } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import { discoverJwksUri } from './discovery.ts'
import type { Fetch } from './fetch.ts'
import { readKeySet, type KeySet } from './jwkset.ts'
import { refused } from './refusal.ts'
import type { Clock } from '../time/clock.ts'

export interface KeySource {
  /**
   * The key that a token's header names. Nothing of the header but `alg` and `kid` is looked at.
   * @throws GatewayError `unauthenticated` where the issuer has no such key, `unavailable` where it cannot be asked
   */
  key(header: { readonly alg: string; readonly kid?: string }): Promise<CryptoKey>
  /** Aborts a request in flight. */
  close(): void
}

export interface KeySourceOptions {
  readonly fetch: Fetch
  readonly clock: Pick<Clock, 'now'>
  readonly log: Log
}

/** A withdrawn key is refused at the latest after this time. */
const maxAgeMs = 10 * 60_000
/** Keys younger than this are not fetched again, whatever kids tokens name. */
const cooldownMs = 30_000
/** The same, while there are no keys at all. */
const firstTryMs = 5000
/** How long known keys outlive `maxAgeMs` while the issuer cannot be reached. */
const staleMs = 60 * 60_000

export function createKeySource(
  config: Pick<IssuerConfig, 'issuer' | 'jwksUri'>,
  { fetch, clock, log }: KeySourceOptions
): KeySource {
  const { issuer } = config
  const closing = new AbortController()
  let uri = config.jwksUri
  let known: { readonly set: KeySet; readonly at: number } | undefined
  let pending: Promise<void> | undefined
  let triedAt: number | undefined
  let failing = false

  async function download(): Promise<KeySet> {
    uri ??= await discoverJwksUri(issuer, fetch, closing.signal)
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

  /** Joins the request in flight, starts one, or does nothing where the last one is too recent. */
  function refreshIfAllowed(): Promise<void> | undefined {
    if (pending !== undefined) return pending
    const now = clock.now()
    if (within(triedAt, known === undefined ? firstTryMs : cooldownMs, now) || closing.signal.aborted) return undefined
    triedAt = now
    pending = refresh(now)
    return pending
  }

  function unavailable(): GatewayError {
    const waitMs = (known === undefined ? firstTryMs : cooldownMs) - (clock.now() - (triedAt ?? 0))
    const seconds = Math.max(1, Math.min(cooldownMs / 1000, Math.ceil(waitMs / 1000)))
    return new GatewayError(
      'unavailable',
      "The keys of the token's issuer cannot be fetched at the moment. Retry later.",
      { headers: { 'Retry-After': String(seconds) } }
    )
  }

  return {
    async key(header) {
      if (!within(known?.at, maxAgeMs, clock.now())) {
        const attempt = refreshIfAllowed()
        // In an outage no caller waits for another timeout while the known keys may still serve.
        if (!failing || !within(known?.at, maxAgeMs + staleMs, clock.now())) await attempt
      } else if (!within(known?.at, maxAgeMs / 2, clock.now())) {
        void refreshIfAllowed()
      }
      let key = await find(known?.set, header)
      if (key === undefined) {
        await refreshIfAllowed()
        key = await find(known?.set, header)
      }
      if (known === undefined) throw unavailable()
      if (key === undefined)
        throw refused('kid', 'The token is signed with a key that its issuer does not publish. Get a new token.')
      if (!within(known.at, maxAgeMs + staleMs, clock.now())) throw unavailable()
      return key
    },

    close() {
      closing.abort()
    }
  }
}

/** A start in the future counts as long ago: a clock that is set back must not prolong anything. */
function within(since: number | undefined, durationMs: number, now: number): boolean {
  return since !== undefined && now >= since && now < since + durationMs
}

async function find(
  set: KeySet | undefined,
  header: { readonly alg: string; readonly kid?: string }
): Promise<CryptoKey | undefined> {
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
