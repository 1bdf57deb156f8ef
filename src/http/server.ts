// The HTTP server: limits of its sockets, and the checks that every request passes, in their order: Host and Origin,
// then the token (by its route), then the body. Only this folder knows Fastify.

import cors from '@fastify/cors'
import { fastify, type FastifyReply, type FastifyRequest } from 'fastify'
import type { AddressInfo } from 'node:net'
import type { Authenticator } from '../auth/authenticate.ts'
import type { Snapshot } from '../config/snapshot.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError, isObject } from '../protocol/messages.ts'
import { parseJson } from '../protocol/json.ts'
import type { Store } from '../store/port.ts'
import type { Sealer } from '../store/seal.ts'
import type { Clock } from '../time/clock.ts'
import { createAdmission } from './admission.ts'
import { allowedOrigins, corsHeadersOf, corsOptionsOf } from './cors.ts'
import { addressOf, type ServerState } from './endpoints.ts'
import { checkNames, hostCheck, type HostCheck } from './guard.ts'
import type { HttpSseHandler } from './legacy/http-sse.ts'
import { idOf, sendError, stopping } from './reply.ts'
import type { RequestContext } from './request-context.ts'
import type { McpHandler } from './route-by-era.ts'
import { addRoutes } from './routes.ts'
import { createServerClosing, socketLimits } from './sockets.ts'

export interface ServerOptions {
  readonly state: ServerState
  readonly authenticator: Authenticator
  readonly mcp: McpHandler
  readonly httpSse: HttpSseHandler
  readonly store: Store
  readonly sealer: Sealer
  readonly log: Log
  readonly requestId: () => string
}

export interface HttpServer {
  /** @returns the address that was bound */
  listen(listen: Snapshot['listen']): Promise<AddressInfo>
  /**
   * Stops accepting. Resolves when the last connection is closed: at the latest 2 s after `drainMs`, when they are all
   * cut.
   */
  close(drainMs: number, clock: Clock): Promise<void>
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Why Host or Origin are refused. */
    refusal: unknown
    /** Set when the request was let in. */
    context: RequestContext | undefined
  }
}

export async function createServer(options: ServerOptions): Promise<HttpServer> {
  const { state, log, requestId } = options
  const server = fastify({
    ...socketLimits,
    logger: false,
    bodyLimit: state.snapshot.limits.bodyBytes,
    genReqId: requestId,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    onProtoPoisoning: 'ignore', // Not used: the one parser below is ours.
    // Paths that the router cannot read never reach a hook.
    frameworkErrors: (error, request, reply) => refuse(request, reply, error),
    routerOptions: { maxParamLength: 128 }
  })
  const close = createServerClosing(server)

  const refuse = (request: FastifyRequest, reply: FastifyReply, error: unknown, id = idOf(request.body)): void => {
    reply.hijack()
    const ours = translateFastifyError(error)
    logRefusal(log, request, ours)
    sendError(reply.raw, ours, request.id, corsHeadersOf(reply), id)
  }
  server.setErrorHandler((error, request, reply) => refuse(request, reply, error))
  server.setNotFoundHandler((request, reply) => refuse(request, reply, noPage()))

  server.removeAllContentTypeParsers()
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (request.context !== undefined) request.context.bodyBytes = body.length
    try {
      done(null, parseJson(body as Buffer))
    } catch (error) {
      done(error as Error)
    }
  })
  // The body of a DELETE is not read: some clients send the headers of their POSTs, Content-Type included.
  server.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true })
  server.decorateRequest('refusal', undefined)
  server.decorateRequest('context', undefined)

  let hosts: { readonly snapshot: Snapshot; readonly check: HostCheck } | undefined
  function currentHostCheck(): HostCheck {
    const { snapshot } = state
    if (hosts?.snapshot !== snapshot) hosts = { snapshot, check: hostCheck(addressOf(state), snapshot.hosts) }
    return hosts.check
  }

  // First: Host and Origin. A refusal waits for the CORS headers, with which a page of an allowed origin can read it.
  // No hook is async: none waits for anything, and a promise on every request is not free.
  server.addHook('onRequest', (request, _reply, done) => {
    if (isHealth(request)) return done()
    try {
      checkNames(request.raw, currentHostCheck(), addressOf(state).publicUrl, allowedOrigins(request, state))
    } catch (error) {
      request.refusal = error
    }
    done()
  })
  // Second: CORS headers.
  await server.register(cors, {
    delegator: (request: FastifyRequest, done: (error: null, options: ReturnType<typeof corsOptionsOf>) => void) =>
      done(null, corsOptionsOf(request, state))
  })
  // Third: refusals that need no body, so that none is buffered or parsed for them.
  server.addHook('onRequest', (request, _reply, done) => {
    if (isHealth(request)) return done()
    if (request.refusal !== undefined) throw request.refusal
    // The plugin has a route of its own, OPTIONS for any path.
    if (request.is404 || request.routeOptions.url === '*') throw noPage()
    if (state.draining) throw stopping()
    done()
  })
  // Then the hook and the handler of the route.
  const admit = createAdmission(state, options.authenticator, options.sealer)
  addRoutes({ server, admit, refuse, ...options })

  return {
    async listen({ host, port }) {
      await server.listen({ host, port })
      return server.server.address() as AddressInfo
    },
    close
  }
}

/** Health is for probes, which know neither names nor tokens. */
const isHealth = ({ routeOptions: { url } }: FastifyRequest): boolean => url?.startsWith('/health/') === true

const noPage = (): GatewayError =>
  new GatewayError(
    'not_found',
    'There is no such page. MCP endpoints are /t/{tenant}/mcp and /t/{tenant}/{endpoint}/mcp.'
  )

function logRefusal(log: Log, { id, method, routeOptions }: FastifyRequest, error: unknown): void {
  if (!(error instanceof GatewayError))
    return log.error({ err: error, requestId: id }, 'a request failed by a fault of the gateway')
  const cause = error.cause === undefined ? {} : { err: error.cause }
  log[error.row.level]({ reason: error.code, path: routeOptions.url, method, ...cause }, 'refused')
}

/** Fastify's own errors in our words; any other error as it is. */
function translateFastifyError(error: unknown): unknown {
  switch (isObject(error) ? error['code'] : undefined) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new GatewayError('too_large', 'The body is larger than limits.bodyBytes allows.', {
        headers: { Connection: 'close' }
      })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new GatewayError(
        'unsupported_media_type',
        'The body must be sent with Content-Type: application/json (UTF-8).'
      )
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return new GatewayError('invalid_request', 'The body does not have the length that Content-Length says.')
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new GatewayError('not_found', 'The path of the URL cannot be read.')
    default:
      return error
  }
}
