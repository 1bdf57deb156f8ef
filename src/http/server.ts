// The HTTP server: limits of its sockets, against clients that send slowly or never leave; the checks that every
// request passes, in their order: Host and Origin, then the token (by its route), then the body; and how it closes.

import cors from '@fastify/cors'
import { fastify, type FastifyRequest } from 'fastify'
import type { AddressInfo } from 'node:net'
import type { Audit } from '../audit/audit.ts'
import type { Snapshot } from '../config/snapshot.ts'
import { noteOpenRequest } from '../observe/other-requests.ts'
import type { RefusalObservers } from '../observe/refused-requests.ts'
import { createStrangerLines } from '../observe/lines/stranger-lines.ts'
import { GatewayError, tenantId } from '../protocol/messages.ts'
import type { StoreHealth } from '../store/health.ts'
import type { ConnectionMoves } from '../workers/connection-moves.ts'
import { every, pause, steadyClock, type Clock } from '../time/clock.ts'
import { nextTurn } from '../time/turns.ts'
import { addressOf, clientAddressOf, type PathParams, type RequestContext } from './admission.ts'
import { addOwnPages } from './pages/own-pages.ts'
import { createBodyReader } from './body.ts'
import { closeAfter, createConnections } from './sockets.ts'
import { CountedRequest } from './counted-request.ts'
import { checkNames, corsOptionsOf, hostCheck, isAllowedOrigin } from './headers.ts'
import { serveDirectly } from './direct/direct-connections.ts'
import { serveUsualRequests } from './direct/usual-requests.ts'
import { serveOneByOne } from './one-by-one.ts'
import { createRequestRefusals } from './refuse.ts'
import { type ClientRequest, stopping } from './reply.ts'
import { createRequestRates } from './rates/request-rates.ts'
import { createThrottle } from './rates/throttle.ts'
import { createRequestTurns } from './request-turns.ts'
import { addRoutes, type RoutesOptions } from './routes.ts'

const socketLimits = {
  forceCloseConnections: 'idle' as const,
  keepAliveTimeout: 72_000,
  requestTimeout: 30_000,
  maxRequestsPerSocket: 1_000,
  http: {
    headersTimeout: 10_000,
    // How often slow senders are looked for; Node's default lets them sit for half a minute more.
    connectionsCheckingInterval: 2_000,
    /**
     * Of all headers of a request together, in bytes; more is answered 431. Twice what Node allows: Mcp-Name repeats
     * the whole URI of a resource, and Mcp-Param-* the arguments of a tool, in base64 where they are not plain ASCII.
     */
    maxHeaderSize: 32_768,
    IncomingMessage: CountedRequest
  }
}

/** The most turns of the event loop that the port waits for one in which nobody connects. */
const maxTurnsToClose = 100
/** The time after `limits.drainMs` for the answers to the calls that were ended, in milliseconds. */
export const cutMs = 2_000

export interface ServerOptions extends Omit<RoutesOptions, 'connections' | 'rates' | 'observers'>, RefusalObservers {
  readonly storeHealth: StoreHealth
  readonly requestId: () => string
  /** File descriptors that the process may have open. */
  readonly descriptors: number
  readonly moves?: ConnectionMoves | undefined
  readonly audit?: Audit | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Why Host or Origin are refused. */
    refusal: unknown
    /** See RouteRequest. */
    since: number
    isRefused?: boolean
    /** Set when the request was let in. */
    context: RequestContext | undefined
  }
}

/** No route has a schema. The libraries that would compile one take a tenth of the time of a start to load. */
const noSchemas = () => () => {
  throw new Error('a route has a schema, which nothing here compiles')
}

