// Where an issuer keeps its keys: RFC 8414, then OpenID Connect Discovery. Believes the document only about its own issuer.

import { isIP } from 'node:net'
import { allowInsecureRequests, customFetch, discoveryRequest, processDiscoveryResponse } from 'oauth4webapi'
import type { Fetch } from './fetch.ts'

/**
 * @param issuer configured by the operator; http is allowed, because whether it may be is decided when the configuration is compiled
 * @returns `jwks_uri` of the issuer's metadata
 * @throws AggregateError with what was wrong at each of the two places
 */
export async function discoverJwksUri (issuer: string, fetch: Fetch, signal: AbortSignal): Promise<string> {
  const problems: unknown[] = []
  for (const algorithm of ['oauth2', 'oidc'] as const) {
    try {
      const identifier = new URL(issuer)
      const response = await discoveryRequest(identifier, { algorithm, signal, [customFetch]: fetch, [allowInsecureRequests]: true })
      const metadata = await processDiscoveryResponse(identifier, response)
      // RFC 8414 section 3.3: identical, where the library compares normalised URLs.
      if (metadata.issuer !== issuer) throw new Error(`the metadata is of issuer ${metadata.issuer}, not of ${issuer}`)
      return believable(issuer, metadata.jwks_uri)
    } catch (problem) {
      problems.push(problem)
    }
  }
  const said = problems.map((problem) => problem instanceof Error ? problem.message : String(problem)).join('; ')
  throw new AggregateError(problems, `no usable metadata of issuer ${issuer}: ${said}`)
}

// A hostile issuer could name an address that only we can reach. Over https the address must hold a certificate for its name before it
// sees a byte of a request; plain http and bare addresses are believed only where the operator's own issuer URL has them.
function believable (issuer: string, jwksUri: unknown): string {
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) throw new Error('the metadata has no jwks_uri')
  const from = new URL(issuer)
  const to = new URL(jwksUri)
  if (to.origin === from.origin) return jwksUri
  if (to.protocol !== 'https:') throw new Error(`jwks_uri ${jwksUri} is neither https nor of the issuer's own origin; set jwksUri if it is right`)
  if (isIP(to.hostname.replace(/^\[|\]$/g, '')) !== 0 && to.hostname !== from.hostname) {
    throw new Error(`jwks_uri ${jwksUri} is a bare address; set jwksUri if it is right`)
  }
  return jwksUri
}
