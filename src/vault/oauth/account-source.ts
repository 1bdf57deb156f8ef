// Finds the authorization server for accounts of an upstream: from the configuration, or from the upstream's metadata.

import type { Fetch, FetchFor } from '../../egress/fetch.ts'
import { type AccountProvider, accountProviders } from '../../config/auth/account-providers.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { UserAuth } from '../../config/auth/upstream-auth.ts'
import { ConnectRefused } from './account-client.ts'
import { OtherIssuer } from './first-issuers.ts'
import { fetchOfProvider } from './provider-answers.ts'
import { discoverAuthorization, type FirstIssuer, readChallenge, type ServerAuthorization } from './discovery.ts'

/** Returns what is known of the provider that the configuration names. */
export const providerOf = ({ provider }: UserAuth): AccountProvider | undefined =>
  provider && accountProviders[provider]

const issuerOf = (auth: UserAuth, authorizationUrl: string): string =>
  auth.issuer ?? ((auth.authorizationUrl === undefined && providerOf(auth)?.issuer) || new URL(authorizationUrl).origin)

/** Returns the resource that token requests of an account name (RFC 8707); undefined: they name none. */
export function namedResource(auth: UserAuth, found: string): string | undefined {
  const named = auth.resource ?? (auth.provider === undefined ? found : undefined)
  return named === 'none' ? undefined : named
}

/** Requests about accounts of an upstream. */
export function accountFetch(fetch: FetchFor, { tenant, url, publicHosts }: HttpDefinition, auth: UserAuth): Fetch {
  const { issuer, authorizationUrl, tokenUrl, accountUrl, revocationUrl } = auth
  const own = fetch(tenant, [url, issuer, authorizationUrl, tokenUrl, accountUrl, revocationUrl], publicHosts)
  const provider = providerOf(auth)
  return provider === undefined ? own : fetchOfProvider(provider, tokenUrl ?? provider.tokenUrl, own)
}

function revocationOf(auth: UserAuth): { readonly revocation_endpoint?: string } {
  // Of the provider itself, and of nothing that stands in its place.
  const url = auth.revocationUrl ?? (auth.tokenUrl === undefined ? providerOf(auth)?.revocationUrl : undefined)
  return url === undefined ? {} : { revocation_endpoint: url }
}

/** @throws ConnectRefused if accounts cannot be connected there safely; DiscoveryError */
export async function accountSourceOf(
  definition: HttpDefinition,
  auth: UserAuth,
  fetch: Fetch,
  first?: FirstIssuer
): Promise<ServerAuthorization> {
  const { url } = definition
  const provider = providerOf(auth)
  const authorizationUrl = auth.authorizationUrl ?? provider?.authorizationUrl
  const tokenUrl = auth.tokenUrl ?? provider?.tokenUrl
  if (authorizationUrl !== undefined && tokenUrl !== undefined)
    return {
      resource: url,
      scopes: undefined,
      server: {
        issuer: issuerOf(auth, authorizationUrl),
        authorization_endpoint: authorizationUrl,
        token_endpoint: tokenUrl,
        ...(provider && { token_endpoint_auth_methods_supported: [provider.clientMethod] }),
        ...revocationOf(auth)
      }
    }
  const { resourceMetadata, scopes } = await readChallenge(await firstChallenge(url, fetch))
  const found = await discoverAuthorization(url, resourceMetadata, auth.issuer, fetch, first).catch(
    (error: unknown) => {
      if (!(error instanceof OtherIssuer)) throw error
      throw new ConnectRefused(`Nothing was connected. Tell those who run the gateway: ${error.message}`)
    }
  )
  checkAccountServer(found.server, auth)
  return { ...found, scopes: scopes ?? found.scopes }
}

/** @throws ConnectRefused if accounts cannot be connected there safely */
export function checkAccountServer(server: ServerAuthorization['server'], auth: UserAuth): void {
  if (server.authorization_endpoint === undefined || server.token_endpoint === undefined)
    throw new ConnectRefused(`${server.issuer} has no endpoints where an account could be connected.`)
  // 2025-11-25 basic/authorization "Authorization Code Protection": a server without `S256` may ignore PKCE.
  if (server.code_challenge_methods_supported?.includes('S256') !== true)
    throw new ConnectRefused(`${server.issuer} does not say that it supports PKCE with S256, which is needed.`)
  checkWhereItAsks(server, auth)
}

/**
 * Prevents a mix-up attack (RFC 9700 section 4.4): a server that the upstream chose could name the authorization
 * endpoint of another server, where people do sign in, and its own token endpoint, which would get their code. Without
 * `iss` in the response, the authorization endpoint must have the origin of the issuer.
 */
function checkWhereItAsks(server: ServerAuthorization['server'], { issuer }: UserAuth): void {
  const page = new URL(server.authorization_endpoint ?? '').origin
  if (issuer !== undefined || server.authorization_response_iss_parameter_supported === true) return
  if (page !== new URL(server.issuer).origin)
    throw new ConnectRefused(
      `${server.issuer} sends people to ${page}, and does not promise to say in its answers whose they are (RFC ` +
        `9207). Ask those who run the gateway: if ${page} is its page, they name the server in auth of the upstream: ` +
        `issuer: ${server.issuer}`
    )
}

/**
 * Reads the challenge of a request without credentials; undefined: there is none. Some servers accept `initialize`
 * without a token and demand one for later requests.
 */
async function firstChallenge(url: string, fetch: Fetch): Promise<string | undefined> {
  const clientInfo = { name: 'gatehouse', version: '0' }
  for (const [method, params] of [
    ['initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }],
    ['tools/list', {}]
  ] as const) {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 0, method, params })
    })
    const challenge = response.headers.get('www-authenticate')
    if (challenge !== null) return challenge
  }
  return undefined
}
