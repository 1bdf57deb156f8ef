// A JWT access token (RFC 9068) to a principal. The cheap refusals come first: garbage never costs a signature check or
// a request.

import { decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose'
import type { IssuerConfig } from '../config/auth/auth-config.ts'
import type { JsonObject, TenantId } from '../protocol/messages.ts'
import { maxTokenBytes, refused } from './bearer.ts'
import { claimAt, isName, maxClaimLength, namesIn, scopesNamed, usualScopeClaims } from './claims.ts'
import type { KeySource } from './jwks.ts'
import type { Principal } from './principal.ts'

export interface TrustedIssuer {
  readonly config: IssuerConfig
  readonly keys: KeySource
}

interface TokenChecks {
  readonly tenant: TenantId
  readonly issuer: IssuerConfig
  /** What `aud` may say: the URL of the endpoint as in its metadata, then further URLs of the very same endpoint. */
  readonly audiences: readonly [string, ...string[]]
  readonly leewaySeconds: number
  /** Epoch milliseconds. */
  readonly now: number
}

// RFC 9068 section 2.1 and RFC 8725 section 3.1. With a symmetric algorithm in this list, a public key would serve as
// the secret.
const asymmetric = new Set('RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' '))

/** Exactly three parts of base64url without padding: one token, one spelling of its separators, nothing behind it. */
export const isJwt = (token: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)

/** The last character may have unused bits: changed, they make another text of the same token. */
const isCanonical = (part: string): boolean => Buffer.from(part, 'base64url').toString('base64url') === part

/**
 * @param options `issuers`: those of the tenant, by `iss`. Tokens of any other issuer are refused unread
 * @throws GatewayError `unauthenticated`; `unavailable` where the issuer's keys cannot be had
 */
export async function verifyToken(
  token: string,
  options: Omit<TokenChecks, 'issuer'> & { readonly issuers: ReadonlyMap<string, TrustedIssuer> }
): Promise<Principal> {
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
  const key = await trusted.keys.key(kid === undefined ? { alg } : { alg, kid })
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
  return principalOf(payload, typ, checks)
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
  if (error instanceof errors.JWTExpired) return refused('expired', 'The token has expired. Get a new one.')
  if (!(error instanceof errors.JWTClaimValidationFailed))
    return refused('malformed', 'The token cannot be verified.', error instanceof Error ? error.name : undefined)
  return refused('claims', `The token's "${error.claim}" claim is missing or wrong.`, error.claim)
}

// Not String(): an object with a `toString` of its own makes that throw.
const shown = (value: unknown): string | undefined => JSON.stringify(value)

/**
 * Comes before the signature, so that an expired token costs next to nothing.
 * @returns `exp`
 */
function checkTimes(claims: JsonObject, { issuer, leewaySeconds, now }: TokenChecks): number {
  const seconds = now / 1000
  const { exp, iat, nbf } = claims
  if (!isTime(exp) || !isTime(iat) || (nbf !== undefined && !isTime(nbf))) {
    throw refused('claims', 'The token needs "exp" and "iat" as numbers, and "nbf" as a number if there is one.')
  }
  if (exp + leewaySeconds <= seconds) throw refused('expired', 'The token has expired. Get a new one.')
  if (nbf !== undefined && nbf - leewaySeconds > seconds)
    throw refused('not_yet', 'The token is not valid yet ("nbf"). Check the clocks.')
  if (iat - leewaySeconds > seconds)
    throw refused('not_yet', 'The token was issued in the future ("iat"). Check the clocks.')
  if (exp - iat > issuer.maxLifetimeSeconds) {
    throw refused(
      'lifetime',
      `The token lives longer than ${issuer.maxLifetimeSeconds} seconds. Set a shorter lifetime at its issuer.`
    )
  }
  return exp
}

/**
 * What the claims must say beyond what jose checks.
 * @param claims of a token whose signature holds
 * @param typ of its header, in small letters
 * @throws GatewayError `unauthenticated`
 */
export function principalOf(claims: JsonObject, typ: string | undefined, checks: TokenChecks): Principal {
  const exp = checkTimes(claims, checks)
  // RFC 9449, RFC 8705: such a token is worth something only with a proof, and as a plain bearer token it may be
  // stolen.
  if (claims['cnf'] !== undefined)
    throw refused('bound', 'The token is bound to a key of its client ("cnf"). Send an unbound bearer token.')
  const names = checks.issuer.claims
  const subject = subjectOf(claims, names?.subject)
  // RFC 9068 says `client_id`; Auth0, Keycloak and Entra (v2) say `azp`, Okta `cid`, Entra (v1) `appid`.
  const clientId =
    names?.client === undefined
      ? (claims['client_id'] ?? claims['azp'] ?? claims['cid'] ?? claims['appid'])
      : claimAt(claims, names.client)
  checkAudience(claims['aud'], clientId, checks)
  const form = `a string of 1 to ${maxClaimLength} characters`
  if (!isName(subject)) throw refused('claims', `The token needs "${String(names?.subject ?? 'sub')}": ${form}.`)
  if (!isName(clientId)) {
    const wanted = names?.client === undefined ? '"client_id" (or "azp", "cid", "appid")' : `"${names.client}"`
    throw refused('claims', `The token needs ${wanted}: ${form}.`)
  }
  if (!isAccessTokenType(typ)) checkUntyped(claims, checks.issuer)
  return {
    kind: 'token',
    tenant: checks.tenant,
    issuer: checks.issuer.issuer,
    subject,
    clientId,
    scopes: scopesNamed(claims, checks.issuer),
    groups: namesIn(claims, names?.groups ?? ['groups']),
    roles: namesIn(claims, names?.roles ?? ['roles']),
    expiresAt: exp * 1000
  }
}

/** RFC 9068 section 2.1. */
const isAccessTokenType = (typ: string | undefined): boolean => typ === 'at+jwt' || typ === 'application/at+jwt'

/** Of several names the first that the token has: one of an application may have other claims than one of a person. */
function subjectOf(claims: JsonObject, names: string | readonly string[] = 'sub'): unknown {
  if (typeof names === 'string') return claimAt(claims, names)
  return names.map((name) => claimAt(claims, name)).find((value) => value !== undefined)
}

// RFC 9700 section 2.3: a token for several resources can be replayed by each of them at the others.
function checkAudience(aud: unknown, clientId: unknown, { audiences, issuer }: TokenChecks): void {
  const { clients = [], otherAudiences = [], takesResource = true } = issuer
  // Some providers name nobody in `aud`: what a token is for is then known by whom it was issued to.
  if (aud === undefined && clients.some((client) => client === clientId)) return
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  const isOurs = (one: unknown): boolean => [...audiences, ...issuer.audiences].some((each) => each === one)
  const mayBeThere = (one: unknown): boolean => isOurs(one) || otherAudiences.some((each) => each === one)
  if (named.some(isOurs) && named.every(mayBeThere)) return
  const fault = named.some(isOurs) ? 'for other resources too' : 'not for this resource'
  const advice = takesResource
    ? `Ask the issuer for one with resource=${audiences[0]} and no other audience.`
    : clients.length > 0
      ? 'It must be issued to one of the clients that the tenant lists.'
      : `Its "aud" must be ${[...issuer.audiences, audiences[0]].join(' or ')}, and nothing else.`
  throw refused('audience', `The token is ${fault}. ${advice}`, shown(aud))
}

// Without a `typ`, an ID token of the same issuer looks much alike: the claims must hold what only access tokens have,
// and nothing else. `typ` and `token_use` as claims are how Keycloak and Cognito tell their kinds of token apart.
function checkUntyped(claims: JsonObject, { accessTokenClaim, claims: names }: IssuerConfig): void {
  const { typ, token_use: use } = claims
  const isMarked = accessTokenClaim !== undefined
  const other = isMarked
    ? undefined
    : ['nonce', 'at_hash', 'c_hash', 's_hash', 'events'].find((claim) => claims[claim] !== undefined)
  const lacksMark = isMarked && claimAt(claims, accessTokenClaim) === undefined
  const isOther = (typ !== undefined && typ !== 'Bearer') || (use !== undefined && use !== 'access')
  if (other !== undefined || lacksMark || isOther) {
    throw refused(
      'type',
      'This is not an access token but another token of its issuer, such as an ID token. Send the access token.',
      lacksMark ? `without ${accessTokenClaim}` : other
    )
  }
  const scopes = [...(names?.scopes ?? usualScopeClaims), ...(names?.appScopes ?? [])]
  if (!isMarked && scopes.every((path) => claimAt(claims, path) === undefined)) {
    const wanted = scopes.map((path) => `"${path}"`).join(' or ')
    throw refused('type', `A token without typ "at+jwt" needs a ${wanted} claim.`)
  }
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)
