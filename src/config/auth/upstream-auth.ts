// The types of `auth` of an upstream, and of the caller whose identity it is sent.

import type { TenantId } from '../../protocol/messages.ts'
import type { TenantInput } from '../schema/config.ts'
import type { Tenant } from '../snapshot.ts'

/** The page of the connections of a person in a tenant. */
export const connectionsPath = (tenant: string): string => `/t/${tenant}/connections`

/** From the schema, because nothing of it is compiled. */
export type UpstreamAuth = NonNullable<Extract<TenantInput['upstreams'][string], { url: string }>['auth']>
export type StdioAuth = NonNullable<Extract<TenantInput['upstreams'][string], { command: string }>['auth']>
export type UserAuth = Extract<UpstreamAuth, { type: 'user' }>
export type TokenExchangeAuth = Extract<UpstreamAuth, { type: 'tokenExchange' }>
export type SignedAuth = Extract<UpstreamAuth, { type: 'signed' }>
export type ClientCredentialsAuth = Extract<UpstreamAuth, { type: 'clientCredentials' }>

/** A person who uses the gateway, through any hosts. */
export interface Person {
  readonly tenant: TenantId
  readonly issuer: string
  readonly subject: string
}

/** The members of a caller that upstreams may be sent: never the credential. */
export interface Caller extends Person {
  readonly clientId: string
  readonly scopes: ReadonlySet<string>
  readonly groups: readonly string[]
  readonly roles: readonly string[]
  /** The claims of the token that the tenant shows its upstreams. */
  readonly claims?: Readonly<Record<string, string | readonly string[]>>
}

/**
 * Whether the caller signed in through the login front of the tenant, so that there is an ID token of the provider.
 * @param issuer the issuer of the caller's token
 */
export const bringsIdToken = (
  { auth: { login } }: Pick<Tenant, 'auth'>,
  auth: TokenExchangeAuth,
  issuer: string
): boolean => auth.subjectToken === 'idToken' && login?.issuer === issuer && login.provider.issuer === auth.issuer
