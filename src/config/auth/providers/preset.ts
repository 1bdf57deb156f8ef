// The preset of an identity provider: the form of its access tokens, which parts of MCP authorization it supports, and
// what an administrator has to set there. It is data only, for `check`, the compiler and docs/providers.

import type { IssuerConfig } from '../auth-config.ts'

/** `set`: if an administrator enables it; `preview`: the same, but the provider calls it a preview or early access. */
type Ability = 'yes' | 'no' | 'set' | 'preview'

/** Whether hosts can rely on it: it is there, or an administrator can enable it. */
export const isSettled = (ability: Ability): boolean => ability === 'yes' || ability === 'set'

/** The same product where people sign in for the login front of a tenant (`auth.login`). */
export interface BehindLogin {
  /** The issuers that are known to be of it, where they differ from those of access tokens. A regular expression. */
  readonly issuer?: string
  /**
   * In order. `{redirect}` stands for the redirect URI of the front, `{signedOut}` for where browsers come back to
   * after signing out.
   */
  readonly steps: readonly string[]
  /** It knows no scope `offline_access`; these parameters of a request have it give a refresh token. */
  readonly offline?: Readonly<Record<string, string>>
  /** Its value for `prompt=login`, if it is another one. */
  readonly promptForLogin?: string
  /** YAML of `auth`. */
  readonly example: string
}

export interface ProviderPreset {
  /** As its makers write it. */
  readonly title: string
  /** Set if its tokens cannot be verified here: why, and what to do instead. */
  readonly unusable?: string
  readonly issuer: {
    readonly example: string
    /** A regular expression. */
    readonly pattern: string
    /** A regular expression: URLs that begin so belong to this provider only. */
    readonly origin?: string
    /** Ends "must be …". */
    readonly form: string
  }
  /**
   * What a token names the gateway by: the URL of the endpoint, a name under `audiences`, or only its client;
   * `urlOrClients`: the URL where the host asked for it by `resource`.
   */
  readonly audience: 'url' | 'audiences' | 'clients' | 'urlOrClients'
  /** What its tokens differ in from RFC 9068. */
  readonly token: Partial<Pick<IssuerConfig, 'requireTyp' | 'claims' | 'accessTokenClaim'>> & {
    /** Put behind the issuer: what `aud` may name besides. */
    readonly audienceBeside?: string
  }
  /** Claim of its ID tokens that has what `claims.subject` has in access tokens. Not given: the same one. */
  readonly idTokenSubject?: string
  /**
   * The features that hosts need of an authorization server (MCP basic/authorization), according to its documentation.
   */
  readonly can: {
    /** The parameter `resource` (RFC 8707). */
    readonly resource: Ability
    /** Dynamic registration (RFC 7591). */
    readonly registration: Ability
    /** Client ID metadata documents. */
    readonly clientDocuments: Ability
  }
  readonly behindLogin: BehindLogin
  /** In order. `{urls}` stands for the endpoints of the tenant. */
  readonly steps: readonly string[]
  /** Further facts, where the provider differs from what one would expect. */
  readonly facts: readonly string[]
  /** YAML of `auth`. */
  readonly example: string
  readonly sources: readonly string[]
}
