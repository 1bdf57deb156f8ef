// Lets a request in: finds its endpoint and authenticates its caller, before the body is read, so that what an unknown
// caller sends is never buffered.

import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import type { Authenticator, PresentedRequest } from '../auth/authenticate.ts'
import { challenge, hasIssuer, metadataUrlOf } from '../auth/bearer.ts'
import { schemeOf } from '../auth/dpop.ts'
import type { Principal } from '../auth/principal.ts'
import { clientAddress } from '../config/policy/networks.ts'
import type { Endpoint, Snapshot } from '../config/snapshot.ts'
import { holdMemory, type HeldMemory, type MemoryAccount, type MemoryShare } from '../limits/memory.ts'
import type { TraceHeaders } from '../observe/traces/trace-context.ts'
import { endpointName, GatewayError, tenantId } from '../protocol/messages.ts'
import { quotaKeyOf, type EndpointContext } from '../relay/call/call.ts'
import type { PersonalViews } from '../vault/personal-views.ts'
import { unavailable } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { corsHeadersOf, type PreparedHeaders, readTarget, type ServerAddress } from './headers.ts'
import { requestIdHeader, type ClientReply, type ClientRequest, type ReplyHeaders } from './reply.ts'

/** The state that changes while the server runs. */
export interface ServerState {
  readonly snapshot: Snapshot
  /** Known once the port is bound. */
  readonly address: ServerAddress | undefined
  /** The gateway is not ready any more, but serves every request that still comes. */
  readonly leaving: boolean
  /** Requests are refused. */
  readonly draining: boolean
}

/** @throws GatewayError unavailable before the port is bound */
export function addressOf({ address }: ServerState): ServerAddress {
  if (address === undefined) throw new GatewayError('unavailable', 'The gateway is starting.')
  return address
}

/** Returns the address of the connection, or of the client behind proxies that the configuration trusts. */
export function clientAddressOf(
  { socket, headers }: Pick<ClientRequest, 'socket' | 'headers'>,
  { trustedProxies }: Pick<Snapshot, 'trustedProxies'>
): string | undefined {
  if (trustedProxies === undefined) return socket.remoteAddress
  return clientAddress(socket.remoteAddress, headers['x-forwarded-for']?.toString(), trustedProxies)
}

/** A request as its checks and its handler see it: that of Fastify, or one that went past it (direct/). */
export type RouteRequest = Pick<FastifyRequest, 'id' | 'method' | 'url' | 'headers' | 'params' | 'body' | 'context'> & {
  readonly raw: ClientRequest
  /** The begin of the request, in milliseconds of the steady clock; 0 where no route was looked for. */
  readonly since: number
  readonly routeOptions: Pick<FastifyRequest['routeOptions'], 'url'>
}

export interface RouteReply extends PreparedHeaders {
  readonly raw: ClientReply
  hijack(): unknown
}

/** The parameters of the routes `/t/:tenant/...` and `/t/:tenant/:endpoint/...`. */
export interface PathParams {
  readonly tenant?: string
  readonly endpoint?: string
}

/** @throws GatewayError not_found */
export function endpointOf({ tenant, endpoint }: PathParams, snapshot: Snapshot): EndpointContext {
  const found = tenant === undefined ? undefined : snapshot.tenants.get(tenantId(tenant))
  // `default` has the short path only: one endpoint, one resource URL, one audience.
  const named = endpoint === 'default' ? undefined : found?.endpoints.get(endpointName(endpoint ?? 'default'))
  if (found === undefined || named === undefined) throw noEndpoint()
  return { snapshot, tenant: found, endpoint: named }
}

const noEndpoint = (): GatewayError =>
  new GatewayError(
    'not_found',
    'There is no such endpoint. Endpoints are /t/{tenant}/mcp and /t/{tenant}/{endpoint}/mcp, as configured.'
  )

/** The last part of a path: Streamable HTTP, or one of the two of HTTP+SSE (2024-11-05 basic/transports). */
export type UrlSuffix = 'mcp' | 'sse' | 'messages'

