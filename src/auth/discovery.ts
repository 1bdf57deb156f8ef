// Where an issuer publishes its keys: RFC 8414, then OpenID Connect Discovery.

import { isIP } from 'node:net'
import { allowInsecureRequests, customFetch, discoveryRequest, processDiscoveryResponse } from 'oauth4webapi'
import type { Fetch } from './fetch.ts'

/**
 * @param issuer configured by the operator; http is allowed, because whether it may be is decided when the
 * configuration is compiled
 * @returns `jwks_uri` of the issuer's metadata
 * @throws AggregateError with the problem of each of the two documents
 */
export async function discoverJwksUri(issuer: string, fetch: Fetch, signal: AbortSignal): Promise<string> {
  const problems: unknown[] = []
  for (const algorithm of ['oauth2', 'oidc'] as const) {
    try {
      const identifier = new URL(issuer)
      const response = await discoveryRequest(identifier, {
        algorithm,
        signal,
        [customFetch]: fetch,
        [allowInsecureRequests]: true
      })
      const metadata = await processDiscoveryResponse(identifier, response)
      // RFC 8414 section 3.3: identical, where the library compares normalised URLs.
      if (metadata.issuer !== issuer) throw new Error(`the metadata is of issuer ${metadata.issuer}, not of ${issuer}`)
      return trustedUri(issuer, metadata.jwks_uri)
    } catch (problem) {
      problems.push(problem)
    }
  }
  const said = problems.map((problem) => (problem instanceof Error ? problem.message : String(problem))).join('; ')
  throw new AggregateError(problems, `no usable metadata of issuer ${issuer}: ${said}`)
}

// SSRF: a hostile issuer could name an address that only the gateway can reach. Over https the server there must hold a
// certificate for its name before it sees a byte of a request; plain http and bare addresses are accepted only where
// the configured issuer URL has them.
function trustedUri(issuer: string, jwksUri: unknown): string {
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) throw new Error('the metadata has no jwks_uri')
  const from = new URL(issuer)
  const to = new URL(jwksUri)
  if (to.origin === from.origin) return jwksUri
  if (to.protocol !== 'https:')
    throw new Error(`jwks_uri ${jwksUri} is neither https nor of the issuer's own origin; set jwksUri if it is right`)
  if (isIP(to.hostname.replace(/^\[|\]$/g, '')) !== 0 && to.hostname !== from.hostname) {
    throw new Error(`jwks_uri ${jwksUri} is a bare address; set jwksUri if it is right`)
  }
  return jwksUri
}
