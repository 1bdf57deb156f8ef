// What a person has given for their own use of an upstream, as it is kept.

import type { Tokens } from './oauth/tokens.ts'

/** Tokens, and all that is needed to renew them without asking anybody. */
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
  /** The secret of a client that registered itself; that of the configuration is not kept. */
  readonly clientSecret?: string | undefined
  readonly clientMethod?: string | undefined
  readonly resource: string | undefined
  /** The scopes that the tokens have, as far as is known. */
  readonly scopes: readonly string[]
  /** The scopes that were asked for. */
  readonly asked?: readonly string[]
}

export interface Grant {
  /** Another one each time something is connected: connections of the one before are not used for it. */
  readonly id: string
  /** Origin of the upstream's URL, or digest of its command and arguments: to nobody else it is shown. */
  readonly target: string
  readonly connectedAt: number
  /** The number of the end that administrators had ordered last when it was given (grant-ends.ts). */
  readonly givenAfter?: number
  readonly secret?: string | undefined
  readonly account?: Account | undefined
  /** Scopes that the upstream wants besides: asked for when it is connected again. */
  readonly missing?: readonly string[] | undefined
  /** The grant exists, and its seal cannot be opened. */
  readonly unopened?: true
  /** Why it is of no use any more, as the end of a sentence; the person has to connect again. */
  readonly dead?: string | undefined
}

/** The grants of one person, by upstream. */
export type GrantsOfPerson = ReadonlyMap<string, Grant>
