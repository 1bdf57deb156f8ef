// Who calls: made from a verified token, a known API key, or `auth: none`, never from anything else that a caller
// sends.

import type { AuthConfig, KeyConfig } from '../config/snapshot.ts'
import type { TenantId } from '../protocol/messages.ts'

export interface Principal {
  readonly kind: 'key' | 'token' | 'anonymous'
  readonly tenant: TenantId
  /** `iss` of the token, or one of the two names below. The same subject of two issuers is two people. */
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
  readonly scopes: ReadonlySet<string>
  readonly groups: readonly string[]
  /** `exp` in epoch milliseconds, without leeway; undefined where nothing expires. */
  readonly expiresAt: number | undefined
}

/** No configured issuer may begin so: a token must never pass for an API key. */
export const reservedIssuerPrefix = 'urn:gatehouse:'
const keyIssuer = `${reservedIssuerPrefix}key`
const anonymousIssuer = `${reservedIssuerPrefix}anonymous`

export function keyPrincipal(tenant: TenantId, key: KeyConfig): Principal {
  return {
    kind: 'key',
    tenant,
    issuer: keyIssuer,
    subject: key.name,
    clientId: key.name,
    scopes: new Set(key.scopes),
    groups: [],
    expiresAt: undefined
  }
}

export function anonymousPrincipal(tenant: TenantId): Principal {
  return {
    kind: 'anonymous',
    tenant,
    issuer: anonymousIssuer,
    subject: 'anonymous',
    clientId: 'anonymous',
    scopes: new Set(),
    groups: [],
    expiresAt: undefined
  }
}

/**
 * Would the configuration still let this principal in? For callers that are away: one that is present sends a token,
 * which says more.
 */
export function isConfiguredPrincipal(
  { kind, issuer, subject }: Pick<Principal, 'kind' | 'issuer' | 'subject'>,
  { mode, issuers, keys, requiredScopes }: AuthConfig
): boolean {
  if (mode === 'none' || kind === 'anonymous') return mode === 'none' && kind === 'anonymous'
  if (kind === 'token') return issuers.some((each) => each.issuer === issuer)
  return keys.some(({ name, scopes }) => name === subject && requiredScopes.every((scope) => scopes.includes(scope)))
}
