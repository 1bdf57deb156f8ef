// What the claims of a token must say (RFC 9068 section 2, RFC 9700) beyond what jose checks, and the principal that
// they describe.

import type { IssuerConfig } from '../config/snapshot.ts'
import type { JsonObject, TenantId } from '../protocol/messages.ts'
import { scopeToken } from './challenge.ts'
import type { Principal } from './principal.ts'
import { refused } from './refusal.ts'

export interface TokenChecks {
  readonly tenant: TenantId
  readonly issuer: IssuerConfig
  /** What `aud` may say: the URL of the endpoint as in its metadata, then further URLs of the very same endpoint. */
  readonly audiences: readonly [string, ...string[]]
  readonly leewaySeconds: number
  /** Epoch milliseconds. */
  readonly now: number
}

const maxNameLength = 512
const maxGroups = 256

/**
 * Comes before the signature, so that an expired token costs next to nothing.
 * @returns `exp`.
 * @throws GatewayError `unauthenticated`
 */
export function checkTimes(claims: JsonObject, { issuer, leewaySeconds, now }: TokenChecks): number {
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
 * @param claims of a token whose signature holds
 * @param typ of its header, in small letters
 * @throws GatewayError `unauthenticated`
 */
export function principalOf(claims: JsonObject, typ: string | undefined, checks: TokenChecks): Principal {
  const exp = checkTimes(claims, checks)
  checkAudience(claims['aud'], checks)
  // RFC 9449, RFC 8705: such a token is worth something only with a proof, and as a plain bearer token it may be
  // stolen.
  if (claims['cnf'] !== undefined)
    throw refused('bound', 'The token is bound to a key of its client ("cnf"). Send an unbound bearer token.')
  const subject = claims['sub']
  const clientId = clientClaims.map((name) => claims[name]).find((value) => value !== undefined && value !== null)
  if (!isName(subject)) throw refused('claims', `The token needs "sub": a string of 1 to ${maxNameLength} characters.`)
  if (!isName(clientId))
    throw refused(
      'claims',
      `The token needs "client_id" (or "azp", "cid", "appid"): a string of 1 to ${maxNameLength} characters.`
    )
  if (!isAccessTokenType(typ)) checkUntyped(claims)
  return {
    kind: 'token',
    tenant: checks.tenant,
    issuer: checks.issuer.issuer,
    subject,
    clientId,
    scopes: scopesOf(claims),
    groups: groupsOf(claims['groups']),
    expiresAt: exp * 1000
  }
}

// RFC 9068 says `client_id`; Auth0, Keycloak and Entra (v2) say `azp`, Okta `cid`, Entra (v1) `appid`.
const clientClaims = ['client_id', 'azp', 'cid', 'appid'] as const

/** RFC 9068 section 2.1. */
export function isAccessTokenType(typ: string | undefined): boolean {
  return typ === 'at+jwt' || typ === 'application/at+jwt'
}

// RFC 9700 section 2.3: a token for several resources can be replayed by each of them at the others.
function checkAudience(aud: unknown, { audiences: [resource, ...aliases], issuer }: TokenChecks): void {
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  const ours = (one: unknown) =>
    typeof one === 'string' && (one === resource || aliases.includes(one) || issuer.audiences.includes(one))
  if (audiences.length > 0 && audiences.every(ours)) return
  const advice = audiences.some(ours) ? 'for other resources too' : 'not for this resource'
  throw refused(
    'audience',
    `The token is ${advice}. Ask the issuer for one with resource=${resource} and no other audience.`,
    JSON.stringify(aud)
  )
}

// Without a `typ`, an ID token of the same issuer looks much alike: the claims must hold what only access tokens have,
// and nothing else. `typ` and `token_use` as claims are how Keycloak and Cognito tell their kinds of token apart.
function checkUntyped(claims: JsonObject): void {
  const { typ, token_use: use } = claims
  const other = idTokenClaims.find((claim) => claims[claim] !== undefined)
  if (other !== undefined || (typ !== undefined && typ !== 'Bearer') || (use !== undefined && use !== 'access')) {
    throw refused(
      'type',
      'This is not an access token but another token of its issuer, such as an ID token. Send the access token.',
      other
    )
  }
  if (claims['scope'] === undefined && claims['scp'] === undefined) {
    throw refused('type', 'A token without typ "at+jwt" needs a "scope" or "scp" claim.')
  }
}

const idTokenClaims = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events'] as const

/** A claim of the wrong shape grants nothing. `*` is a name like any other, not a pattern. */
function scopesOf(claims: JsonObject): ReadonlySet<string> {
  const { scope, scp } = claims
  const listed = scope !== undefined ? words(scope) : Array.isArray(scp) ? scp : words(scp)
  return new Set(listed.every((one) => typeof one === 'string' && scopeToken.test(one)) ? (listed as string[]) : [])
}

function words(text: unknown): string[] {
  return typeof text === 'string' ? text.split(' ').filter((word) => word !== '') : []
}

function groupsOf(groups: unknown): readonly string[] {
  return Array.isArray(groups) ? groups.filter(isName).slice(0, maxGroups) : []
}

function isName(value: unknown): value is string {
  // Control characters would forge lines wherever the name is shown.
  return typeof value === 'string' && value.length > 0 && value.length <= maxNameLength && !/\p{Cc}/u.test(value)
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value)
}
