// Checks the claims of a JWT (RFC 9068), or of the introspection response for an opaque token (RFC 7662), and makes the
// principal from them.

import type { IssuerConfig } from '../config/auth/auth-config.ts'
import { isObject, type GatewayError, type JsonObject, type TenantId } from '../protocol/messages.ts'
import { refused } from './bearer.ts'
import {
  claimAt,
  claimsNamed,
  isName,
  leavesNamesOut,
  maxClaimLength,
  maxNames,
  namesIn,
  scopesNamed,
  usualScopeClaims
} from './claims.ts'
import type { Principal } from './principal.ts'
import type { Verified } from './token-cache.ts'

export interface TokenChecks {
  readonly tenant: TenantId
  readonly issuer: IssuerConfig
  /**
   * The accepted values of `aud`: the URL of the endpoint as in its metadata, then further URLs of the very same
   * endpoint.
   */
  readonly audiences: readonly [string, ...string[]]
  readonly leewaySeconds: number
  /** Epoch milliseconds. */
  readonly now: number
}

/**
 * Checks `exp`, `nbf` and `iat` before the signature, so that an expired token costs next to nothing.
 * @returns `exp`
 */
export function checkTimes(claims: JsonObject, { issuer, leewaySeconds, now }: TokenChecks): number {
  const seconds = now / 1000
  const { exp, iat, nbf } = claims
  if (!isTime(exp) || !isTime(iat) || (nbf !== undefined && !isTime(nbf))) {
    throw refused('claims', 'The token needs "exp" and "iat" as numbers, and "nbf" as a number if there is one.')
  }
  if (exp + leewaySeconds <= seconds) throw expired()
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
  const principal = callerOf(claims, checks, exp * 1000)
  if (!isAccessTokenType(typ)) checkUntyped(claims, checks.issuer)
  return principal
}

/**
 * The same for an introspection response (RFC 7662 section 2.2), in which `exp` is optional.
 * @throws GatewayError `unauthenticated`
 */
export function principalOfAnswer(claims: JsonObject, checks: TokenChecks): Verified {
  const { exp, nbf, sub, client_id: client } = claims
  const seconds = checks.now / 1000
  if ((exp !== undefined && !isTime(exp)) || (nbf !== undefined && !isTime(nbf)))
    throw refused('claims', 'What the issuer says of the token has an "exp" or "nbf" that is no number.')
  if (exp !== undefined && exp + checks.leewaySeconds <= seconds) throw expired()
  if (nbf !== undefined && nbf - checks.leewaySeconds > seconds)
    throw refused('not_yet', 'The token is not valid yet ("nbf"). Check the clocks.')
  // Some issuers name no subject in a token of a client for itself: the client is the subject (RFC 9068 section 2.2).
  const named = sub === undefined && checks.issuer.claims?.subject === undefined ? { ...claims, sub: client } : claims
  const principal = callerOf(named, checks, exp === undefined ? undefined : exp * 1000)
  return { principal, boundTo: boundKeyOf(claims) }
}

/** Returns the thumbprint of the key to which a token is bound: it is valid only with a proof (RFC 9449 section 6). */
export function boundKeyOf({ cnf, token_type: type, typ }: JsonObject): string | undefined {
  const isBound = [type, typ].some((each) => typeof each === 'string' && each.toLowerCase() === 'dpop')
  if (cnf === undefined && !isBound) return undefined
  const { jkt, ...others } = isObject(cnf) ? cnf : {}
  if (typeof jkt === 'string' && jkt !== '' && Object.keys(others).length === 0) return jkt
  if (cnf === undefined)
    throw refused('bound', 'The token is bound to its client (DPoP), and its issuer does not say how.')
  // RFC 8705: a token bound by mutual TLS cannot be checked here.
  throw refused('bound', 'The token is bound to its client ("cnf") by other means than DPoP. Send one that is not.')
}

function callerOf(claims: JsonObject, checks: TokenChecks, expiresAt: number | undefined): Principal {
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
  const paths = { groups: names?.groups ?? ['groups'], roles: names?.roles ?? ['roles'] }
  for (const what of checks.issuer.neededWhole ?? [])
    if (leavesNamesOut(claims, what, paths[what]))
      throw refused(
        what,
        `The token does not name all ${what} of its holder so that they can be read (${maxNames} texts at most, each ` +
          `of ${maxClaimLength} characters at most), and rules of this tenant are about ${what}. Have its issuer put ` +
          'fewer into it, such as only those that are assigned to the application.'
      )
  return {
    kind: 'token',
    tenant: checks.tenant,
    issuer: checks.issuer.issuer,
    subject,
    clientId,
    scopes: scopesNamed(claims, checks.issuer),
    groups: namesIn(claims, paths.groups),
    roles: namesIn(claims, paths.roles),
    ...(checks.issuer.toldClaims && { claims: claimsNamed(claims, checks.issuer.toldClaims) }),
    expiresAt
  }
}

/** RFC 9068 section 2.1. */
export const isAccessTokenType = (typ: string | undefined): boolean => typ === 'at+jwt' || typ === 'application/at+jwt'

/**
 * Returns the subject by the first of these names that the token has: a token of an application may have other claims
 * than one of a person.
 */
function subjectOf(claims: JsonObject, names: string | readonly string[] = 'sub'): unknown {
  if (typeof names === 'string') return claimAt(claims, names)
  return names.map((name) => claimAt(claims, name)).find((value) => value !== undefined)
}

// RFC 9700 section 2.3: a token for several resources can be replayed by each of them at the others.
function checkAudience(aud: unknown, clientId: unknown, { audiences, issuer }: TokenChecks): void {
  const { clients = [], otherAudiences = [], takesResource = true } = issuer
  // Some providers set no `aud`: then the client to which the token was issued has to be a configured one.
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
  const isOther = (typ !== undefined && typ !== 'Bearer' && typ !== 'DPoP') || (use !== undefined && use !== 'access')
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

export const expired = (): GatewayError => refused('expired', 'The token has expired. Get a new one.')

// Not String(): an object with a `toString` of its own makes that throw.
export const shown = (value: unknown): string | undefined => JSON.stringify(value)
