// Tokens that only their issuer can read: it is asked what they mean (RFC 7662), once at a time for each, and rarely
// for those that it does not know. What it says is judged as the claims of a JWT are.

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

/** A token that was refused, because of what its issuer says of it, is not asked about again for so long. */
const refusedMs = 10_000
/** The time after an unusable answer in which the issuer is not asked again. */
const pauseMs = 2_000
/**
 * Tokens that were never seen to be good: questions a second, and at once, of which one address may have half
 * (limits/stranger-rate.ts). Strangers can make them up.
 */
const strangersPerSecond = 20
const strangersAtOnce = 100
/** Questions that wait for an answer, of such tokens and of all; of one address, or /64 of IPv6, half of the former. */
const maxStrangers = 32
const maxQuestions = 128
/** Digests that are kept of tokens: those that were good, and those that were not. */
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
      // Whoever sends a token that the issuer chokes on keeps nobody else from being asked about.
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
   * Who brings tokens that nobody issued must not keep those out who bring good ones.
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
        // Whoever has a token of this issuer for something else may not have it asked about at every request either.
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

/** Statuses that say that this token, and no other, could not be read: of the issuer, or of what stands before it. */
const faultsOfToken: ReadonlySet<number> = new Set([400, 413, 414, 422, 431])

class TokenNotTaken extends Error {}

const unanswered = (): GatewayError =>
  new GatewayError('unavailable', "The token's issuer cannot be asked about it at the moment. Retry later.", {
    headers: { 'Retry-After': '2' }
  })

/** A clock that is set back must not prolong anything. */
const isWithin = (since: number | undefined, durationMs: number, now: number): boolean =>
  since !== undefined && now >= since && now < since + durationMs

/** RFC 6749 section 2.3.1. */
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)