export async function createServer(given: ServerOptions) {
  const options = { ...given, strangers: createStrangerLines(steadyClock, given.log) }
  const { state, log, requestId, descriptors } = options
  const bodyLimit = state.snapshot.limits.bodyBytes
  const { refuse, ...refusals } = createRequestRefusals({ ...options, maxHeaderBytes: socketLimits.http.maxHeaderSize })
  const server = fastify({
    ...socketLimits,
    logger: false,
    bodyLimit,
    genReqId: requestId,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    onProtoPoisoning: 'ignore', // Not used: the one parser below is ours.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    // Paths that the router cannot read never reach a hook.
    frameworkErrors: (error, request, reply) => refuse(request, reply, error, null),
    clientErrorHandler: (error, socket) => refusals.refuseUnreadable(socket, error),
    // People paste URLs with a slash at their end.
    routerOptions: { maxParamLength: 128, ignoreTrailingSlash: true }
  })
  const connections = createConnections(descriptors, options.memory.budgetBytes, log)
  server.server.on('connection', connections.opened)

  // Both come before the body is parsed: what a handler refuses after it does not come here.
  server.setErrorHandler((error, request, reply) => refuse(request, reply, error, null))
  server.setNotFoundHandler((request, reply) => refuse(request, reply, noPage(), null))

  const readBody = createBodyReader()
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      const message = readBody(request, body as Buffer)
      if (message instanceof Promise) message.then((value) => done(null, value), done)
      else done(null, message)
    } catch (error) {
      done(error as Error)
    }
  })
  // The body of a DELETE is not read: some clients send the headers of their POSTs, Content-Type included.
  server.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true })
  server.decorateRequest('refusal', undefined)
  server.decorateRequest('context', undefined)
  server.decorateRequest('since', 0)
  server.decorateRequest('isRefused', false)

  /** @throws GatewayError as `checkNames` */
  function checkHostAndOrigin(incoming: ClientRequest, isOriginAllowed: boolean): void {
    const { snapshot } = state
    if (hosts?.snapshot !== snapshot) hosts = { snapshot, check: hostCheck(addressOf(state), snapshot.hosts) }
    checkNames(incoming, hosts.check, isOriginAllowed)
  }
  let hosts: { readonly snapshot: Snapshot; readonly check: ReturnType<typeof hostCheck> } | undefined
  function originAllowed({ headers: { origin }, params }: FastifyRequest): boolean {
    const { tenant } = (params ?? {}) as PathParams
    const allowed = tenant === undefined ? undefined : state.snapshot.tenants.get(tenantId(tenant))?.origins
    return isAllowedOrigin(origin, addressOf(state).publicUrl, allowed)
  }

  // First: Host and Origin. A refusal waits for the CORS headers, with which a page of an allowed origin can read it.
  // No hook is async: none waits for anything, and a promise on every request is not free.
  server.addHook('onRequest', (request, reply, done) => {
    request.since = steadyClock.now()
    if (request.raw instanceof CountedRequest) request.raw.response = reply.raw
    if (state.leaving) closeAfter(reply.raw)
    if (isHealth(request)) return done()
    try {
      checkHostAndOrigin(request.raw, originAllowed(request))
    } catch (error) {
      request.refusal = error
    }
    done()
  })
  // Second: CORS headers. The plugin only prepares them; it answers nothing.
  await server.register(cors, {
    delegator: (request: FastifyRequest, done: (error: null, options: ReturnType<typeof corsOptionsOf>) => void) =>
      done(null, corsOptionsOf(request.headers, request.headers.origin !== undefined && originAllowed(request)))
  })
  // Third: refusals that need no body, so that none is buffered or parsed for them.
  server.addHook('onRequest', (request, reply, done) => {
    if (request.refusal !== undefined) throw request.refusal
    // The plugin has a route of its own, OPTIONS for any path.
    if (request.is404 || request.routeOptions.url === '*') throw noPage()
    if (state.draining && !isHealth(request)) throw stopping()
    if (isOpen(request)) {
      const { tenant: id = '' } = request.params as PathParams
      const tenant = state.snapshot.tenants.get(tenantId(id))?.id
      const address = clientAddressOf(request.raw, state.snapshot)
      noteOpenRequest(options, request, { tenant, address, raw: reply.raw })
    }
    done()
  })
  // Then the hook and the handler of the route.
  const limits = (): Snapshot['limits'] => state.snapshot.limits
  const requests = createRequestRates(limits, steadyClock, options)
  const rates = { requests, throttle: createThrottle(limits, steadyClock) }
  const routes = addRoutes(server, { ...options, connections, rates, observers: options }, refuse)
  addOwnPages(server, { ...options, connections })
  const usual = { state, bodyLimit, requestId, checkHostAndOrigin, routes, readBody, refuse }
  const usualRequests = serveUsualRequests(server.server, usual)
  const turns = createRequestTurns({ connections, memory: options.memory, state, clock: steadyClock, log })
  serveOneByOne(server.server, turns, refusals.refuseUnbegun)
  const direct = serveDirectly(server.server, {
    ...socketLimits,
    ...socketLimits.http,
    ...usualRequests,
    turns,
    moves: options.moves,
    refuse: refusals.refuseUnbegun,
    silent: refusals.closeSilent
  })

  let portClosed: Promise<void> | undefined
  return {
    connections,
    /** @returns the address that was bound */
    async listen({ host, port }: Snapshot['listen']): Promise<AddressInfo> {
      await server.listen({ host, port })
      return server.server.address() as AddressInfo
    },
    /** Serves for so long, with connections that end after each response; then closes the port. */
    async leave(delayMs: number, clock: Clock): Promise<void> {
      connections.closeAfterResponses()
      if (!server.server.listening) return
      if (delayMs > 0) await pause(clock, delayMs)
      // What the system has accepted for us, and Node has not, is reset with the port: it closes after a turn of the
      // event loop in which nobody came.
      for (let turns = 0, before = -1; turns < maxTurnsToClose && before !== connections.count; turns++) {
        before = connections.count
        await nextTurn()
      }
      portClosed = new Promise((resolve) => server.server.close(() => resolve()))
    },
    /** Resolves when the last connection is closed; what is left `cutMs` after `drainMs` is cut. */
    async close(drainMs: number, clock: Clock): Promise<void> {
      const closed = Promise.all([portClosed, server.close()])
      // Connections that become idle while others still work would otherwise sit out their keep-alive time.
      const idle = every(clock, 50, () => {
        server.server.closeIdleConnections()
        direct.closeIdle()
      })
      const silent = clock.timer(1_000, connections.closeSilent)
      const forced = clock.timer(drainMs + cutMs, () => {
        server.server.closeAllConnections()
        direct.closeAll()
      })
      await closed
      for (const each of [idle, silent, forced, turns]) each.close()
    }
  }
}

/** Health is for probes, which know neither names nor tokens. */
const isHealth = ({ routeOptions: { url } }: FastifyRequest): boolean => url?.startsWith('/health/') === true

/** Of an endpoint those that are let in have a line. Probes come all the time. */
const isOpen = ({ method, routeOptions: { url = '' } }: FastifyRequest): boolean =>
  method === 'OPTIONS' || !hasOwnLine.test(url)
const hasOwnLine = /^\/(?:health\/|t\/:tenant(?:\/:endpoint)?\/(?:mcp|sse|messages)$)/

const noPage = (): GatewayError =>
  new GatewayError(
    'not_found',
    'There is no such page. MCP endpoints are /t/{tenant}/mcp and /t/{tenant}/{endpoint}/mcp.'
  )
