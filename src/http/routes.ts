// Every URL of the gateway, with its methods; any other method is answered 405 with those. Both eras share the URL of
// Streamable HTTP: each request shows which one it belongs to, and nothing is remembered of the one before.

import type { FastifyInstance } from 'fastify'
import type { Authenticator } from '../auth/authenticate.ts'
import { hasIssuer, resourceMetadata } from '../auth/bearer.ts'
import type { Login } from '../login/login.ts'
import type { MemoryAccount } from '../limits/memory.ts'
import { otherRequest } from '../observe/other-requests.ts'
import type { RefusalObservers } from '../observe/refused-requests.ts'
import { classifyHttpBody, isModernVersionHeader } from '../protocol/envelope.ts'
import { GatewayError, isObject, latestModern } from '../protocol/messages.ts'
import type { Vault } from '../vault/vault.ts'
import {
  addressOf,
  createAdmission,
  endpointOf,
  resourceOf,
  type RouteReply,
  type RouteRequest,
  type PathParams,
  type RequestContext,
  type ServerState,
  type UrlSuffix
} from './admission.ts'
import type { Connections } from './sockets.ts'
import { answerPreflight, checkContent, corsHeadersOf } from './headers.ts'
import type { HttpSseHandler } from './legacy/http-sse.ts'
import type { LegacyHandler } from './legacy/legacy.ts'
import type { ModernHandler } from './modern/modern.ts'
import { oauthPaths, sendNoAuthorizationServer } from './login/no-authorization-server.ts'
import { idOf, sendAccepted, sendJson, stopping, type ReadId } from './reply.ts'
import { sendSigningKeys } from './account-pages/signing-keys-route.ts'
import { addConnectionRoutes } from './account-pages/connection-routes.ts'
import { addLoginRoutes } from './login/login-routes.ts'
import { holdRequest, reserveRequest } from './request-memory.ts'
import type { RequestRates } from './rates/request-rates.ts'
import type { Throttle } from './rates/throttle.ts'

export interface RoutesOptions {
  readonly state: ServerState
  readonly authenticator: Authenticator
  /** Each rejects with GatewayError where it refuses a request as a whole. */
  readonly handlers: {
    readonly legacy: LegacyHandler
    readonly modern: ModernHandler
    readonly httpSse: HttpSseHandler
    readonly login: Login
  }
  readonly memory: MemoryAccount
  readonly vault: Vault
  readonly connections: Connections
  readonly rates: { readonly requests: RequestRates; readonly throttle: Throttle }
  readonly observers: RefusalObservers
}

interface Route {
  /** Runs before the body is read. @returns nothing where there was nothing to wait for. @throws GatewayError */
  readonly onRequest?: (request: RouteRequest, reply: RouteReply) => Promise<void> | undefined
  readonly handler: (request: RouteRequest, reply: RouteReply) => void
}

export type AdmittedRoute = Required<Route>

/** Headers that come twice have been refused. */
type SingleHeaders = Readonly<Record<string, string | undefined>>

type Method = 'GET' | 'POST' | 'DELETE'

/**
 * @param refuse answers with an error instead
 * @returns the routes of an endpoint that do not stream
 */
