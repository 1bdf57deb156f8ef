// Requests to an identity provider, which may be hostile or broken: no redirects, no compression, few bytes, little
// time. And where it publishes its keys: RFC 8414, then OpenID Connect Discovery.

import { isIP } from 'node:net'
import type { Dispatcher } from 'undici'
import {
  allowInsecureRequests,
  customFetch,
  discoveryRequest,
  processDiscoveryResponse,
  type AuthorizationServer
} from 'oauth4webapi'
import { isAllowedHost } from '../config/formats.ts'
import { deadline, steadyClock } from '../time/clock.ts'
import type { EgressGuard } from './egress-guard.ts'

interface FetchInit {
  /** Default GET. */
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: URLSearchParams | string | null | undefined
  readonly signal?: AbortSignal | undefined
}

/** A request whose response is complete and limited in size. Another implementation must keep the same promises. */
export type Fetch = (url: string, init?: FetchInit) => Promise<Response>

interface FetchOptions {
  readonly maxBytes?: number
  /** For everything together: name, connection, headers, body. */
  readonly timeoutMs?: number
  /** Where it may go. Default: wherever the URL leads, because an operator wrote it. */
  readonly guard?: EgressGuard
  /** Who is answerable for where it goes, which the guard counts together. */
  readonly owner?: string
}

/**
 * @throws Error for redirects, compressed, oversized and slow answers, and where there is no connection; EgressRefused
 * for where it may not go
 */
export function createFetch({ maxBytes = 256 * 1024, timeoutMs = 5000, guard, owner = '' }: FetchOptions = {}): Fetch {
  let dispatcher: Dispatcher | undefined
  return async (url, { method = 'GET', headers, body, signal } = {}) => {
    // Loaded by the first of few requests: it takes 5 MB, and a tenth of a second of the start.
    const { Agent, buildConnector, request } = await import('undici')
    guard?.check(new URL(url))
    if (guard !== undefined)
      dispatcher ??= new Agent({
        // Few connections: each has a connector of its own, because it depends on the port what a name may lead to.
        connect: (to, callback) => buildConnector({ lookup: guard.lookup(portOf(to), owner) })(to, callback)
      })
    const limit = deadline(steadyClock, timeoutMs, signal)
    try {
      const answer = await request(url, {
        method: method as 'GET' | 'POST',
        ...(body !== undefined && body !== null && { body: String(body) }),
        headers: { ...headers, 'accept-encoding': 'identity' },
        signal: limit.signal,
        ...(dispatcher && { dispatcher }),
        // One request in minutes: a kept-alive connection would be stale.
        reset: true
      })
      const bytes = await bounded(answer.body, maxBytes)
      const { statusCode: status, headers: received } = answer
      // SSRF: a redirect could lead to any address that the gateway can reach and the provider cannot.
      if (status >= 300 && status < 400)
        throw new Error(`${url} redirects, which is not followed; configure the final URL`)
      // The limit counts bytes as received, which says nothing of their size when inflated.
      if ((received['content-encoding'] ?? 'identity') !== 'identity')
        throw new Error(`${url} answers compressed although told not to`)
      const { 'content-type': type, 'cache-control': cache, 'www-authenticate': challenge } = received
      return new Response(status === 204 ? null : bytes, {
        status,
        headers: {
          ...(typeof type === 'string' && { 'content-type': type }),
          ...(typeof cache === 'string' && { 'cache-control': cache }),
          ...(challenge !== undefined && { 'www-authenticate': [challenge].flat().join(', ') })
        }
      })
    } catch (error) {
      throw limit.passed() ? new Error(`${url} did not answer within ${timeoutMs / 1000} s`) : error
    } finally {
      limit.close()
    }
  }
}

/**
 * Requests of somebody to what an operator wrote, and to what is found there.
 * @param owner as of `FetchOptions`
 * @param written URLs of the configuration: to their origins it may go wherever they lead
 * @param publicHosts but not to these hosts, which no operator named
 */
export type FetchFor = (
  owner: string,
  written: ReadonlyArray<string | undefined>,
  publicHosts?: readonly string[]
) => Fetch

/** @param options with the guard of every other URL, such as one found in metadata */
export function createFetchFor(options: Omit<FetchOptions, 'owner'> & { readonly guard: EgressGuard }): FetchFor {
  const { guard: _, ...unguarded } = options
  const anywhere = createFetch(unguarded)
  return (owner, written, publicHosts = []) => {
    const guarded = createFetch({ ...options, owner })
    const free = written.flatMap((url) => (url === undefined ? [] : new URL(url)))
    const origins = new Set(free.filter(({ hostname }) => !publicHosts.includes(hostname)).map(({ origin }) => origin))
    return (url, init) => (origins.has(new URL(url).origin) ? anywhere : guarded)(url, init)
  }
}

export const portOf = ({ port, protocol }: { readonly port: string; readonly protocol: string }): number =>
  port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port)

async function bounded(body: AsyncIterable<Buffer>, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Buffer[] = []
  let size = 0
  // A throw out of the loop destroys the stream and its socket.
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return new Uint8Array(Buffer.concat(chunks))
}

/** Whom to ask for its metadata, and where that may lead besides its own origin; not given: anywhere. */
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
 * @returns undefined where they have none
 * @throws Error for one to which nobody may be sent
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
