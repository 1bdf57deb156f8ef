// A grant as it is stored: the secret or account that a person has given for their own use of an upstream.

import type { Tokens } from './oauth/tokens.ts'

/** The tokens of an account, with all that is needed to renew them. */
export interface Account {
  readonly tokens: Tokens
  /** The name of the account at its provider, to be shown to people. */
  readonly name?: string | undefined
  /** When the provider gave the tokens: epoch ms. */
  readonly since: number
  /** When the tokens were renewed last: epoch ms. */
  readonly renewedAt?: number
  readonly issuer: string
  readonly tokenEndpoint: string
  readonly revocationEndpoint?: string | undefined
  /** How the client may authenticate at the authorization server. */
  readonly authMethods?: readonly string[] | undefined
  readonly clientId: string
  /** The secret of a dynamically registered client (RFC 7591); the secret of a configured client is not stored. */
  readonly clientSecret?: string | undefined
  readonly clientMethod?: string | undefined
  readonly resource: string | undefined
  /** The scopes that the tokens have, as far as is known. */
  readonly scopes: readonly string[]
  /** The scopes that were asked for. */
  readonly asked?: readonly string[]
}

export interface Grant {
  /** A new random id for each connect, so that open connections of an earlier grant are not used for this one. */
  readonly id: string
  /**
   * The origin of the upstream's URL, or a digest of its command and arguments: the grant is sent to no other server.
   */
  readonly target: string
  readonly connectedAt: number
  /** The number of the latest revocation by administrators when the grant was given (grant-ends.ts). */
  readonly givenAfter?: number
  readonly secret?: string | undefined
  readonly account?: Account | undefined
  /** Further scopes that the upstream demanded: requested when the person connects again. */
  readonly missing?: readonly string[] | undefined
  /** The grant exists, but cannot be decrypted. */
  readonly unopened?: true
  /** Why the grant is no longer usable, as the end of a sentence; the person has to connect again. */
  readonly dead?: string | undefined
}

/** The grants of one person, by upstream. */
export type GrantsOfPerson = ReadonlyMap<string, Grant>
