// Discovers the URLs of an identity provider from its metadata: RFC 8414, then OpenID Connect Discovery. The metadata
// may be hostile, so each URL is checked against the configured issuer.

import { isIP } from 'node:net'
import {
  allowInsecureRequests,
  customFetch,
  discoveryRequest,
  processDiscoveryResponse,
  type AuthorizationServer
} from 'oauth4webapi'
import { isAllowedHost } from '../config/formats.ts'
import type { Fetch } from '../egress/fetch.ts'

/** An issuer, and the further hosts that its metadata may name; not given: any host. */
interface Discovered {
  readonly issuer: string
  readonly hosts?: readonly string[] | undefined
}

/**
 * @param from its issuer is configured; whether it may be http is decided when the configuration is compiled
 * @returns `jwks_uri` of the issuer's metadata
 * @throws AggregateError with the problem of each of the two documents
 */
export async function discoverJwksUri(from: Discovered, fetch: Fetch, signal: AbortSignal): Promise<string> {
  return (await discover(from, fetch, signal, ['oauth2', 'oidc'], ['jwks_uri'])).jwks_uri as string
}

/**
 * The metadata of an OpenID provider where people sign in.
 * @throws as `discoverJwksUri`
 */
export const discoverProvider = (from: Discovered, fetch: Fetch): Promise<AuthorizationServer> =>
  discover(from, fetch, undefined, ['oidc', 'oauth2'], ['authorization_endpoint', 'token_endpoint'])

/**
 * A further URL of the metadata of a provider.
 * @returns undefined if the metadata has none
 * @throws Error for a URL that is not allowed for this issuer
 */
export function providerUrl(
  from: Discovered,
  metadata: AuthorizationServer,
  name: 'userinfo_endpoint' | 'end_session_endpoint'
): string | undefined {
  const url = metadata[name]
  if (url !== undefined) checkUri(from, name, url)
  return url
}

/**
 * Where an issuer answers what its tokens mean (RFC 7662).
 * @throws as `discoverJwksUri`
 */
export const discoverIntrospection = async (from: Discovered, fetch: Fetch): Promise<string> =>
  (await discover(from, fetch, undefined, ['oauth2', 'oidc'], ['introspection_endpoint']))
    .introspection_endpoint as string

/** @param needed members that are URLs to which the gateway or a browser will go */
async function discover(
  { issuer, hosts }: Discovered,
  fetch: Fetch,
  signal: AbortSignal | undefined,
  forms: ReadonlyArray<'oauth2' | 'oidc'>,
  needed: ReadonlyArray<'jwks_uri' | 'authorization_endpoint' | 'token_endpoint' | 'introspection_endpoint'>
): Promise<AuthorizationServer> {
  const problems: unknown[] = []
  for (const algorithm of forms) {
    try {
      const identifier = new URL(issuer)
      const response = await discoveryRequest(identifier, {
        algorithm,
        ...(signal && { signal }),
        [customFetch]: fetch,
        [allowInsecureRequests]: true
      })
      const metadata = await processDiscoveryResponse(identifier, response)
      // RFC 8414 section 3.3: identical, where the library compares normalised URLs.
      if (metadata.issuer !== issuer) throw new Error(`the metadata is of issuer ${metadata.issuer}, not of ${issuer}`)
      for (const name of needed) checkUri({ issuer, hosts }, name, metadata[name])
      return metadata
    } catch (problem) {
      problems.push(problem)
    }
  }
  const said = new Set(problems.map((problem) => (problem instanceof Error ? problem.message : String(problem))))
  throw new AggregateError(problems, `no usable metadata of issuer ${issuer}: ${[...said].join('; ')}`)
}

// SSRF: a hostile issuer could name an address that only the gateway can reach. Over https the server there must hold a
// certificate for its name before it sees a byte of a request; plain http and bare addresses are accepted only where
// the configured issuer URL has them. Where a tenant-admin may have named the issuer, it leads to hosts only that the
// tenant-admin might have named.
function checkUri({ issuer, hosts }: Discovered, name: string, uri: unknown): void {
  if (typeof uri !== 'string' || !URL.canParse(uri)) throw new Error(`the metadata has no ${name}`)
  const remedy = name === 'jwks_uri' ? '; set jwksUri if it is right' : ''
  const from = new URL(issuer)
  const to = new URL(uri)
  if (to.origin === from.origin) return
  if (hosts !== undefined && !isAllowedHost(to, hosts))
    throw new Error(`${name} ${uri} is at a host that is not among admin.allowedHosts`)
  if (to.protocol !== 'https:')
    throw new Error(`${name} ${uri} is neither https nor of the issuer's own origin${remedy}`)
  if (isIP(to.hostname.replace(/^\[|\]$/g, '')) !== 0 && to.hostname !== from.hostname) {
    throw new Error(`${name} ${uri} is a bare address${remedy}`)
  }
}
