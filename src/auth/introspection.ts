// Tokens that only their issuer can read: it is asked what they mean (RFC 7662), once at a time for each, and rarely
// for those that it does not know. What it says is judged as the claims of a JWT are.

import { LRUCache } from 'lru-cache'
import type { IssuerConfig } from '../config/auth/auth-config.ts'
import { createTokenBucket } from '../limits/limits.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError, isObject, type JsonObject } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import { maxTokenBytes, refused } from './bearer.ts'
import { discoverIntrospection, type Fetch } from './fetch.ts'

/** A token that its issuer does not know is not asked about again for so long. */
const inactiveMs = 10_000
/** After an answer that is none, nobody is asked for so long. */
const pauseMs = 2_000
/** Tokens that were never seen to be good: questions a second, and at once. Strangers can make them up. */
const strangersPerSecond = 20
const strangersAtOnce = 100
/** Questions that wait for an answer, of such tokens and of all. */
const maxStrangers = 32
const maxQuestions = 128
/** Digests that are kept of tokens: those that were good, and those that were not. */
const maxKnown = 5_000
const maxInactive = 2_000

export type Introspector = ReturnType<typeof createIntrospector>

interface IntrospectorParts {
  readonly clock: Pick<Clock, 'now'>
  readonly fetch: Fetch
  readonly log: Log
}

/** One for each tenant and issuer. */
export function createIntrospector(
  {
    issuer,
    hosts,
    introspection
  }: Pick<IssuerConfig, 'issuer' | 'hosts'> & Required<Pick<IssuerConfig, 'introspection'>>,
  { clock, fetch, log }: IntrospectorParts
) {
  const { clientId, clientSecret, url: configured } = introspection
  let url = configured
  const pending = new Map<string, Promise<JsonObject>>()
  const known = new LRUCache<string, true>({ max: maxKnown })
  const inactive = new LRUCache<string, number>({ max: maxInactive })
  const strangers = createTokenBucket(clock, strangersPerSecond, strangersAtOnce)
  let pausedAt: number | undefined

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
    if (response.status !== 200) throw new Error(`${url} answers with status ${response.status}`)
    const answer: unknown = await response.json()
    if (!isObject(answer)) throw new Error(`${url} answers no JSON object`)
    return answer
  }

  async function ask(digest: string, token: string): Promise<JsonObject> {
    try {
      const answer = await question(token)
      if (answer['active'] === true) known.set(digest, true)
      else {
        known.delete(digest)
        inactive.set(digest, clock.now())
      }
      return answer
    } catch (error) {
      pausedAt = clock.now()
      url = configured
      const reason = error instanceof Error ? error.message : 'unknown'
      log.warn({ issuer, reason }, 'an issuer cannot be asked about a token')
      throw unanswered()
    } finally {
      pending.delete(digest)
    }
  }

  /** Whoever comes with tokens that nobody issued must not keep those out who come with good ones. */
  function mayAsk(digest: string): boolean {
    if (pausedAt !== undefined && isWithin(pausedAt, pauseMs, clock.now())) return false
    if (pending.size >= maxQuestions) return false
    return known.has(digest) || (pending.size < maxStrangers && strangers.take())
  }

  return {
    /**
     * @param digest of the token
     * @returns what the issuer says of it, which is active
     * @throws GatewayError unauthenticated; unavailable where the issuer cannot be asked
     */
    async claims(digest: string, token: string): Promise<JsonObject> {
      if (token.length > maxTokenBytes) throw refused('size', `The token is longer than ${maxTokenBytes} bytes.`)
      const since = inactive.get(digest)
      if (since !== undefined && isWithin(since, inactiveMs, clock.now())) throw unknownToken()
      let asked = pending.get(digest)
      if (asked === undefined) {
        if (!mayAsk(digest)) throw unanswered()
        asked = ask(digest, token)
        pending.set(digest, asked)
      }
      const answer = await asked
      // `true` and nothing that looks like it (RFC 7662 section 2.2).
      if (answer['active'] !== true) throw unknownToken()
      const { iss, token_type: type, typ, token_use: use } = answer
      if (iss !== undefined && iss !== issuer)
        throw refused('issuer', 'The token is of another issuer than the one that was asked.', JSON.stringify(iss))
      // Refresh tokens are active, too: what is accepted says that it is for access (RFC 7662 section 2.2).
      const kinds = [type, typ, use].filter((kind) => kind !== undefined)
      const isAccess = kinds.every((kind) => typeof kind === 'string' && accessKind.test(kind))
      if (kinds.length === 0 || !isAccess)
        throw refused(
          'type',
          'Its issuer does not say that this is an access token (token_type).',
          JSON.stringify(kinds)
        )
      return answer
    }
  }
}

const accessKind = /^(?:bearer|dpop|access|access_token)$/i

const unknownToken = (): GatewayError =>
  refused('inactive', 'Its issuer says that the token is not active: expired, revoked, or never issued. Get a new one.')

const unanswered = (): GatewayError =>
  new GatewayError('unavailable', "The token's issuer cannot be asked about it at the moment. Retry later.", {
    headers: { 'Retry-After': '2' }
  })

/** A clock that is set back must not prolong anything. */
const isWithin = (since: number, durationMs: number, now: number): boolean => now >= since && now < since + durationMs

/** RFC 6749 section 2.3.1. */
const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)
