// Discovers the authorization server of an MCP server over HTTP (2026-07-28 basic/authorization/
// authorization-server-discovery; RFC 9728, RFC 8414). All metadata is untrusted: its URLs are requested only through
// the egress guard, and each document must name its own origin.

import {
  type AuthorizationServer,
  processDiscoveryResponse,
  processGenericTokenEndpointResponse,
  processResourceDiscoveryResponse,
  type ResourceServer,
  WWWAuthenticateChallengeError
} from 'oauth4webapi'
import type { Fetch } from '../../egress/fetch.ts'

/** How to be authorized at a server, as far as the server says. */
export interface ServerAuthorization {
  /** The resource that tokens are requested for (RFC 8707). */
  readonly resource: string
  readonly server: AuthorizationServer
  /** The scopes that the server lists; undefined: it names none. */
  readonly scopes: readonly string[] | undefined
}

/** The parameters of `WWW-Authenticate: Bearer` that count. */
export interface BearerChallenge {
  readonly resourceMetadata: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly error: string | undefined
}

/** The first authorization server to which a client secret was sent (first-issuers.ts). */
export interface FirstIssuer {
  /** @returns undefined if there was none yet */
  read(): Promise<string | undefined>
  /** @throws OtherIssuer if another issuer was stored before */
  keep(issuer: string): Promise<void>
}

/** An answer of a server or its authorization server that cannot be used. The message goes to operators. */
class DiscoveryError extends Error {}

/** The most authorization servers that a resource may name; the first one is taken. */
const maxServers = 16
const maxScopes = 200
/** The most further scopes: a server may name new ones at each refusal. */
const maxScopesBesides = 32

/** @param header of an answer with 401 or 403 (RFC 6750 section 3) */
export async function readChallenge(header: string | undefined): Promise<BearerChallenge> {
  const none = { resourceMetadata: undefined, scopes: undefined, error: undefined }
  if (header === undefined) return none
  try {
    const refused = new Response(null, { status: 401, headers: { 'www-authenticate': header } })
    // The library parses the challenges of any response.
    await processGenericTokenEndpointResponse({ issuer: 'https://unused.invalid' }, { client_id: 'unused' }, refused)
  } catch (error) {
    if (!(error instanceof WWWAuthenticateChallengeError)) return none
    const bearer = error.cause.find(({ scheme }) => scheme.toLowerCase() === 'bearer')?.parameters
    if (bearer === undefined) return none
    return { resourceMetadata: bearer['resource_metadata'], scopes: scopesIn(bearer.scope), error: bearer.error }
  }
  return none
}

/** @param text of a challenge, of metadata, or of an answer with tokens. @returns undefined where it names none */
export function scopesIn(text: unknown): readonly string[] | undefined {
  if (typeof text !== 'string') return undefined
  const scopes = text.split(' ').filter((scope) => /^[\x21\x23-\x5B\x5D-\x7E]{1,500}$/.test(scope))
  return scopes.length === 0 ? undefined : scopes.slice(0, maxScopes)
}

/** @returns the further scopes of earlier refusals together with those of this refusal, at most `maxScopesBesides` */
export const scopesBesides = (known: readonly string[], more: readonly string[] = []): readonly string[] =>
  [...new Set([...known, ...more])].slice(0, maxScopesBesides)

/**
 * @param url of the MCP server
 * @param metadataUrl the one that the server's challenge names, if there is one
 * @param issuer the configured issuer, for a server that names several or none
 * @param first given if a secret is to be sent there and the configuration names no issuer
 * @throws DiscoveryError, OtherIssuer, EgressRefused, Error where nobody answers
 */
export async function discoverAuthorization(
  url: string,
  metadataUrl: string | undefined,
  issuer: string | undefined,
  fetch: Fetch,
  first?: FirstIssuer
): Promise<ServerAuthorization> {
  const found = await authorizationAt(url, metadataUrl, issuer, fetch, first)
  await first?.keep(found.server.issuer)
  return found
}

async function authorizationAt(
  url: string,
  metadataUrl: string | undefined,
  issuer: string | undefined,
  fetch: Fetch,
  first: FirstIssuer | undefined
): Promise<ServerAuthorization> {
  const target = new URL(url)
  const found = await protectedResource(target, metadataUrl, fetch)
  if (found === undefined) {
    const server = issuer === undefined ? await serverOfOrigin(target, fetch) : await serverMetadata(issuer, fetch)
    return { resource: target.href, server, scopes: undefined }
  }
  const { scopes_supported: scopes } = found
  return {
    resource: found.resource,
    server: await authorizationServerOf(found, issuer, fetch, await first?.read()),
    scopes: scopesIn(Array.isArray(scopes) ? scopes.join(' ') : undefined)
  }
}

/**
 * Selects one of the authorization servers that a resource names.
 * @param before the one that was used before: it is taken again if it is still among them
 * @throws as `discoverAuthorization`
 */
export async function authorizationServerOf(
  { resource, authorization_servers: named = [] }: ResourceServer,
  issuer: string | undefined,
  fetch: Fetch,
  before?: string
): Promise<AuthorizationServer> {
  const { origin } = new URL(resource)
  if (named.length === 0 || named.length > maxServers || !named.every((each) => typeof each === 'string'))
    throw new DiscoveryError(`the resource metadata of ${origin} names no usable list of authorization servers`)
  if (issuer !== undefined && !named.includes(issuer))
    throw new DiscoveryError(`${origin} takes tokens of ${named.join(', ')}, and the configuration names ${issuer}`)
  const usual = before !== undefined && named.includes(before) ? before : (named[0] as string)
  return await serverMetadata(issuer ?? usual, fetch)
}

