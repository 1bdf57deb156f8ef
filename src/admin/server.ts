// The listener of the admin API. The checks of each request, in their order: the target, Host and Origin, the key and
// its rate (without a right one, that of the address), the route, the role; then the body. No page of another origin
// can call it: it has no CORS, and its one cookie, of the console, is worth nothing without a token of that page.

import { fastify, type FastifyReply, type FastifyRequest } from 'fastify'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { isLoopback } from '../config/formats.ts'
import { createEgressGuard, type EgressLimits } from '../egress/guard.ts'
import { createFetchFor } from '../egress/fetch.ts'
import { createStrangerLines } from '../observe/lines/stranger-lines.ts'
import { parseJson } from '../protocol/json.ts'
import type { Sealer } from '../store/seal.ts'
import type { Clock } from '../time/clock.ts'
import { createAdminAccess, type Administrator } from './access.ts'
import { checkContentType, checkRepeatedMembers, checkRole, checkTarget, mergePatchType } from './checks.ts'
import { conditionsOf } from './configuration/conditions.ts'
import { handledOnce } from './configuration/once.ts'
import { adminAnswerText } from './answering/answer-text.ts'
import { addConsole } from './console/routes.ts'
import { createProviderSignIn } from './console/provider-sign-in.ts'
import { createConsoleSessions } from './console/sessions.ts'
import { adminSocketLimits, localHostOf, refuseUnreadable, serveOneRequest } from './connection.ts'
import { notingRefusal } from './changes.ts'
import { createEventStreams } from './live/event-streams.ts'
import { takesCoding } from './reference/accepted-coding.ts'
import { openApiOf } from './reference/openapi.ts'
import { limitAdminConnections } from './places.ts'
import { AdminProblem, problemOf } from './problem.ts'
import { addReference } from './reference/page.ts'
import { AdminReply, AdminStream, checked, tenantOf, type AdminRoute, type AdminServices } from './route.ts'
import { adminRoutes } from './table.ts'

/** The longest body, in bytes. */
const maxAdminBody = 262_144
/** The longest parameter of a path, in characters, after decoding. */
const maxParamLength = 512

const securityHeaders = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff'
}

const otherMethods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

declare module 'fastify' {
  interface FastifyRequest {
    administrator: Administrator | undefined
  }
}

export interface AdminListener {
  /** @returns the URL on which it listens */
  listen(address: { readonly host: string; readonly port: number }): Promise<string>
  close(): Promise<void>
}

interface AdminServerOptions extends AdminServices {
  /** Measures durations. */
  readonly clock: Clock
  readonly sealer: Pick<Sealer, 'seal' | 'open'>
}

/** Issuers of administrators are asked as those of tenants are. */
const fetchWithin = (egress: EgressLimits) => createFetchFor({ guard: createEgressGuard(egress) })

