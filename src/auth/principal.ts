// The principal: the caller as a verified token, a known API key, or `auth: none` names it. Nothing else that a caller
// sends is used.

import { hash } from 'node:crypto'
import { reservedIssuerPrefix, type AuthConfig, type KeyConfig } from '../config/auth/auth-config.ts'
import type { Caller, Person } from '../config/auth/upstream-auth.ts'
import type { TenantId } from '../protocol/messages.ts'

/** Returns what a caller who lacks scopes can do about it. */
export const adviceOnScopes = (principal: Pick<Principal, 'kind'> | undefined): string =>
  principal?.kind === 'key'
    ? 'Ask those who run this gateway to give them to the API key.'
    : 'Ask for a token with them.'

export interface Principal {
  readonly kind: 'key' | 'token' | 'anonymous'
  readonly tenant: TenantId
  /** `iss` of the token, or the reserved prefix and the kind. The same subject of two issuers is two people. */
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
  readonly scopes: ReadonlySet<string>
  /** The names in the claims `groups` and `roles`. */
  readonly groups: readonly string[]
  readonly roles: readonly string[]
  /** The claims that upstreams of the tenant are shown; not given: none. */
  readonly claims?: Caller['claims']
  /** `exp` in epoch milliseconds, without leeway; undefined where nothing expires. */
  readonly expiresAt: number | undefined
}

const ownPrincipal = (
  kind: 'key' | 'anonymous',
  tenant: TenantId,
  name: string,
  scopes: readonly string[],
  expiresAt?: number
): Principal => ({
  kind,
  tenant,
  issuer: reservedIssuerPrefix + kind,
  subject: name,
  clientId: name,
  scopes: new Set(scopes),
  groups: [],
  roles: [],
  expiresAt
})

/** @param expiresAt in epoch ms */
export const keyPrincipal = (tenant: TenantId, { name, scopes }: KeyConfig, expiresAt?: number): Principal =>
  ownPrincipal('key', tenant, name, scopes, expiresAt)

export const anonymousPrincipal = (tenant: TenantId): Principal => ownPrincipal('anonymous', tenant, 'anonymous', [])

/** Returns the key of a person, whatever their clients are: the same at every process. */
export const personKeyOf = ({ tenant, issuer, subject }: Person): string =>
  hash('sha256', JSON.stringify([tenant, issuer, subject]), 'base64url')

/** Whether a kill switch stops this caller or the whole tenant. */
export const isStopped = (
  { issuer, subject }: Pick<Principal, 'issuer' | 'subject'>,
  { stopped }: Pick<AuthConfig, 'stopped'>
): boolean =>
  stopped !== undefined &&
  (stopped === 'everybody' || stopped.some((each) => each.issuer === issuer && each.subject === subject))

/**
 * Whether the configuration would still let this principal in. It is for callers without a current request; a request
 * has a token, which tells more.
 */
export function isConfiguredPrincipal(
  { issuer, subject }: Pick<Principal, 'issuer' | 'subject'>,
  auth: AuthConfig
): boolean {
  const { mode, issuers, keys, requiredScopes } = auth
  if (isStopped({ issuer, subject }, auth)) return false
  const kind = issuer.startsWith(reservedIssuerPrefix) ? issuer.slice(reservedIssuerPrefix.length) : 'token'
  if (mode === 'none' || kind === 'anonymous') return mode === 'none' && kind === 'anonymous'
  if (kind === 'token') return issuers.some((each) => each.issuer === issuer)
  return keys.some(({ name, scopes }) => name === subject && requiredScopes.every((scope) => scopes.includes(scope)))
}