export function addRoutes(
  server: FastifyInstance,
  options: RoutesOptions,
  refuse: (request: RouteRequest, reply: RouteReply, error: unknown, id: ReadId) => void
): Readonly<Record<'POST' | 'DELETE', AdmittedRoute>> {
  const { state, authenticator, memory, vault, rates, observers } = options
  const { sealer } = vault
  const { legacy, modern, httpSse, login } = options.handlers
  const admit = createAdmission(state, authenticator, sealer, memory, vault.views)

  /** @param routes in the order in which their methods are named in Allow */
  function serve(url: string, routes: Partial<Record<Method, Route>>): void {
    const methods = Object.keys(routes)
    const allow = [...methods, 'OPTIONS'].join(', ')
    for (const [method, { onRequest, handler }] of Object.entries(routes))
      server.route({
        method,
        url,
        handler,
        ...(onRequest && { onRequest: async (request, reply) => await onRequest(request, reply) })
      })
    server.route({ method: 'OPTIONS', url, handler: (_request, reply) => answerPreflight(reply, allow) })
    const others = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'TRACE'].filter((name) => !methods.includes(name))
    // In the hook, so that no body is read for it.
    const onRequest = async (): Promise<never> => {
      throw new GatewayError('method_not_allowed', `Use one of ${allow} here.`, { headers: { Allow: allow } })
    }
    server.route({ method: others, url, onRequest, handler: onRequest })
  }

  /** Makes the handler of a route for callers that are let in. */
  function admitted(suffix: UrlSuffix, act: (context: RequestContext, body: unknown) => Promise<void>): AdmittedRoute {
    return {
      onRequest(request, reply) {
        const context = admit(request, reply, suffix)
        const again = () => admit(request, reply, suffix, true)
        if (context instanceof Promise)
          return context.then((found) => letIn(request, reply, { context: found, again }, options))
        return letIn(request, reply, { context, again }, options)
      },
      handler(request, reply) {
        const { context, body } = request
        if (context === undefined) throw new Error('a route without its onRequest hook')
        reply.hijack()
        const id = body === undefined ? null : idOf(body)
        // Fastify holds its request as long as the answer is open, and a stream is open for hours.
        request.body = undefined
        const release = holdRequest(context)
        const note = otherRequest(observers, request, context, body)
        const served = (): void => {
          release()
          note?.()
        }
        const failed = (error: unknown): void => {
          refuse(request, reply, error, id)
          release()
        }
        try {
          act(context, body).then(served, failed)
        } catch (error) {
          failed(error)
        }
      }
    }
  }

  /** Not async: a function that waits holds the body, for as long as a stream is open. */
  function post(context: RequestContext, body: unknown): Promise<void> {
    const headers = context.incoming.headers as SingleHeaders
    const routing = {
      version: headers['mcp-protocol-version'],
      method: headers['mcp-method'],
      name: headers['mcp-name']
    }
    // The one that was counted is the first of them.
    if (Array.isArray(body)) rates.requests.count(context, body.length - 1)
    const message = classifyHttpBody(routing, body)
    if (message.kind === 'legacy') {
      const post = (): Promise<void> => legacy.post(context, body)
      return isObject(body) && body['method'] === 'initialize' ? openSession(context, post) : post()
    }
    if (message.kind === 'modern') return modern.post(context, message)
    sendAccepted(context.raw, context.headers)
    return Promise.resolve()
  }

  /** Where the caller and its tenant may have a session more now; later, where they may then. */
  async function openSession(context: RequestContext, open: () => Promise<void>): Promise<void> {
    const allowed = rates.throttle.session(context)
    if (allowed !== undefined) {
      await allowed
      if (state.draining) throw stopping()
      await context.revalidate()
    }
    if (!context.raw.destroyed) await open()
  }

  /** "Earlier Streamable HTTP Revisions": GET and DELETE are for sessions, of which 2026-07-28 has none. */
  const ofSession = (act: (context: RequestContext) => Promise<void>): AdmittedRoute =>
    admitted('mcp', async (context) => {
      const { 'mcp-session-id': session, 'mcp-protocol-version': version } = context.incoming.headers as SingleHeaders
      if (session === undefined && isModernVersionHeader(version))
        throw new GatewayError(
          'method_not_allowed',
          `Revision ${latestModern} has neither streams by GET nor sessions to DELETE: use POST, and ` +
            'subscriptions/listen for what changes.',
          { headers: { Allow: 'POST' } }
        )
      await act(context)
    })

  /** Public by nature. */
  const metadata = (suffix: UrlSuffix): Route => ({
    handler(request, reply) {
      const { tenant, endpoint } = endpointOf(request.params as PathParams, state.snapshot)
      if (!hasIssuer(tenant.auth)) throw noMetadata()
      reply.hijack()
      const { resource } = resourceOf(endpoint, suffix, addressOf(state).publicUrl)
      const body = resourceMetadata(resource, tenant.auth, `${tenant.id}/${endpoint.name}`, endpoint.requiredScopes)
      sendJson(reply.raw, 200, body, corsHeadersOf(reply))
    }
  })

  const direct = { POST: admitted('mcp', post), DELETE: ofSession(legacy.remove) }
  for (const endpoint of ['/t/:tenant', '/t/:tenant/:endpoint']) {
    serve(`${endpoint}/mcp`, { GET: ofSession(legacy.get), ...direct })
    // 2024-11-05 basic/transports. The 405 for a POST here tells clients of both transports to try this one.
    serve(`${endpoint}/sse`, { GET: admitted('sse', (context) => openSession(context, () => httpSse.open(context))) })
    serve(`${endpoint}/messages`, { POST: admitted('messages', httpSse.post) })
    // RFC 9728 section 3.1: the well-known part is put in front of the path of the resource.
    for (const suffix of ['mcp', 'sse'] as const)
      serve(`/.well-known/oauth-protected-resource${endpoint}/${suffix}`, { GET: metadata(suffix) })
  }

  serve('/t/:tenant/jwks.json', { GET: { handler: sendSigningKeys(options, refuse) } })

  const noAuthorizationServer: Route = {
    onRequest: async (_request, reply) => sendNoAuthorizationServer(reply, state.snapshot),
    handler: () => {}
  }
  for (const [url, method] of oauthPaths) serve(url, { [method]: noAuthorizationServer })

  addLoginRoutes(server, { state, login, memory, refuse })
  addConnectionRoutes(server, { state, authenticator, vault, login, memory, rates: rates.requests, refuse })

  return direct
}

/** @param again lets its caller in as the configuration says when its body is read */
function letIn(
  request: RouteRequest,
  { raw }: RouteReply,
  { context, again }: { readonly context: RequestContext; again(): RequestContext | Promise<RequestContext> },
  { state, connections, rates }: Pick<RoutesOptions, 'state' | 'connections' | 'rates'>
): Promise<void> | undefined {
  connections.letIn(raw, { tenant: context.tenant.id, person: context.person })
  request.context = context
  const refused = rates.requests.letIn(context)
  if (refused !== undefined) return refused
  if (request.method === 'POST') checkContent(request.headers)
  const readable = request.method === 'POST' ? rates.throttle.body(context) : undefined
  if (readable === undefined) reserveRequest(context, context.snapshot.limits.bodyBytes)
  return readable?.then(async () => {
    if (state.draining) throw stopping()
    // The caller may have been stopped meanwhile, or what its body asks for.
    request.context = await again()
    reserveRequest(request.context, request.context.snapshot.limits.bodyBytes)
  })
}

const noMetadata = (): GatewayError =>
  new GatewayError(
    'not_found',
    'There is no authorization server for this endpoint, so it has no resource metadata. If it asks for a ' +
      'credential, send an API key of the tenant as "Authorization: Bearer KEY".'
  )
