// Verifies a JWT access token (RFC 9068) and returns its principal. The cheap checks come first, so that garbage never
// costs a signature check or a request.

import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose'
import type { IssuerConfig } from '../config/auth/auth-config.ts'
import { maxTokenBytes, refused } from './bearer.ts'
import type { KeySource } from './jwks.ts'
import type { Verified } from './token-cache.ts'
import {
  boundKeyOf,
  checkTimes,
  expired,
  isAccessTokenType,
  principalOf,
  shown,
  type TokenChecks
} from './token-claims.ts'

export interface TrustedIssuer {
  readonly config: IssuerConfig
  readonly keys: KeySource
}

// RFC 9068 section 2.1 and RFC 8725 section 3.1. With a symmetric algorithm in this list, a public key would serve as
// the secret.
const asymmetric = new Set('RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '))

/** Exactly three parts of base64url without padding: one token, one spelling of its separators, nothing behind it. */
export const isJwt = (token: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)

/** Whether the unused bits of the last character are zero: otherwise one token would have several spellings. */
const isCanonical = (part: string): boolean => Buffer.from(part, 'base64url').toString('base64url') === part

/**
 * @param options `issuers`: those of the tenant, by `iss`. Tokens of any other issuer are refused unread
 * @throws GatewayError `unauthenticated`; `unavailable` where the issuer's keys cannot be had
 */
export async function verifyToken(
  token: string,
  options: Omit<TokenChecks, 'issuer'> & { readonly issuers: ReadonlyMap<string, TrustedIssuer> }
): Promise<Verified> {
  if (token.length > maxTokenBytes) throw refused('size', `The token is longer than ${maxTokenBytes} bytes.`)
  if (!isJwt(token)) throw refused('malformed', 'The token is not a signed JWT of three parts.')
  if (!token.split('.').every(isCanonical))
    throw refused('malformed', 'A part of the token is not the one base64url spelling of its bytes (RFC 4648 3.5).')
  const { header, claims } = decode(token)
  // RFC 8725 section 3.10: `jwk`, `jku`, `x5c` and `x5u` are never read. Extensions that change how a token is read are
  // refused outright.
  if (header.crit !== undefined || 'b64' in header || 'enc' in header || 'zip' in header || header.cty !== undefined) {
    throw refused('header', 'The token uses JOSE extensions, encryption or nesting, which are not used here.')
  }
  const trusted = typeof claims.iss === 'string' ? options.issuers.get(claims.iss) : undefined
  if (trusted === undefined) {
    throw refused(
      'issuer',
      'The token is of an issuer that this tenant does not trust. resource_metadata names those that it does.',
      shown(claims.iss)
    )
  }
  const { config } = trusted
  const { alg, kid } = header
  if (typeof alg !== 'string' || !asymmetric.has(alg) || !config.algorithms.includes(alg)) {
    throw refused('algorithm', `The token must be signed with one of ${config.algorithms.join(', ')}.`, shown(alg))
  }
  if (kid !== undefined && typeof kid !== 'string') throw refused('kid', 'The "kid" of the token must be a string.')
  // RFC 7515 section 4.1.9: a media type, so case does not count.
  const typ = typeof header.typ === 'string' ? header.typ.toLowerCase() : undefined
  const untyped = header.typ === undefined || typ === 'jwt' || typ === 'application/jwt'
  if (!isAccessTokenType(typ) && (config.requireTyp || !untyped))
    throw refused(
      'type',
      'The token is not an access token: its header needs typ "at+jwt" (RFC 9068).',
      shown(header.typ)
    )
  const checks: TokenChecks = { ...options, issuer: config }
  checkTimes(claims, checks)
  // Not verified yet: the subject may be made up.
  const subject = typeof claims.sub === 'string' ? claims.sub : undefined
  const key = await trusted.keys.key(kid === undefined ? { alg } : { alg, kid }, subject)
  const { leewaySeconds, now } = checks
  // `aud` is judged by `principalOf`: all of its values, of which the library would take any one.
  const { payload } = await jwtVerify(token, key, {
    algorithms: [alg],
    issuer: config.issuer,
    requiredClaims: ['exp', 'iat', 'sub'],
    clockTolerance: leewaySeconds,
    currentDate: new Date(now)
  }).catch((error: unknown) => {
    throw refusalOfJose(error)
  })
  const principal = principalOf(payload, typ, checks)
  if (subject !== undefined) trusted.keys.letIn(subject)
  return { principal, boundTo: boundKeyOf(payload) }
}

function decode(token: string) {
  try {
    return { header: decodeProtectedHeader(token), claims: decodeJwt(token) }
  } catch (error) {
    throw refused('malformed', 'The token is not a signed JWT.', error instanceof Error ? error.name : undefined)
  }
}

function refusalOfJose(error: unknown): Error {
  if (error instanceof errors.JWSSignatureVerificationFailed)
    return refused('signature', 'The signature of the token does not hold.')
  if (error instanceof errors.JWTExpired) return expired()
  if (!(error instanceof errors.JWTClaimValidationFailed))
    return refused('malformed', 'The token cannot be verified.', error instanceof Error ? error.name : undefined)
  return refused('claims', `The token's "${error.claim}" claim is missing or wrong.`, error.claim)
}
