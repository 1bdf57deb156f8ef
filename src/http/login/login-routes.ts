// The URLs of the login fronts: `/login/{tenant}/...`, and their metadata where RFC 8414 section 3.1 and OpenID Connect
// Discovery put them for an issuer with a path. The library reads the bodies itself.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { holdMemory, type MemoryAccount } from '../../limits/memory.ts'
import type { Login } from '../../login/login.ts'
import { GatewayError, tenantId } from '../../protocol/messages.ts'
import { clientAddressOf, type PathParams, type RouteReply, type RouteRequest, type ServerState } from '../admission.ts'
import { reserveRequest } from '../request-memory.ts'

/** That the library reads. */
const maxBodyBytes = 56 * 1024
/** Requests of strangers are counted together, as those of one caller of their tenant. */
const strangers = 'login'

const methods = ['GET', 'POST', 'OPTIONS']
const metadataNames = ['oauth-authorization-server', 'openid-configuration']

interface LoginRoutesOptions {
  readonly state: ServerState
  readonly login: Login
  readonly memory: MemoryAccount
  readonly refuse: (request: RouteRequest, reply: RouteReply, error: unknown, id: null) => void
}

export function addLoginRoutes(server: FastifyInstance, { state, login, memory, refuse }: LoginRoutesOptions): void {
  const nameOf = ({ params }: FastifyRequest): string => (params as PathParams).tenant ?? ''

  /** @param path what follows the path of the front, with its query */
  async function answer(request: FastifyRequest, reply: FastifyReply, path: string): Promise<void> {
    const tenant = state.snapshot.tenants.get(tenantId(nameOf(request)))
    if (tenant === undefined) throw noFront()
    if (tenant.auth.stopped === 'everybody')
      throw new GatewayError(
        'stopped',
        'An administrator of this gateway has stopped this tenant. Ask them when it comes back.'
      )
    const held = holdMemory(memory.share(tenant.id, strangers))
    reserveRequest({ memory: held, raw: reply.raw, incoming: request.raw }, maxBodyBytes)
    const origin = { address: clientAddressOf(request.raw, state.snapshot), requestId: request.id }
    if (!(await login.handle(tenant, path, request.raw, reply.raw, origin))) throw noFront()
  }

  function serve(scope: FastifyInstance, url: string, pathOf: (request: FastifyRequest) => string): void {
    scope.route({
      method: methods,
      url,
      handler(request, reply) {
        reply.hijack()
        answer(request, reply, pathOf(request)).catch((error: unknown) => refuse(request, reply, error, null))
      }
    })
  }

  // A scope of its own, for its content type parsers. It is loaded before the server listens.
  void server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    // Forms and JSON, which the login front reads itself, within limits of its own.
    scope.addContentTypeParser('*', (_request, _body, done) => done(null))
    serve(scope, '/login/:tenant/*', (request) => request.url.slice(`/login/${nameOf(request)}`.length))
    for (const name of metadataNames) serve(scope, `/.well-known/${name}/login/:tenant`, () => `/.well-known/${name}`)
  })
}

const noFront = (): GatewayError =>
  new GatewayError(
    'not_found',
    'There is no authorization server here. The metadata of an endpoint say where its authorization server is.'
  )
