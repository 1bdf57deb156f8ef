// The keys of one issuer for one tenant: fetched when needed, by one request at a time, and kept for a while when the
// issuer is away. Not jose's remote key set, which reads the system clock and forgets its keys in an outage.

import { createLocalJWKSet, errors, type CryptoKey, type JWK } from 'jose'
import type { IssuerConfig } from '../config/auth/auth-config.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError, isObject, type JsonObject } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import { refused } from './bearer.ts'
import type { Fetch } from '../egress/fetch.ts'
import { discoverJwksUri } from './provider-metadata.ts'

/** A withdrawn key is refused at the latest after this time. */
const maxAgeMs = 10 * 60_000
/** After an attempt to renew them there is none for so long. */
const retryMs = 30_000
/** The same, while there are no keys at all. */
const firstTryMs = 5000
/**
 * For a kid that is not known keys are fetched unless there were so many fetches, for whatever reason, within this
 * time. One kid causes one of them, so that what comes again and again keeps no new key waiting.
 */
const maxFetches = 2
const lookupMs = 60_000
/** How long known keys outlive `maxAgeMs` while the issuer cannot be reached, if its configuration does not say it. */
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
  /** When the last fetches began, the newest last. */
  let fetchedAt: readonly number[] = []
  let triedAt: number | undefined
  let failing = false
  /** The kids for which keys were fetched lately: `maxFetches` at most. */
  const lookedUp = new Map<string, number>()

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

  function begin(now: number): Promise<void> {
    begun++
    fetchedAt = [...fetchedAt, now].slice(-maxFetches)
    pending = refresh(now)
    return pending
  }

  /** Joins the request in flight, starts one, or does nothing where the last attempt is too recent. */
  function renewIfAllowed(): Promise<void> | undefined {
    if (pending !== undefined) return pending
    const now = clock.now()
    if (within(triedAt, gap(), now) || closing.signal.aborted) return undefined
    triedAt = now
    return begin(now)
  }

  /**
   * The same for a kid that is not known: the issuer may sign with a new key.
   * @param attempts how many there had been when the token came: what was fetched since then is not fetched again
   */
  function lookUp(kid: string, attempts: number): Promise<void> | undefined {
    if (pending !== undefined) return pending
    if (begun > attempts || closing.signal.aborted) return undefined
    const now = clock.now()
    for (const [each, at] of lookedUp) if (!within(at, lookupMs, now)) lookedUp.delete(each)
    const lately = fetchedAt.filter((at) => within(at, lookupMs, now))
    if (lookedUp.has(kid) || lately.length >= maxFetches) return undefined
    lookedUp.set(kid, now)
    return begin(now)
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
     * The key that a token's header names. Nothing of the header but `alg` and `kid` is looked at.
     * @throws GatewayError `unauthenticated` where the issuer has no such key, `unavailable` where it cannot be asked
     */
    async key(header: KeyHeader): Promise<CryptoKey> {
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
      // What is in flight may have begun before the key was published.
      for (const next of [() => pending, () => lookUp(header.kid ?? '', attempts)]) {
        if (key !== undefined) break
        await next()
        key = await find(known.set, header)
      }
      if (key === undefined)
        throw refused('kid', 'The token is signed with a key that its issuer does not publish. Get a new token.')
      if (!within(known.at, maxAgeMs + staleMs, clock.now())) throw unavailable()
      return key
    },

    /** Aborts a request in flight. */
    close(): void {
      closing.abort()
    }
  }
}

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

type KeySet = ReturnType<typeof readKeySet>

const maxKeys = 100

/**
 * Reads a JSON Web Key Set (RFC 7517): it is accepted whole, or not at all.
 * @returns `size`: how many keys may be used; `ignored`: why others may not, for the log
 * @throws Error where the document is no key set, has too many keys, or two different ones under one name
 */
export function readKeySet(document: unknown) {
  const keys = isObject(document) ? document['keys'] : undefined
  if (!Array.isArray(keys)) throw new Error('the answer is not a key set: it has no "keys" array')
  if (keys.length > maxKeys) throw new Error(`the key set has ${keys.length} keys; at most ${maxKeys} are taken`)
  const usable = new Map<string, JWK>()
  const ignored: string[] = []
  for (const key of keys as unknown[]) {
    if (!isObject(key)) throw new Error('a member of the key set is not an object')
    const problem = whyUnusable(key)
    if (problem !== undefined) {
      ignored.push(problem)
      continue
    }
    const id = JSON.stringify([key['kid'] ?? material(key), key['kty'], key['crv'], key['alg']])
    const other = usable.get(id)
    // With two keys under one id, an attacker could choose which of them a signature is checked with.
    if (other !== undefined && material(other) !== material(key))
      throw new Error('the key set has two different keys of the same kid')
    usable.set(id, key)
  }
  return { find: createLocalJWKSet({ keys: [...usable.values()] }), size: usable.size, ignored }
}

const material = ({ n, e, x, y }: JsonObject): string => JSON.stringify([n, e, x, y])

/** @returns undefined for a public key that signatures may be checked with */
export function whyUnusable({ kty, use, d, n, e }: JsonObject): string | undefined {
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP') return 'not an asymmetric key'
  if (use !== undefined && use !== 'sig') return 'not for signatures'
  if (d !== undefined) return 'a private key that was published: revoke it'
  if (kty !== 'RSA') return undefined
  if (typeof n !== 'string' || typeof e !== 'string') return 'an RSA key without modulus or exponent'
  const bits = modulusBits(n)
  if (bits < 2048) return `an RSA key of ${bits} bits: 2048 are needed`
  // Far larger numbers make each verification slow enough to be an attack.
  return bits > 8192 || e.length > 6 ? 'an RSA key of absurd size' : undefined
}

function modulusBits(n: string): number {
  const bytes = Buffer.from(n, 'base64url')
  const first = bytes.findIndex((byte) => byte !== 0)
  return first === -1 ? 0 : (bytes.length - first) * 8 - Math.clz32(bytes[first] ?? 0) + 24
}
