// What is known of an identity provider: how its access tokens look, what of MCP it can do, and what an administrator
// has to set there. Data only: `check`, the compiler and docs/providers are made from it.

import type { IssuerConfig } from '../auth-config.ts'

/** `set`: where it is set up so; `preview`: so, and its makers call it an experiment, a preview or early access. */
type Ability = 'yes' | 'no' | 'set' | 'preview'

/** Whether hosts can count on it: for everybody who configures the provider, or who sets it there. */
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
  /** What it calls `prompt=login`; not given: so. */
  readonly promptForLogin?: string
  /** YAML of `auth`. */
  readonly example: string
}

export interface ProviderPreset {
  /** As its makers write it. */
  readonly title: string
  /** Tokens of it cannot be verified here at all: why, and what to do instead. */
  readonly unusable?: string
  readonly issuer: {
    readonly example: string
    /** A regular expression. */
    readonly pattern: string
    /** URLs that begin so are of it, and of nobody else. A regular expression. */
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
  /** What hosts need of an authorization server (MCP basic/authorization), as of the sources. */
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
  /** What has to be known beyond: facts that differ from what one would expect. */
  readonly facts: readonly string[]
  /** YAML of `auth`. */
  readonly example: string
  readonly sources: readonly string[]
}
