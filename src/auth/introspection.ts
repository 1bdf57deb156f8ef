// Introspection of opaque tokens (RFC 7662): the issuer is asked about a token, by one request at a time, and rarely
// about tokens that it does not know. Its response is checked like the claims of a JWT.

import { LRUCache } from 'lru-cache'
import type { IssuerConfig } from '../config/auth/auth-config.ts'
import { networkOf } from '../limits/client-network.ts'
import { createQuota } from '../limits/limits.ts'
import { createStrangerRate, strangersShare } from '../limits/stranger-rate.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError, isObject, type JsonObject } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import { maxTokenBytes, refused } from './bearer.ts'
import type { Fetch } from '../egress/fetch.ts'
import { discoverIntrospection } from './provider-metadata.ts'
import type { Verified } from './token-cache.ts'
import { principalOfAnswer, type TokenChecks } from './token-claims.ts'

/** A token that was refused after introspection is not introspected again for so many milliseconds. */
const refusedMs = 10_000
/** The time after an unusable answer in which the issuer is not asked again. */
const pauseMs = 2_000
/**
 * Requests per second, and concurrent ones, about tokens that were never valid here, which strangers can make up. One
 * address may use half of them (limits/stranger-rate.ts).
 */
const strangersPerSecond = 20
const strangersAtOnce = 100
/**
 * The most open requests about such tokens, and about all; one address (of IPv6, a /64) may have half of the former.
 */
const maxStrangers = 32
const maxQuestions = 128
/** The most digests of valid tokens that are kept, and of refused ones. */
const maxKnown = 5_000
const maxRefused = 2_000

export type Introspector = ReturnType<typeof createIntrospector>

interface IntrospectorParts {
  readonly clock: Pick<Clock, 'now'>
  readonly fetch: Fetch
  readonly log: Log
}

/** Creates the introspector of one issuer of one tenant. */
export function createIntrospector(
  config: IssuerConfig,
  introspection: NonNullable<IssuerConfig['introspection']>,
  { clock, fetch, log }: IntrospectorParts
) {
  const { issuer, hosts } = config
  const { clientId, clientSecret, url: configured } = introspection
  let url = configured
  const pending = new Map<string, Promise<JsonObject>>()
  const known = new LRUCache<string, true>({ max: maxKnown })
  const refusals = new LRUCache<string, { readonly at: number; readonly error: unknown }>({ max: maxRefused })
  const strangers = createStrangerRate(clock, strangersPerSecond, strangersAtOnce)
  const places = createQuota()
  let pausedAt: number | undefined
  let warnedAt: number | undefined

  async function question(token: string): Promise<JsonObject> {
    url ??= await discoverIntrospection({ issuer, hosts }, fetch)
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${btoa(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`)}`
      },
      body: new URLSearchParams({ token, token_type_hint: 'access_token' })
    })
    if (faultsOfToken.has(response.status)) throw new TokenNotTaken(`${url} answers with status ${response.status}`)
    if (response.status !== 200) throw new Error(`${url} answers with status ${response.status}`)
    const answer: unknown = await response.json()
    if (!isObject(answer)) throw new Error(`${url} answers no JSON object`)
    return answer
  }

  async function ask(digest: string, token: string): Promise<JsonObject> {
    try {
      return await question(token)
    } catch (error) {
      // A token that the issuer cannot process must not pause requests about other tokens.
      if (!(error instanceof TokenNotTaken)) {
        pausedAt = clock.now()
        url = configured
      }
      if (!isWithin(warnedAt, pauseMs, clock.now())) {
        warnedAt = clock.now()
        const reason = error instanceof Error ? error.message : 'unknown'
        log.warn({ issuer, reason }, 'an issuer cannot be asked about a token')
      }
      throw unanswered()
    } finally {
      pending.delete(digest)
    }
  }

  /**
   * Begins a request. Tokens that were never valid have limits of their own, so that they cannot crowd out valid ones.
   * @throws GatewayError unavailable
   */
  function begin(digest: string, token: string, address: string): Promise<JsonObject> {
    if (isWithin(pausedAt, pauseMs, clock.now()) || pending.size >= maxQuestions) throw unanswered()
    if (known.has(digest)) return ask(digest, token)
    const leave = places.take(1, [
      ['all', maxStrangers],
      [`of ${networkOf(address)}`, maxStrangers * strangersShare]
    ])
    if (leave === undefined) throw unanswered()
    if (strangers.take(address)) return ask(digest, token).finally(leave)
    leave()
    throw unanswered()
  }

  async function answerTo(digest: string, token: string, address: string): Promise<JsonObject> {
    const asked = pending.get(digest) ?? begin(digest, token, address)
    pending.set(digest, asked)
    return await asked
  }

  return {
    /**
     * @param digest of the token
     * @param address from which it comes, if that is known
     * @throws GatewayError unauthenticated; unavailable where the issuer cannot be asked
     */
    async verified(
      digest: string,
      token: string,
      checks: Omit<TokenChecks, 'issuer'>,
      address = ''
    ): Promise<Verified> {
      if (token.length > maxTokenBytes) throw refused('size', `The token is longer than ${maxTokenBytes} bytes.`)
      const refusal = refusals.get(digest)
      if (refusal !== undefined && isWithin(refusal.at, refusedMs, clock.now())) throw refusal.error
      const answer = await answerTo(digest, token, address)
      try {
        const verified = judged(answer, { ...checks, issuer: config })
        known.set(digest, true)
        return verified
      } catch (error) {
        // A token of this issuer for another resource must not cause a request each time either.
        known.delete(digest)
        refusals.set(digest, { at: clock.now(), error })
        throw error
      }
    }
  }
}

/** @throws GatewayError unauthenticated */
function judged(answer: JsonObject, checks: TokenChecks): Verified {
  const { active, iss, token_type: type, typ, token_use: use } = answer
  // `true` and nothing that looks like it (RFC 7662 section 2.2).
  if (active !== true)
    throw refused(
      'inactive',
      'Its issuer says that the token is not active: expired, revoked, or never issued. Get a new one.'
    )
  if (iss !== undefined && iss !== checks.issuer.issuer)
    throw refused('issuer', 'The token is of another issuer than the one that was asked.', JSON.stringify(iss))
  // Refresh tokens are active, too: what is accepted says that it is for access (RFC 7662 section 2.2).
  const kinds = [type, typ, use].filter((kind) => kind !== undefined)
  const isAccess = kinds.every((kind) => typeof kind === 'string' && accessKind.test(kind))
  if (kinds.length === 0 || !isAccess)
    throw refused('type', 'Its issuer does not say that this is an access token (token_type).', JSON.stringify(kinds))
  return principalOfAnswer(answer, checks)
}

const accessKind = /^(?:bearer|dpop|access|access_token)$/i

/** Statuses by which the issuer, or a proxy before it, refuses this token and no other. */
const faultsOfToken: ReadonlySet<number> = new Set([400, 413, 414, 422, 431])

class TokenNotTaken extends Error {}

const unanswered = (): GatewayError =>
  new GatewayError('unavailable', "The token's issuer cannot be asked about it at the moment. Retry later.", {
    headers: { 'Retry-After': '2' }
  })

/** False for a start in the future: after the clock was set back, nothing is valid for longer. */
const isWithin = (since: number | undefined, durationMs: number, now: number): boolean =>
  since !== undefined && now >= since && now < since + durationMs

/** RFC 6749 section 2.3.1. */
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)
