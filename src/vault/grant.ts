// What a person has given for their own use of an upstream, as it is kept.

import type { Tokens } from './oauth/tokens.ts'

/** Tokens, and all that is needed to renew them without asking anybody. */
export interface Account {
  readonly tokens: Tokens
  /** As its provider calls it, for people. */
  readonly name?: string | undefined
  /** When the tokens were given: epoch ms. */
  readonly since: number
  /** When they were renewed last. */
  readonly renewedAt?: number
  readonly issuer: string
  readonly tokenEndpoint: string
  readonly revocationEndpoint?: string | undefined
  /** What the server takes to prove who the client is. */
  readonly authMethods?: readonly string[] | undefined
  readonly clientId: string
  /** Of a client that registered itself; that of the configuration is not kept. */
  readonly clientSecret?: string | undefined
  readonly clientMethod?: string | undefined
  readonly resource: string | undefined
  /** That it has, as far as is known. */
  readonly scopes: readonly string[]
  /** That were asked for. */
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
  /** It is there, and cannot be opened. */
  readonly unopened?: true
  /** Why it is of no use any more, as the end of a sentence; the person has to connect again. */
  readonly dead?: string | undefined
}

/** What one person has given, by upstream. */
export type GrantsOfPerson = ReadonlyMap<string, Grant>
