// The one place that knows Fastify: routes, limits of the socket, and the order of the checks. Host and Origin, then the token, then the body.

import { fastify } from 'fastify'
import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import type { Authenticator } from '../auth/authenticate.ts'
import { metadataUrlOf, resourceMetadata } from '../auth/metadata.ts'
import type { Principal } from '../auth/principal.ts'
import type { Endpoint, Snapshot } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/errors.ts'
import { endpointName, tenantId } from '../protocol/ids.ts'
import { parseJson } from '../protocol/json.ts'
import { isObject } from '../protocol/messages.ts'
import type { Place } from '../relay/call.ts'
import type { Store } from '../store/port.ts'
import { checkContent } from './accept.ts'
import { checkOrigin, corsHeaders, hostCheck, mayCall, preflightHeaders, readTarget, refuseDuplicates } from './guard.ts'
import type { McpDoor } from './eras.ts'
import type { OldSseDoor } from './oldsse.ts'
import { pathOf, resourceOf } from './paths.ts'
import type { Door } from './paths.ts'
import { idOf, sendError, sendJson } from './reply.ts'
import type { Visit } from './visit.ts'

export interface ServerOptions {
  readonly snapshot: () => Snapshot
  /** Public URL and loopback port: known once bound. */
  readonly address: () => { readonly publicUrl: string, readonly loopbackPort: number | undefined }
  readonly authenticator: Authenticator
  readonly door: McpDoor
  readonly oldSse: OldSseDoor
  readonly store: Store
  readonly log: Log
  readonly requestId: () => string
  readonly draining: () => boolean
  /** Can sessions be served? Not before the key is there that event ids are made with. */
  readonly ready: () => boolean
}

/**
 * Of all headers of a request together, in bytes; more is answered 431. Twice what Node allows: Mcp-Name repeats the whole URI of a resource,
 * and Mcp-Param-* the arguments of a tool, in base64 where they are not plain ASCII.
 */
const maxHeaderSize = 32_768

const metadataPrefix = '/.well-known/oauth-protected-resource'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the hook that lets it in. */
    visit: Visit | undefined
  }
}

interface Urls {
  readonly resource: string
  readonly metadata: string
  readonly aliases: readonly string[]
}

interface Params { readonly tenant?: string, readonly endpoint?: string }

