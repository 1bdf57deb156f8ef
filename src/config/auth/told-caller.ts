// Compiles the settings by which an upstream is sent the identity of the caller.

import type { TenantId } from '../../protocol/messages.ts'
import type { InsertedText } from '../references.ts'
import type { UpstreamDefinition } from '../snapshot.ts'
import { claimOf, type PrincipalText } from './principal-text.ts'

type PrincipalHeaders = Readonly<Record<string, PrincipalText>>

/** Returns the headers that follow from the caller, by upstream. */
export function principalHeadersOf(
  id: TenantId,
  inserted: readonly InsertedText[]
): ReadonlyMap<string, PrincipalHeaders> {
  const found = new Map<string, PrincipalHeaders>()
  for (const { path, principal } of inserted) {
    const [, tenant, , upstream = '', , header = ''] = path.map(String)
    if (principal === undefined || tenant !== id) continue
    found.set(upstream, { ...found.get(upstream), [header]: principal })
  }
  return found
}

export const withPrincipalHeaders = (headers: Readonly<Record<string, string>>, principalHeaders?: PrincipalHeaders) =>
  principalHeaders && {
    principalHeaders,
    headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !Object.hasOwn(principalHeaders, name)))
  }

/** What a claim of an assertion is called as a part of a text: those without a name of their own are of the token. */
export const principalNameOf = (claim: string): string =>
  claim === 'groups' || claim === 'roles' || claim === 'scopes' ? claim : `claims.${claim}`

/** Returns the claims of the caller that an upstream is sent. */
export const toldClaimsOf = (definition: UpstreamDefinition): string[] =>
  definition.type === 'http'
    ? [
        ...Object.values(definition.principalHeaders ?? {}).flat(),
        ...(definition.auth?.type === 'signed' ? definition.auth.claims : []).map((claim) => ({
          name: principalNameOf(claim)
        }))
      ].flatMap((part) => (typeof part === 'string' ? [] : (claimOf(part) ?? [])))
    : []
