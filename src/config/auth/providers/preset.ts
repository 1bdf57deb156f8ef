// What is known of an identity provider: how its access tokens look, what of MCP it can do, and what an administrator
// has to set there. Data only: `check`, the compiler and docs/providers are made from it.

import type { IssuerConfig } from '../auth-config.ts'

export interface ProviderPreset {
  /** As its makers write it. */
  readonly title: string
  /** Tokens of it cannot be verified here at all: why, and what to do instead. */
  readonly unusable?: string
  readonly issuer: {
    readonly example: string
    /** A regular expression. */
    readonly pattern: string
    /** Ends "must be …". */
    readonly form: string
  }
  /** What a token names the gateway by: the URL of the endpoint, a name under `audiences`, or only its client. */
  readonly audience: 'url' | 'audiences' | 'clients'
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
    readonly resource: 'yes' | 'no' | 'set'
    /** Dynamic registration (RFC 7591). */
    readonly registration: 'yes' | 'no' | 'set'
    /** Client ID metadata documents. */
    readonly clientDocuments: 'yes' | 'no' | 'set'
  }
  /** In order. `{urls}` stands for the endpoints of the tenant, `{redirect}` for the redirect URI of its front. */
  readonly steps: readonly string[]
  /** What has to be known beyond: facts that differ from what one would expect. */
  readonly facts: readonly string[]
  /** YAML of `auth`. */
  readonly example: string
  readonly sources: readonly string[]
}
