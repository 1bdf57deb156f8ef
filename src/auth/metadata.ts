// Protected resource metadata (RFC 9728): what tells a host where to get a token for an endpoint.

import type { AuthConfig } from '../config/snapshot.ts'
import { advertisedScopes } from './challenge.ts'

export interface ResourceMetadata {
  readonly resource: string
  readonly authorization_servers?: readonly string[]
  readonly scopes_supported?: readonly string[]
  readonly bearer_methods_supported: readonly ['header']
  readonly resource_name?: string
}

/** RFC 9728 section 3.1: the well-known part goes between the host and the path of the resource. */
export function metadataUrlOf(resource: string): string {
  const url = new URL(resource)
  const path = url.pathname === '/' ? '' : url.pathname
  return `${url.origin}/.well-known/oauth-protected-resource${path}${url.search}`
}

/**
 * @param resource URL of the endpoint, exactly as clients connect to it and as tokens name it in `aud`
 * @param name what a person may be shown
 */
export function resourceMetadata(
  resource: string,
  auth: Pick<AuthConfig, 'issuers' | 'requiredScopes'>,
  name?: string
): ResourceMetadata {
  const scopes = advertisedScopes(auth.requiredScopes)
  return {
    resource,
    // MCP wants at least one here. A tenant with nothing but API keys has none to name, and RFC 9728 section 3.2
    // forbids empty arrays.
    ...(auth.issuers.length > 0 && { authorization_servers: auth.issuers.map(({ issuer }) => issuer) }),
    ...(scopes.length > 0 && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    ...(name !== undefined && { resource_name: name })
  }
}
