// Tokens that an authorization server gave the gateway for one upstream.

import type { TokenEndpointResponse } from 'oauth4webapi'
import { scopesIn } from './discovery.ts'

export interface Tokens {
  readonly accessToken: string
  /** Epoch ms; undefined: the server did not say when the token expires. */
  readonly expiresAt?: number | undefined
  readonly refreshToken?: string | undefined
  /** The scopes that the token has; undefined: those that were asked for (RFC 6749 section 5.1). */
  readonly scopes?: readonly string[] | undefined
}

/** The longest token, in characters. Headers of 16 KiB are more than most servers take. */
const maxTokenLength = 12_288
/** A token that expires within so many milliseconds is not used: a request may take as long to arrive. */
const marginMs = 30_000

/**
 * An answer without usable tokens. The message goes to callers and operators: it quotes nothing that the server sent.
 */
class UnusableTokens extends Error {}

/** @throws UnusableTokens for what cannot be sent as a bearer token (RFC 6750) */
export function tokensFrom(answer: TokenEndpointResponse, now: number): Tokens {
  const { access_token: accessToken, token_type: type, expires_in: seconds, refresh_token: refreshToken } = answer
  if (type.toLowerCase() !== 'bearer') throw new UnusableTokens('it gave a token of another type than bearer')
  if (!/^[\x21-\x7e]+$/.test(accessToken) || accessToken.length > maxTokenLength)
    throw new UnusableTokens('it gave a token that cannot be sent in a header')
  if (refreshToken !== undefined && refreshToken.length > maxTokenLength)
    throw new UnusableTokens(`it gave a refresh token of more than ${maxTokenLength} characters`)
  const expiresAt = seconds === undefined ? undefined : now + Math.max(0, seconds) * 1000
  return { accessToken, expiresAt, refreshToken, scopes: scopesIn(answer.scope) }
}

/**
 * Whether a token can still be used. A token that lives less than a minute is used for half of its life.
 * @param since when it was given, epoch ms
 */
export function isGood({ expiresAt }: Tokens, since: number, now: number): boolean {
  if (expiresAt === undefined) return true
  return now < expiresAt - Math.min(marginMs, (expiresAt - since) / 2)
}

/**
 * The tokens that are masked in responses: the current ones, and earlier ones with which unanswered calls were sent.
 * @param count of tokens that are known at once
 */
export function createMaskedTokens(count = 2) {
  let known: readonly Tokens[] = []
  let secrets: readonly string[] = []
  const areSame = (one: Tokens, other: Tokens): boolean =>
    one.accessToken === other.accessToken && one.refreshToken === other.refreshToken

  return {
    /** Returns the secrets to be masked: the same array until they change. */
    secrets: (): readonly string[] => secrets,
    show(tokens: Tokens): void {
      if (tokens === known[0]) return
      const others = known.filter((each) => !areSame(each, tokens))
      const isNew = others.length === known.length
      known = [tokens, ...others].slice(0, count)
      if (!isNew) return
      const all = known.flatMap(({ accessToken, refreshToken = accessToken }) => [accessToken, refreshToken])
      secrets = [...new Set(all)]
    }
  }
}