export function createServer (options: ServerOptions): FastifyInstance {
  const { snapshot, address, authenticator, door, oldSse, store, log, requestId, draining, ready } = options
  const server = fastify({
    logger: false,
    bodyLimit: snapshot().limits.bodyBytes,
    genReqId: requestId,
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    keepAliveTimeout: 72_000,
    requestTimeout: 30_000,
    maxRequestsPerSocket: 1_000,
    // Slow senders are looked for this often; Node's default lets them sit for half a minute more.
    http: { headersTimeout: 10_000, connectionsCheckingInterval: 2_000, maxHeaderSize },
    onProtoPoisoning: 'ignore', // Not used: the one parser below is ours.
    // Paths that the router cannot read never reach a hook.
    frameworkErrors: (error, request, reply) => fail(request, reply, error),
    routerOptions: { maxParamLength: 128 }
  })

  let checkedFor: Snapshot | undefined
  let checkHost: ReturnType<typeof hostCheck> | undefined
  function names (): ReturnType<typeof hostCheck> {
    const current = snapshot()
    if (checkHost === undefined || current !== checkedFor) {
      checkHost = hostCheck({ ...address(), hosts: current.hosts })
      checkedFor = current
    }
    return checkHost
  }

  const placeOf = ({ tenant, endpoint }: Params, current: Snapshot): Place | undefined => {
    const found = tenant === undefined ? undefined : current.tenants.get(tenantId(tenant))
    // `default` has the short path only: one endpoint, one resource URL, one audience.
    const named = endpoint === 'default' ? undefined : found?.endpoints.get(endpointName(endpoint ?? 'default'))
    return found === undefined || named === undefined ? undefined : { snapshot: current, tenant: found, endpoint: named }
  }
  const noPage = (): GatewayError => new GatewayError('not_found', 'There is no such page. MCP endpoints are /t/{tenant}/mcp and /t/{tenant}/{endpoint}/mcp.')
  const noEndpoint = (): GatewayError => new GatewayError('not_found', 'There is no such endpoint. Endpoints are /t/{tenant}/mcp and /t/{tenant}/{endpoint}/mcp, as configured.')

  const originsOf = (request: FastifyRequest): ReadonlySet<string> | undefined => {
    const { tenant } = (request.params ?? {}) as Params
    return tenant === undefined ? undefined : snapshot().tenants.get(tenantId(tenant))?.origins
  }
  // Some refusals come before the check of Origin: what they say is not for a page of just any origin either.
  const corsOf = (request: FastifyRequest): Record<string, string> => {
    const { origin } = request.headers
    return origin === undefined || !mayCall(origin, address().publicUrl, originsOf(request)) ? {} : corsHeaders(origin)
  }

  const fail = (request: FastifyRequest, reply: FastifyReply, error: unknown, id = idOf(request.body)): void => {
    reply.hijack()
    const ours = readable(error)
    if (!(ours instanceof GatewayError)) log.error({ err: error, requestId: request.id }, 'a request failed by a fault of the gateway')
    else log[ours.row.level]({ reason: ours.code, path: request.routeOptions.url, method: request.method, ...(ours.cause === undefined ? {} : { err: ours.cause }) }, 'refused')
    sendError(reply.raw, ours, request.id, corsOf(request), id)
  }

  server.removeAllContentTypeParsers()
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (request.visit !== undefined) request.visit.bodyBytes = body.length
    try {
      done(null, parseJson(body as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })
  server.setErrorHandler((error, request, reply) => fail(request, reply, error))
  server.setNotFoundHandler((request, reply) => fail(request, reply, noPage()))
  // Whatever comes with a DELETE is not read: some clients send the headers of their POSTs, Content-Type included.
  server.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true })

  // Not async: nothing here waits, and a promise on every request is not free.
  server.addHook('onRequest', (request, _reply, done) => {
    if (request.routeOptions.url?.startsWith('/health/') === true) return done()
    const { headers, raw } = request
    if (raw.httpVersionMajor !== 1) throw new GatewayError('invalid_request', 'The request line must end in HTTP/1.1.')
    refuseDuplicates(raw.rawHeaders)
    names()(headers.host)
    const { host } = readTarget(request.url)
    if (host !== undefined) names()(host)
    checkOrigin(headers.origin, address().publicUrl, originsOf(request))
    if (request.is404) throw noPage() // Here already, so that its body is neither buffered nor parsed.
    if (draining()) throw new GatewayError('shutting_down', 'The gateway is stopping. Retry: another process will answer.', { headers: { Connection: 'close' } })
    done()
  })

  const urlsOf = new WeakMap<Endpoint, Map<Door, Urls>>()
  async function enter (request: FastifyRequest, reply: FastifyReply, door: Door): Promise<Visit> {
    // All that a stream keeps of its request: not the body.
    const params = request.params as Params
    const { rawHeaders } = request.raw
    const place = placeOf(params, snapshot())
    // One endpoint, one spelling of its path: another one, with escapes, could slip past the rules of a proxy in front.
    if (place === undefined || readTarget(request.url).path !== pathOf(place.endpoint, door)) throw noEndpoint()
    if (!ready()) throw new GatewayError('unavailable', 'The store of the gateway cannot be reached. Retry in a second.', { headers: { 'Retry-After': '1' } })
    const principal = await principalOf(place, door, rawHeaders)
    const recheck = async (): Promise<void> => {
      const now = placeOf(params, snapshot())
      if (now === undefined) throw noEndpoint()
      await principalOf(now, door, rawHeaders)
    }
    return { ...place, principal, recheck, incoming: request.raw, raw: reply.raw, headers: corsHeaders(request.headers.origin), requestId: request.id, bodyBytes: 0 }
  }
  /** What an endpoint is called in tokens: made once, because it is asked with every request. */
  function urls (endpoint: Endpoint, door: Door): Urls {
    const known = urlsOf.get(endpoint) ?? new Map<Door, Urls>()
    let made = known.get(door)
    if (made === undefined) {
      const { publicUrl } = address()
      const { path, aliases } = resourceOf(endpoint, door)
      const resource = publicUrl + path
      known.set(door, made = { resource, metadata: metadataUrlOf(resource), aliases: aliases.map((alias) => publicUrl + alias) })
      urlsOf.set(endpoint, known)
    }
    return made
  }

  function principalOf ({ tenant, endpoint }: Place, door: Door, rawHeaders: readonly string[]): Promise<Principal> {
    const { resource, metadata, aliases } = urls(endpoint, door)
    return authenticator.authenticate(tenant, resource, metadata, rawHeaders, aliases)
  }

  // The token is judged before the body is read: what an unknown caller sends is never buffered.
  server.decorateRequest('visit', undefined)
  const entering = (door: Door) => async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    request.visit = await enter(request, reply, door)
    if (request.method === 'POST') checkContent(request.headers)
  }
  const through = (act: (visit: Visit, body: unknown) => Promise<void>) => (request: FastifyRequest, reply: FastifyReply): void => {
    const { visit, body } = request
    if (visit === undefined) throw new Error('a route without its onRequest hook')
    reply.hijack()
    const id = idOf(body)
    // Fastify keeps its request as long as the answer is open, and a stream is open for hours.
    request.body = undefined
    act(visit, body).catch((error: unknown) => fail(request, reply, error, id))
  }
  const preflight = (methods: string) => (request: FastifyRequest, reply: FastifyReply): void => {
    reply.hijack()
    const { origin, 'access-control-request-headers': wanted } = request.headers
    const cors = origin === undefined ? {} : { ...corsHeaders(origin), ...preflightHeaders(wanted) }
    reply.raw.writeHead(204, { Allow: methods, ...cors }).end()
  }
  // In the hook, so that no body is read for it.
  const notAllowed = (methods: string) => {
    const onRequest = async (): Promise<never> => {
      throw new GatewayError('method_not_allowed', `Use one of ${methods} here.`, { headers: { Allow: methods } })
    }
    return { onRequest, handler: onRequest }
  }
  const others: HTTPMethods[] = ['PUT', 'PATCH', 'HEAD', 'TRACE']

  for (const endpoint of ['/t/:tenant', '/t/:tenant/:endpoint']) {
    const mcp = { url: `${endpoint}/mcp`, onRequest: entering('mcp') }
    server.route({ method: 'POST', ...mcp, handler: through((visit, body) => door.post(visit, body)) })
    server.route({ method: 'GET', ...mcp, handler: through((visit) => door.get(visit)) })
    server.route({ method: 'DELETE', ...mcp, handler: through((visit) => door.remove(visit)) })
    server.route({ method: 'OPTIONS', url: mcp.url, handler: preflight('GET, POST, DELETE, OPTIONS') })
    server.route({ method: others, url: mcp.url, ...notAllowed('GET, POST, DELETE, OPTIONS') })

    // 2024-11-05 basic/transports. The 405 for a POST here is what tells clients of both transports to try this one.
    const sse = `${endpoint}/sse`
    server.route({ method: 'GET', url: sse, onRequest: entering('sse'), handler: through((visit) => oldSse.open(visit)) })
    server.route({ method: 'OPTIONS', url: sse, handler: preflight('GET, OPTIONS') })
    server.route({ method: ['POST', 'DELETE', ...others], url: sse, ...notAllowed('GET, OPTIONS') })
    const messages = `${endpoint}/messages`
    server.route({ method: 'POST', url: messages, onRequest: entering('messages'), handler: through((visit, body) => oldSse.post(visit, body)) })
    server.route({ method: 'OPTIONS', url: messages, handler: preflight('POST, OPTIONS') })
    server.route({ method: ['GET', 'DELETE', ...others], url: messages, ...notAllowed('POST, OPTIONS') })

    // RFC 9728 section 3.1: the well-known part is put in front of the path of the resource. Public by nature.
    for (const door of ['mcp', 'sse'] as const) {
      const url = `${metadataPrefix}${endpoint}/${door}`
      server.route({
        method: 'GET',
        url,
        handler: async (request, reply) => {
          const place = placeOf(request.params as Params, snapshot())
          if (place === undefined) throw noEndpoint()
          reply.hijack()
          sendJson(reply.raw, 200, resourceMetadata(address().publicUrl + resourceOf(place.endpoint, door).path, place.tenant.auth, `${place.tenant.id}/${place.endpoint.name}`), corsHeaders(request.headers.origin))
        }
      })
      server.route({ method: 'OPTIONS', url, handler: preflight('GET, OPTIONS') })
      server.route({ method: ['POST', 'DELETE', ...others], url, ...notAllowed('GET, OPTIONS') })
    }
  }

  server.get('/health/live', (_request, reply) => {
    reply.hijack()
    sendJson(reply.raw, 200, { status: 'live' })
  })
  server.get('/health/ready', async (_request, reply) => {
    reply.hijack()
    const away = draining() ? 'stopping' : await store.ping().then(() => ready() ? undefined : 'the key of the store cannot be had', () => 'the store cannot be reached')
    sendJson(reply.raw, away === undefined ? 200 : 503, away === undefined ? { status: 'ready' } : { status: 'not ready', reason: away }, away === undefined ? {} : { 'Retry-After': '1' })
  })
  return server
}

/** Fastify's own errors in our words. */
function readable (error: unknown): unknown {
  const code = isObject(error) ? error['code'] : undefined
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new GatewayError('too_large', 'The body is larger than limits.bodyBytes allows.', { headers: { Connection: 'close' } })
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new GatewayError('unsupported_media_type', 'The body must be sent with Content-Type: application/json (UTF-8).')
  if (code === 'FST_ERR_CTP_INVALID_CONTENT_LENGTH' || code === 'FST_ERR_CTP_EMPTY_JSON_BODY') return new GatewayError('invalid_request', 'The body does not have the length that Content-Length says.')
  if (code === 'FST_ERR_BAD_URL' || code === 'FST_ERR_MAX_PARAM_LENGTH') return new GatewayError('not_found', 'The path of the URL cannot be read.')
  return error
}