export function createAdminServer(options: AdminServerOptions): AdminListener {
  const { snapshot, version, clock, descriptors, wall, store, log } = options
  const own = { ...options, fetchFor: fetchWithin(snapshot().egress) }
  const openApi = openApiOf(adminRoutes, version)
  const access = createAdminAccess(own)
  const consoleSessions = createConsoleSessions({ store, wall, access })
  const eventStreams = createEventStreams({ clock, isLetIn: consoleSessions.isLetIn })
  const lines = createStrangerLines(clock, log)
  let ownHosts: ReadonlySet<string> = new Set()
  const server = fastify({
    ...adminSocketLimits,
    logger: false,
    bodyLimit: maxAdminBody,
    exposeHeadRoutes: false,
    onProtoPoisoning: 'ignore', // Not used: the one parser below is ours.
    frameworkErrors: (error, request, reply) => refuse(request, reply, error),
    clientErrorHandler: (error, socket) => refuseUnreadable(socket, error),
    routerOptions: { maxParamLength }
  })
  const places = limitAdminConnections(server.server, descriptors)
  serveOneRequest(server.server)

  function refuse(request: FastifyRequest, reply: FastifyReply, error: unknown): void {
    // The client hung up while it was sending, or was refused meanwhile: nobody is there to read.
    if (error === request.raw.errored) return void reply.hijack()
    const problem = problemOf(error)
    const { method, routeOptions, ip, administrator } = request
    const fields = { method, path: routeOptions.url, address: ip, administrator: administrator?.name }
    const level = administrator === undefined ? lines.levelOf('info', ip) : 'info'
    if (problem === undefined) log.error({ err: error, ...fields }, 'an admin request failed by a fault of the gateway')
    else log[level]({ reason: problem.code, ...fields }, 'an admin request is refused')
    const told = problem ?? new AdminProblem('internal', 'The request failed.', 'The log of the gateway says why.')
    // Not parsed: a target may be anything that begins with a slash, and some of that is no URL.
    const [path = ''] = request.url.split('?', 1)
    // Whoever was not let in keeps no connection.
    const close = administrator === undefined ? { Connection: 'close' } : {}
    void reply
      .code(told.status)
      .headers({ ...securityHeaders, ...told.headers, ...close, 'Content-Type': 'application/problem+json' })
      .send(JSON.stringify(told.body(path)))
  }
  server.setErrorHandler((error, request, reply) => refuse(request, reply, error))
  server.setNotFoundHandler((request, reply) => refuse(request, reply, noPath()))

  server.removeAllContentTypeParsers()
  server.addContentTypeParser(['application/json', mergePatchType], { parseAs: 'buffer' }, (request, body, done) => {
    try {
      request.administrator?.chargeBody(body.length)
      const value = parseJson(body as Buffer)
      checkRepeatedMembers(String(body))
      done(null, value)
    } catch (error) {
      done(error as Error)
    }
  })
  server.addHttpMethod('DELETE', { hasBody: false, overrideExisting: true })
  server.decorateRequest('administrator', undefined)

  server.addHook('onRequest', async (request) => {
    checkTarget(request, (host) => {
      const given = host.toLowerCase()
      if (given === localHostOf(request.raw.socket)) return true
      const { hosts = [] } = snapshot().admin ?? {}
      return ownHosts.has(given) || hosts.includes(given) || hosts.includes(given.replace(/:\d+$/, ''))
    })
    if (request.routeOptions.config.isForStrangers === true) return access.countStranger(request.ip)
    // For unknown paths too: nobody without a key learns which there are.
    request.administrator = await consoleSessions.authenticate(request)
    places.letIn(request.raw.socket, request.administrator.name)
    if (request.is404) throw noPath()
  })

  addConsole(server, { access, sessions: consoleSessions, signIn: createProviderSignIn(own), places })
  addReference(server, openApi)
  for (const route of adminRoutes) addRoute(route)
  for (const path of new Set(adminRoutes.map((route) => route.path))) addOtherMethods(path)

  function addRoute(route: AdminRoute): void {
    server.route({
      method: route.method,
      url: urlOf(route.path),
      onRequest: (request, _reply, done) => {
        notingRefusal(options, route, request, () => checkRole(route, request.administrator))
        checkContentType(route, request)
        done()
      },
      handler: async (request, reply) => {
        const { administrator } = request
        if (administrator === undefined) throw new Error('a request came past the checks')
        const params = request.params as Readonly<Record<string, string>>
        // Before anything is said of the query or body: another tenant is as unknown as what there is not.
        const tenant =
          route.path.includes('{tenant}') &&
          notingRefusal(options, route, request, () => tenantOf(route, snapshot(), administrator, params['tenant']))
        const answer = await handledOnce(
          route,
          {
            administrator,
            address: request.ip,
            conditions: conditionsOf(request.headers),
            params,
            query: route.query && checked(route.query, { ...(request.query as object) }, 'query'),
            body: route.body && (route.validatesBody ? request.body : checked(route.body, request.body, 'body')),
            accept: request.headers.accept ?? '',
            takesGzip: takesCoding('gzip', request.headers['accept-encoding']),
            wantsEvents: /\btext\/event-stream\b/i.test(request.headers.accept ?? ''),
            openApi,
            get tenant() {
              if (tenant === false || tenant === undefined) throw new Error(`${route.path} names no tenant`)
              return tenant
            }
          },
          options
        )
        if (answer instanceof AdminStream) {
          eventStreams.serve(reply.raw, securityHeaders, administrator, answer)
          return void reply.hijack()
        }
        return await sendAnswer(reply, route, answer, { administrator, tenant: params['tenant'], ...options.held })
      }
    })
  }

  function addOtherMethods(path: AdminRoute['path']): void {
    const allowed: string[] = adminRoutes.filter((route) => route.path === path).map(({ method }) => method)
    server.route({
      method: otherMethods.filter((method) => !allowed.includes(method)),
      url: urlOf(path),
      onRequest() {
        throw noMethod(allowed)
      },
      handler() {}
    })
  }

  return {
    async listen(listenAddress) {
      await server.listen({ ...listenAddress })
      const { address, family, port } = server.server.address() as AddressInfo
      const bound = `${family === 'IPv6' ? `[${address}]` : address}:${port}`
      const names = isLoopback(address) ? ['localhost', '127.0.0.1', '[::1]'].map((name) => `${name}:${port}`) : []
      ownHosts = new Set([bound, ...names])
      return `http://${bound}`
    },
    close() {
      for (const each of [eventStreams, access]) each.close()
      return server.close()
    }
  }
}

async function sendAnswer(
  reply: FastifyReply,
  { response }: AdminRoute,
  answer: unknown,
  whose: Parameters<typeof adminAnswerText>[1]
): Promise<unknown> {
  const { body, headers, status } = answer instanceof AdminReply ? answer : new AdminReply(answer, {})
  if (response === undefined) return await reply.headers(securityHeaders).code(204).headers(headers).send()
  const isWhole = body instanceof Readable
  const written = isWhole ? { text: body } : await adminAnswerText(body, whose)
  void reply.headers(securityHeaders).code(status).headers(headers)
  if ('length' in written) void reply.header('Content-Length', written.length)
  if (!isWhole) void reply.type('application/json; charset=utf-8')
  return await reply.send(written.text)
}

const urlOf = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1')

const noPath = (): AdminProblem =>
  new AdminProblem('not_found', 'There is no such path.', 'See /openapi.json for all paths.')

const noMethod = (allowed: readonly string[]): AdminProblem =>
  new AdminProblem('method_not_allowed', 'The path does not have this method.', `Use ${allowed.join(' or ')}.`, {
    headers: { Allow: allowed.join(', ') }
  })
