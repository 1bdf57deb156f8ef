// A JWT access token (RFC 9068) to a principal. The cheap refusals come first: garbage never costs a signature check or
// a request.

import {
  decodeJwt,
  decodeProtectedHeader,
  errors,
  jwtVerify,
  type CryptoKey,
  type JWTPayload,
  type ProtectedHeaderParameters
} from 'jose'
import type { IssuerConfig } from '../config/snapshot.ts'
import { maxTokenBytes } from './bearer.ts'
import { checkTimes, isAccessTokenType, principalOf, type TokenChecks } from './claims.ts'
import type { KeySource } from './jwks.ts'
import type { Principal } from './principal.ts'
import { refused } from './refusal.ts'

export interface TrustedIssuer {
  readonly config: IssuerConfig
  readonly keys: KeySource
}

export interface VerifyOptions extends Omit<TokenChecks, 'issuer'> {
  /** Those of the tenant, by `iss`. Tokens of any other issuer are refused unread. */
  readonly issuers: ReadonlyMap<string, TrustedIssuer>
}

// RFC 9068 section 2.1 and RFC 8725 section 3.1. With a symmetric algorithm in this list, a public key would serve as
// the secret.
const asymmetric = new Set('RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '))
const compact = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** Exactly three parts of base64url without padding: one token, one spelling of its separators, nothing behind it. */
export function isJwt(token: string): boolean {
  return compact.test(token)
}

/**
 * @throws GatewayError `unauthenticated` with a `Refusal` as its cause; `unavailable` where the issuer's keys cannot be
 * had
 */
export async function verifyToken(token: string, options: VerifyOptions): Promise<Principal> {
  if (token.length > maxTokenBytes) throw refused('size', `The token is longer than ${maxTokenBytes} bytes.`)
  if (!isJwt(token)) throw refused('malformed', 'The token is not a signed JWT of three parts.')
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
  const typ = typeOf(header, config)
  const checks: TokenChecks = { ...options, issuer: config }
  checkTimes(claims, checks)
  const key = await trusted.keys.key(kid === undefined ? { alg } : { alg, kid })
  return principalOf(await signedClaims(token, key, alg, checks), typ, checks)
}

async function signedClaims(
  token: string,
  key: CryptoKey,
  alg: string,
  { issuer, audiences, leewaySeconds, now }: TokenChecks
): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [alg],
      issuer: issuer.issuer,
      audience: [...audiences, ...issuer.audiences],
      requiredClaims: ['exp', 'iat', 'sub'],
      clockTolerance: leewaySeconds,
      currentDate: new Date(now)
    })
    return payload
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed)
      throw refused('signature', 'The signature of the token does not hold.')
    if (error instanceof errors.JWTExpired) throw refused('expired', 'The token has expired. Get a new one.')
    if (error instanceof errors.JWTClaimValidationFailed) {
      if (error.claim === 'aud')
        throw refused(
          'audience',
          `The token is not for this resource. Ask the issuer for one with resource=${audiences[0]}.`,
          JSON.stringify(error.payload.aud)
        )
      throw refused('claims', `The token's "${error.claim}" claim is missing or wrong.`, error.claim)
    }
    throw refused('malformed', 'The token cannot be verified.', error instanceof Error ? error.name : undefined)
  }
}

function decode(token: string): { header: ProtectedHeaderParameters; claims: JWTPayload } {
  try {
    return { header: decodeProtectedHeader(token), claims: decodeJwt(token) }
  } catch (error) {
    throw refused('malformed', 'The token is not a signed JWT.', error instanceof Error ? error.name : undefined)
  }
}

// Not String(): an object with a `toString` of its own makes that throw.
function shown(value: unknown): string | undefined {
  return JSON.stringify(value)
}

/** @returns `typ` in small letters (RFC 7515 section 4.1.9: a media type, so case does not count) */
function typeOf(header: ProtectedHeaderParameters, config: IssuerConfig): string | undefined {
  const typ = typeof header.typ === 'string' ? header.typ.toLowerCase() : undefined
  if (isAccessTokenType(typ)) return typ
  const untyped = header.typ === undefined || typ === 'jwt' || typ === 'application/jwt'
  if (config.requireTyp || !untyped)
    throw refused(
      'type',
      'The token is not an access token: its header needs typ "at+jwt" (RFC 9068).',
      shown(header.typ)
    )
  return typ
}