/** @returns undefined if the server has no such metadata, as before 2025-06-18 */
export async function protectedResource(
  target: URL,
  metadataUrl: string | undefined,
  fetch: Fetch
): Promise<ResourceServer | undefined> {
  const path = target.pathname === '/' ? '' : target.pathname
  const wellKnown = `${target.origin}/.well-known/oauth-protected-resource`
  // If the challenge names a URL, only that one is read.
  const places = metadataUrl === undefined ? [...new Set([wellKnown + path, wellKnown])] : [metadataUrl]
  for (const place of places) {
    // The URL must have the server's own origin.
    if (!URL.canParse(place) || new URL(place).origin !== target.origin)
      throw new DiscoveryError(`its challenge names resource metadata at ${origins(place)}, not at ${target.origin}`)
    const response = await fetch(place, { headers: { accept: 'application/json' } })
    if (response.status !== 200) {
      if (metadataUrl === undefined && response.status >= 400 && response.status < 500) continue
      throw new DiscoveryError(`the resource metadata of ${target.origin} answers HTTP ${response.status}`)
    }
    const { resource } = (await json(response.clone(), place)) as { readonly resource?: unknown }
    if (typeof resource !== 'string' || !covers(resource, target))
      throw new DiscoveryError(`the resource metadata of ${target.origin} is of another resource than ${target.href}`)
    return { ...(await processResourceDiscoveryResponse(new URL(resource), response)), resource }
  }
  return undefined
}

/** RFC 9728 section 3.3; servers with several URLs call the path above them the resource. */
function covers(resource: string, target: URL): boolean {
  if (!URL.canParse(resource)) return false
  const { origin, pathname, search, hash } = new URL(resource)
  if (origin !== target.origin || hash !== '' || (search !== '' && search !== target.search)) return false
  const [above, own] = [pathname, target.pathname].map((path) => (path.endsWith('/') ? path : `${path}/`))
  return (own as string).startsWith(above as string)
}

/**
 * Reads the metadata of an authorization server, at each well-known URL in turn.
 * @throws DiscoveryError if there is none, or it is of another issuer (RFC 8414 section 3.3)
 */
export async function serverMetadata(issuer: string, fetch: Fetch): Promise<AuthorizationServer> {
  checkFoundUrl('its authorization server', issuer)
  const { origin, pathname, search, hash } = new URL(issuer)
  if (search + hash !== '') throw new DiscoveryError(`the issuer ${issuer} has a query or a fragment`)
  const path = pathname.replace(/\/$/, '')
  const places = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`])
  ]
  for (const place of places) {
    const response = await fetch(place, { headers: { accept: 'application/json' } })
    if (response.status !== 200) continue
    const server = await checkedMetadata(issuer, response)
    if (server.issuer !== issuer)
      throw new DiscoveryError(`the metadata at ${place} is of issuer ${server.issuer}, not of ${issuer}`)
    return server
  }
  throw new DiscoveryError(`the authorization server ${issuer} has no metadata: ${places.join(', ')}`)
}

/** 2025-03-26 basic/authorization: the server is its own authorization server, with metadata or the usual paths. */
async function serverOfOrigin({ origin }: URL, fetch: Fetch): Promise<AuthorizationServer> {
  const response = await fetch(`${origin}/.well-known/oauth-authorization-server`, {
    headers: { accept: 'application/json' }
  })
  if (response.status === 200) return await checkedMetadata(origin, response)
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    code_challenge_methods_supported: ['S256']
  }
}

const usedEndpoints = [
  'authorization_endpoint',
  'token_endpoint',
  'registration_endpoint',
  'revocation_endpoint',
  'userinfo_endpoint'
] as const

async function checkedMetadata(issuer: string, response: Response): Promise<AuthorizationServer> {
  const server = await processDiscoveryResponse(new URL(issuer), response)
  for (const name of usedEndpoints) {
    const endpoint = server[name]
    if (endpoint !== undefined) checkFoundUrl(`${name} of ${issuer}`, endpoint)
  }
  return server
}

/** @throws DiscoveryError for what is no URL that a browser or the gateway may be sent to */
function checkFoundUrl(what: string, url: unknown): void {
  if (typeof url !== 'string' || url.length > 2_048 || !/^https?:\/\/[\x21-\x7e]+$/.test(url) || !URL.canParse(url))
    throw new DiscoveryError(`${what} is no usable URL`)
  const { protocol, hostname, username, password } = new URL(url)
  if (username + password !== '') throw new DiscoveryError(`${what} carries a user name or password`)
  // The URL standard allows characters such as `$(` in a host, which no host name has.
  if (!/^(?:[a-z\d.-]+|\[[\da-f:]+\])$/.test(hostname)) throw new DiscoveryError(`${what} names no usable host`)
  // RFC 6749 section 3.1. Loopback is for development, and the guard decides whether it may be reached at all.
  if (protocol !== 'https:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname))
    throw new DiscoveryError(`${what} is plain http`)
}

async function json(response: Response, place: string): Promise<object> {
  const value: unknown = await response.json().catch(() => undefined)
  if (typeof value !== 'object' || value === null) throw new DiscoveryError(`${place} does not answer with an object`)
  return value
}

const origins = (url: string): string => (URL.canParse(url) ? new URL(url).origin : 'no URL')