/** `/t/{tenant}/mcp`, `/t/{tenant}/{endpoint}/sse` and so on. */
export function pathOf({ path }: Endpoint, suffix: UrlSuffix): string {
  return path.slice(0, -'mcp'.length) + suffix
}

/**
 * The resource (RFC 9728) of a URL, the URL of its metadata, and the aliases under which a token may name it. A client
 * refuses metadata whose resource is not the URL that it was given (section 3.3), so HTTP+SSE is a resource of its own.
 * A token for the Streamable HTTP URL is good there too, because it is the same endpoint.
 */
export function resourceOf(endpoint: Endpoint, suffix: UrlSuffix, publicUrl: string) {
  const streamable = publicUrl + endpoint.path
  const resource = suffix === 'mcp' ? streamable : publicUrl + pathOf(endpoint, 'sse')
  const aliases = [...(suffix === 'mcp' ? [] : [streamable]), ...(endpoint.audiences ?? [])]
  const url = publicUrl + pathOf(endpoint, suffix)
  const { name, requiredScopes } = endpoint
  return { endpoint: name, url, resource, metadata: metadataUrlOf(resource), aliases, requiredScopes }
}

/** The credential that lets a caller in, and until when. */
export interface Credential {
  /** Checks the caller again, for what outlives its request: rejects as the request itself would be refused now. */
  revalidate(): Promise<void>
  /** Epoch ms, leeway included. */
  readonly validUntil: number
}

/** The caller of a request, and the memory that it takes; also of a request that came to another process. */
export interface CallContext extends EndpointContext {
  readonly principal: Principal
  readonly person: string // The same for all clients of one person; for limits.
  readonly requestId: string
  readonly traceHeaders?: TraceHeaders | undefined
  /** The address of the peer of the connection: that of a proxy where there is one. */
  readonly address?: string | undefined
  /** The memory of the request and its answer, from before the body is read until the answer has left. */
  readonly memory: HeldMemory
  /** Length of the body as it was sent; 0 until it was read. Not given where it holds several requests. */
  readonly bodyBytes?: number | undefined
  readonly messageBytes?: readonly number[] // Of each message of a batch; of one request of it, its own.
  /** The headers of the HTTP answer. Not given: the process that the request came to has it. */
  readonly replyHeaders?: Record<string, string>
}

const traceHeadersOf = ({ traceparent, tracestate }: IncomingHttpHeaders): TraceHeaders | undefined =>
  traceparent === undefined ? undefined : { traceparent: String(traceparent), tracestate: tracestate?.toString() }

/** A request that has passed Host, Origin, authentication and the parser. */
export interface RequestContext extends CallContext, Credential {
  readonly incoming: ClientRequest
  readonly raw: ClientReply
  readonly headers: ReplyHeaders // CORS; sent with every reply.
  /** The URL of the resource metadata; undefined where there is no authorization server to get a token from. */
  readonly metadataUrl: string | undefined
  bodyBytes: number
  messageBytes?: readonly number[]
  sessionKey?: string // Of the session that it names, once that is known.
  replayed?: number // Messages that a client which came back to a stream was sent once more.
}

/** @returns the error, with the challenge that RFC 6750 section 3.1 wants where a scope is missing */
export function withScopeChallenge(error: unknown, { metadataUrl, incoming, principal }: RequestContext): unknown {
  if (!(error instanceof GatewayError) || error.code !== 'insufficient_scope') return error
  const { code, message, data } = error
  const scheme = schemeOf(incoming.rawHeaders)
  const asked = data['scopes'] as readonly string[]
  // Whoever has a key gets no more by signing in as somebody else.
  const metadata = principal.kind === 'token' ? metadataUrl : undefined
  const scopes = challenge(metadata, asked, 'insufficient_scope', message, scheme)
  return new GatewayError(code, message, { cause: error, data, headers: { 'WWW-Authenticate': scopes } })
}

type Admitted = RequestContext | Promise<RequestContext>

/**
 * @param sealer not ready until the key is loaded that event ids are sealed with; no session can be served before
 * @param views what callers have connected of their own
 * @returns what lets in (again: a proof is good once, and has been judged), or throws GatewayError not_found,
 * unavailable, or as the authenticator refuses
 */
