// Every URL of the gateway, with its methods. A method that a URL does not have is answered 405, with those that it
// has.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { resourceMetadata } from '../auth/bearer.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import { checkContent } from './accept.ts'
import type { Admit } from './admission.ts'
import { answerPreflight, corsHeadersOf } from './cors.ts'
import { addressOf, endpointOf, type PathParams, resourceOf, type ServerState, type UrlSuffix } from './endpoints.ts'
import type { HttpSseHandler } from './legacy/http-sse.ts'
import { idOf, sendJson } from './reply.ts'
import type { RequestContext } from './request-context.ts'
import type { McpHandler } from './route-by-era.ts'

export interface RoutesOptions {
  readonly server: FastifyInstance
  readonly admit: Admit
  /** Answers with an error instead. */
  readonly refuse: (request: FastifyRequest, reply: FastifyReply, error: unknown, id?: ReturnType<typeof idOf>) => void
  readonly state: ServerState
  readonly mcp: McpHandler
  readonly httpSse: HttpSseHandler
  readonly store: Pick<Store, 'ping'>
  readonly sealer: Pick<Sealer, 'ready'>
}

interface Route {
  /** Runs before the body is read. */
  readonly onRequest?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
  readonly handler: (request: FastifyRequest, reply: FastifyReply) => void | Promise<void>
}

type Method = 'GET' | 'POST' | 'DELETE'

export function addRoutes({ server, admit, refuse, state, mcp, httpSse, store, sealer }: RoutesOptions): void {
  /** @param routes in the order in which their methods are named in Allow */
  function serve(url: string, routes: Partial<Record<Method, Route>>): void {
    const methods = Object.keys(routes)
    const allow = [...methods, 'OPTIONS'].join(', ')
    for (const [method, route] of Object.entries(routes)) server.route({ method, url, ...route })
    server.route({ method: 'OPTIONS', url, handler: (_request, reply) => answerPreflight(reply, allow) })
    const others = ['GET', 'POST', 'DELETE', 'PUT', 'PATCH', 'HEAD', 'TRACE'].filter((name) => !methods.includes(name))
    server.route({ method: others, url, ...notAllowed(allow) })
  }

  /** For callers that are let in. */
  function admitted(suffix: UrlSuffix, act: (context: RequestContext, body: unknown) => Promise<void>): Route {
    return {
      async onRequest(request, reply) {
        request.context = await admit(request, reply, suffix)
        if (request.method === 'POST') checkContent(request.headers)
      },
      handler(request, reply) {
        const { context, body } = request
        if (context === undefined) throw new Error('a route without its onRequest hook')
        reply.hijack()
        const id = idOf(body)
        // Fastify holds its request as long as the answer is open, and a stream is open for hours.
        request.body = undefined
        act(context, body).catch((error: unknown) => refuse(request, reply, error, id))
      }
    }
  }

  /** Public by nature. */
  const metadata = (suffix: 'mcp' | 'sse'): Route => ({
    handler(request, reply) {
      const { tenant, endpoint } = endpointOf(request.params as PathParams, state.snapshot)
      reply.hijack()
      const resource = addressOf(state).publicUrl + resourceOf(endpoint, suffix).path
      const body = resourceMetadata(resource, tenant.auth, `${tenant.id}/${endpoint.name}`)
      sendJson(reply.raw, 200, body, corsHeadersOf(reply))
    }
  })

  for (const endpoint of ['/t/:tenant', '/t/:tenant/:endpoint']) {
    serve(`${endpoint}/mcp`, {
      GET: admitted('mcp', (context) => mcp.get(context)),
      POST: admitted('mcp', (context, body) => mcp.post(context, body)),
      DELETE: admitted('mcp', (context) => mcp.remove(context))
    })
    // 2024-11-05 basic/transports. The 405 for a POST here tells clients of both transports to try this one.
    serve(`${endpoint}/sse`, { GET: admitted('sse', (context) => httpSse.open(context)) })
    serve(`${endpoint}/messages`, { POST: admitted('messages', (context, body) => httpSse.post(context, body)) })
    // RFC 9728 section 3.1: the well-known part is put in front of the path of the resource.
    for (const suffix of ['mcp', 'sse'] as const)
      serve(`/.well-known/oauth-protected-resource${endpoint}/${suffix}`, { GET: metadata(suffix) })
  }

  /** @returns undefined where requests can be served */
  async function unreadyReason(): Promise<string | undefined> {
    if (state.draining) return 'stopping'
    try {
      await store.ping()
    } catch {
      return 'the store cannot be reached'
    }
    return sealer.ready ? undefined : 'the key of the store cannot be had'
  }
  const config = { cors: false } as const
  server.get('/health/live', { config }, (_request, reply) => {
    reply.hijack()
    sendJson(reply.raw, 200, { status: 'live' })
  })
  server.get('/health/ready', { config }, async (_request, reply) => {
    reply.hijack()
    const reason = await unreadyReason()
    if (reason === undefined) sendJson(reply.raw, 200, { status: 'ready' })
    else sendJson(reply.raw, 503, { status: 'not ready', reason }, { 'Retry-After': '1' })
  })
}

/** In the hook, so that no body is read for it. */
function notAllowed(allow: string): Required<Route> {
  const refuse = async (): Promise<never> => {
    throw new GatewayError('method_not_allowed', `Use one of ${allow} here.`, { headers: { Allow: allow } })
  }
  return { onRequest: refuse, handler: refuse }
}
