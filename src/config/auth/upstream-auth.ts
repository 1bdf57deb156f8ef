// What an upstream is shown of who calls, as the configuration says it.

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

/** Somebody who uses the gateway, whatever their hosts are. */
export interface Person {
  readonly tenant: TenantId
  readonly issuer: string
  readonly subject: string
}

/** The caller, as far as upstreams are shown it: never the credential. */
export interface Caller extends Person {
  readonly clientId: string
  readonly scopes: ReadonlySet<string>
  readonly groups: readonly string[]
  readonly roles: readonly string[]
  /** The claims of the token that the tenant shows its upstreams. */
  readonly claims?: Readonly<Record<string, string | readonly string[]>>
}

/**
 * Is the caller somebody who signed in at the provider through the login front of the tenant, so that the ID token from
 * there says who they are?
 * @param issuer of the token of the caller
 */
export const bringsIdToken = (
  { auth: { login } }: Pick<Tenant, 'auth'>,
  auth: TokenExchangeAuth,
  issuer: string
): boolean => auth.subjectToken === 'idToken' && login?.issuer === issuer && login.provider.issuer === auth.issuer
