// The compiled authentication settings of a tenant: its issuers and API keys.

import type { LoginConfig } from './login-config.ts'
import type { ProviderName } from './providers/presets.ts'

/** No configured issuer may begin so: a token must never pass for an API key. */
export const reservedIssuerPrefix = 'urn:gatehouse:'

export interface IssuerConfig {
  /** Compared with `iss` as an exact string. */
  readonly issuer: string
  /** Found by discovery (RFC 8414, OpenID Connect Discovery) when absent. */
  readonly jwksUri: string | undefined
  /** The hosts to which discovery may lead besides the issuer's own origin; not given: any. */
  readonly hosts?: readonly string[]
  /** Hosts of its URLs that have to be public, because a tenant-admin may have named them; not given: none. */
  readonly publicHosts?: readonly string[]
  readonly algorithms: readonly string[]
  /** `at+jwt` only (RFC 9068), unless the operator allows tokens without a type. */
  readonly requireTyp: boolean
  /** Other audiences that count as this resource; normally none. */
  readonly audiences: readonly string[]
  /** Further accepted values of `aud`; not given: none. */
  readonly otherAudiences?: readonly string[]
  /** Client ids whose tokens are for this resource, where tokens have no `aud`. */
  readonly clients?: readonly string[]
  readonly maxLifetimeSeconds: number
  /** Whether its clients can name a resource (RFC 8707). Default: yes. */
  readonly takesResource?: boolean
  /** The URL of the authorization server. Default: the issuer itself. */
  readonly authorizationServer?: string
  /** The prefix of its scopes, where they are asked for. */
  readonly scopePrefix?: string
  /** How long keys outlive their age while the issuer is away, in seconds. Default: an hour. */
  readonly staleSeconds?: number
  readonly provider?: ProviderName
  /** The credentials for introspection of opaque tokens; the URL is discovered if not given. */
  readonly introspection?: {
    readonly url?: string
    readonly clientId: string
    readonly clientSecret: string
    readonly cacheSeconds: number
  }
  /** Policy rules depend on these: a token that leaves some of them out is refused. */
  readonly neededWhole?: readonly ('groups' | 'roles')[]
  /** Claims of the caller that upstreams are sent, by path; not given: none. */
  readonly toldClaims?: readonly string[]
  /** A claim that only access tokens of this issuer have, for tokens without a type. */
  readonly accessTokenClaim?: string
  /** Paths of claims where the issuer calls things by other names than RFC 9068; each not given: the usual ones. */
  readonly claims?: {
    /** The claim of the subject; of several, the first that a token has. */
    readonly subject?: string | readonly string[]
    readonly client?: string
    readonly scopes?: readonly string[]
    /** The claims of scopes for a token that has none of `scopes`. */
    readonly appScopes?: readonly string[]
    readonly groups?: readonly string[]
    readonly roles?: readonly string[]
  }
}

export interface KeyConfig {
  readonly name: string
  /** SHA-256 of the key, 64 hex digits. The snapshot does not contain the key itself. */
  readonly sha256: string
  readonly scopes: readonly string[]
  /** Epoch milliseconds. */
  readonly expires?: number
  /** Names of the endpoints that the key is for; empty or not given: all. */
  readonly endpoints?: readonly string[]
  /** The replaced key, which is valid until `until`, in epoch milliseconds. */
  readonly previous?: { readonly sha256: string; readonly until: number }
}

export interface AuthConfig {
  /** `none` only where the gateway is bound to loopback; checked when the configuration is compiled. */
  readonly mode: 'bearer' | 'none'
  readonly issuers: readonly IssuerConfig[]
  readonly keys: readonly KeyConfig[]
  /** The scopes that are all needed to use an endpoint of the tenant. */
  readonly requiredScopes: readonly string[]
  /** The scopes that hosts request in their place. */
  readonly askedScopes?: readonly string[]
  readonly leewaySeconds: number
  /** DPoP (RFC 9449): bound tokens are accepted, or no other tokens are. Default: accepted. */
  readonly dpop?: 'accepted' | 'required'
  /** Whether DPoP proofs have to hold a nonce of the gateway. */
  readonly dpopNonces?: boolean
  /** The authorization server that the gateway itself is for this tenant. */
  readonly login?: LoginConfig
  /** The provider at which people sign in to their account page, where there is no login front. */
  readonly signIn?: LoginConfig['provider']
  /** Callers that kill switches stop, although their credential is valid. */
  readonly stopped?: 'everybody' | ReadonlyArray<{ readonly issuer: string; readonly subject: string }>
}

/** `{tenantid}`, as some providers write the issuers of many organisations in one. */
export const placeholderOf = (issuer: string): string | undefined => /\{[A-Za-z]+\}/.exec(issuer)?.[0]

export const withPlaceholder = (issuer: string, values: readonly string[]): string[] =>
  values.map((value) => issuer.replace(placeholderOf(issuer) ?? '', value))