export function createAdmission(
  state: ServerState,
  authenticator: Authenticator,
  sealer: Pick<Sealer, 'ready'>,
  memory: MemoryAccount,
  views: Pick<PersonalViews, 'load' | 'of'>
) {
  // Made once for each endpoint, because every request needs them.
  const perEndpoint = (): WeakMap<Endpoint, ReturnType<typeof resourceOf>> => new WeakMap()
  const resources = { mcp: perEndpoint(), sse: perEndpoint(), messages: perEndpoint() }

  function namesOf(endpoint: Endpoint, suffix: UrlSuffix): ReturnType<typeof resourceOf> {
    const known = resources[suffix]
    const found = known.get(endpoint)
    if (found !== undefined) return found
    const names = resourceOf(endpoint, suffix, addressOf(state).publicUrl)
    known.set(endpoint, names)
    return names
  }

  /** Most callers are known. */
  function authenticate(
    { tenant, endpoint }: EndpointContext,
    suffix: UrlSuffix,
    { rawHeaders, socket: connection }: ClientRequest,
    more: Pick<PresentedRequest, 'address' | 'method' | 'replyHeaders'>
  ): Principal | Promise<Principal> {
    const names = namesOf(endpoint, suffix)
    const presented = { rawHeaders, connection, ...more }
    return authenticator.known(tenant, names, presented) ?? authenticator.authenticate(tenant, names, presented)
  }

  /** A principal is made once for many requests. */
  const shares = new WeakMap<Principal, MemoryShare>()
  function shareOf(principal: Principal): MemoryShare {
    const found = shares.get(principal)
    if (found !== undefined) return found
    const share = memory.share(principal.tenant, quotaKeyOf(principal))
    shares.set(principal, share)
    return share
  }

  return (request: RouteRequest, reply: RouteReply, suffix: UrlSuffix, isAgain = false): Admitted => {
    const params = request.params as PathParams
    if (state.snapshot.isWhole === false && !state.snapshot.tenants.has(tenantId(params.tenant ?? '')))
      throw unavailable('Not all tenants can be served by this process now. Retry, or ask those who run the gateway.')
    const place = endpointOf(params, state.snapshot)
    // An endpoint has one spelling of its path: another one, with escapes, could slip past the rules of a proxy in
    // front. A slash at the end is what people paste.
    const path = pathOf(place.endpoint, suffix)
    if (request.url !== path && readTarget(request.url).path.replace(/\/$/, '') !== path) throw noEndpoint()
    if (!sealer.ready) throw unavailable('The store of the gateway cannot be reached. Retry in a second.')
    const address = clientAddressOf(request.raw, state.snapshot)
    const headers = { ...corsHeadersOf(reply), [requestIdHeader]: request.id }
    const admitted = (principal: Principal): RequestContext => {
      const { expiresAt } = principal
      return {
        ...views.of(place, principal),
        principal,
        validUntil: expiresAt === undefined ? Infinity : expiresAt + place.tenant.auth.leewaySeconds * 1000,
        async revalidate() {
          await authenticate(endpointOf(params, state.snapshot), suffix, request.raw, { address, method: undefined })
        },
        incoming: request.raw,
        raw: reply.raw,
        headers,
        replyHeaders: headers,
        requestId: request.id,
        traceHeaders: traceHeadersOf(request.raw.headers),
        address,
        metadataUrl: hasIssuer(place.tenant.auth) ? namesOf(place.endpoint, suffix).metadata : undefined,
        bodyBytes: 0,
        person: quotaKeyOf(principal),
        memory: holdMemory(shareOf(principal))
      }
    }
    const method = isAgain ? undefined : request.method
    const known = authenticate(place, suffix, request.raw, { address, method, replyHeaders: headers })
    if (!(known instanceof Promise) && views.load(place, known, request.raw.rawHeaders) === undefined)
      return admitted(known)
    return Promise.resolve(known).then(async (principal) => {
      await views.load(place, principal, request.raw.rawHeaders)
      return admitted(principal)
    })
  }
}
