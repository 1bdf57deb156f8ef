// Who calls. Made from a verified token, a known key or the word of the operator, never from anything else a caller can write.

import type { AuthConfig, KeyConfig } from '../config/snapshot.ts'
import type { TenantId } from '../protocol/ids.ts'

export interface Principal {
  readonly kind: 'key' | 'token' | 'anonymous'
  readonly tenant: TenantId
  /** `iss` of the token, or one of the two names below. Part of who it is: the same subject of two issuers is two people. */
  readonly issuer: string
  readonly subject: string
  readonly clientId: string
  readonly scopes: ReadonlySet<string>
  readonly groups: readonly string[]
  /** `exp` in epoch milliseconds, without leeway; undefined for what does not end by itself. */
  readonly expiresAt: number | undefined
}

/** Issuers of ours begin so, and no configured issuer may: a token must never pass for a key. */
export const ownIssuers = 'urn:gatehouse:'
export const keyIssuer = `${ownIssuers}key`
export const anonymousIssuer = `${ownIssuers}anonymous`

export function keyPrincipal (tenant: TenantId, key: KeyConfig): Principal {
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

export function anonymousPrincipal (tenant: TenantId): Principal {
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

/** Does the configuration still know whom this is? For those who are away; whoever is there brings a token, which says more. */
export function isKnown ({ kind, issuer, subject }: Pick<Principal, 'kind' | 'issuer' | 'subject'>, { mode, issuers, keys, requiredScopes }: AuthConfig): boolean {
  if (mode === 'none' || kind === 'anonymous') return mode === 'none' && kind === 'anonymous'
  if (kind === 'token') return issuers.some((each) => each.issuer === issuer)
  return keys.some(({ name, scopes }) => name === subject && requiredScopes.every((scope) => scopes.includes(scope)))
}
