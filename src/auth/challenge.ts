// WWW-Authenticate (RFC 6750 section 3, RFC 9728 section 5.1).

export interface Challenge {
  readonly metadataUrl: string
  /** All that the operation needs, not only what is missing: a client replaces its scopes by these. */
  readonly scopes: readonly string[]
  /** Left out where no bearer token was presented (RFC 6750 section 3.1). */
  readonly error?: 'invalid_request' | 'invalid_token' | 'insufficient_scope' | undefined
  readonly description?: string | undefined
}

/** @returns the value of a WWW-Authenticate header */
export function challenge({ metadataUrl, scopes, error, description }: Challenge): string {
  const parameters: string[] = []
  if (error !== undefined) parameters.push(`error="${error}"`)
  if (error !== undefined && description !== undefined) parameters.push(`error_description="${quotable(description)}"`)
  parameters.push(`resource_metadata="${quotable(metadataUrl)}"`)
  const named = advertisedScopes(scopes)
  if (named.length > 0) parameters.push(`scope="${named.join(' ')}"`)
  return `Bearer ${parameters.join(', ')}`
}

/** RFC 6749 section 3.3 scope-token. */
export const scopeToken = /^[\x21\x23-\x5B\x5D-\x7E]+$/

/**
 * The scopes that may be named to a client. 2026-07-28 basic/authorization: not `offline_access`, which does not
 * concern a resource server.
 */
export function advertisedScopes(scopes: readonly string[]): string[] {
  return scopes.filter((scope) => scope !== 'offline_access' && scopeToken.test(scope))
}

// RFC 6750 section 3: characters of error_description. Anything else could end the quoted string or the header.
function quotable(text: string): string {
  return text.replaceAll('"', "'").replace(/[^\x20\x21\x23-\x5B\x5D-\x7E]/g, '?')
}
