// CORS for the pages of allowed origins: exactly that origin, never `*`, and no cookies, because credentials are tokens
// in a header. The plugin only prepares headers; it answers nothing, and every reply of ours takes them over.

import type { FastifyCorsOptions } from '@fastify/cors'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { tenantId } from '../protocol/messages.ts'
import { addressOf, type PathParams, type ServerState } from './endpoints.ts'
import { isAllowedOrigin } from './guard.ts'
import type { ReplyHeaders } from './reply.ts'

/** Origins that the tenant of a request allows; undefined where its path names no tenant. */
export function allowedOrigins(request: FastifyRequest, { snapshot }: ServerState): ReadonlySet<string> | undefined {
  const { tenant } = (request.params ?? {}) as PathParams
  return tenant === undefined ? undefined : snapshot.tenants.get(tenantId(tenant))?.origins
}

const common: FastifyCorsOptions = {
  methods: 'GET, POST, DELETE',
  exposedHeaders: 'Mcp-Session-Id, WWW-Authenticate, Retry-After',
  maxAge: 600,
  // The handler of the route answers OPTIONS, with the methods that it has.
  preflightContinue: true,
  strictPreflight: false
}

const noCors: FastifyCorsOptions = { origin: false }

/** What the plugin prepares for a request: nothing, unless it comes from a page of an allowed origin. */
export function corsOptionsOf(request: FastifyRequest, state: ServerState): FastifyCorsOptions {
  const { origin, 'access-control-request-headers': wanted } = request.headers
  if (origin === undefined) return noCors
  if (!isAllowedOrigin(origin, addressOf(state).publicUrl, allowedOrigins(request, state))) return noCors
  return { ...common, origin, allowedHeaders: allowedHeaders(wanted) }
}

const namedHeaders =
  'Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID'
/** More than any tool mirrors (protocol/translate/param-headers.ts). */
const maxParamHeaders = 64
const paramHeader = /^mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]{1,128}$/i

/**
 * Tools decide which `Mcp-Param-*` there are, and a wildcard would not cover Authorization: those that the browser asks
 * for are allowed by name.
 * @param wanted Access-Control-Request-Headers
 */
function allowedHeaders(wanted = ''): string {
  const params = wanted
    .split(',')
    .map((name) => name.trim())
    .filter((name) => paramHeader.test(name))
  return [namedHeaders, ...params.slice(0, maxParamHeaders)].join(', ')
}

const noHeaders: ReplyHeaders = {}

/** The CORS headers that a reply has to carry. Without an allowed origin there are none, not even `Vary`. */
export function corsHeadersOf(reply: FastifyReply): ReplyHeaders {
  return reply.hasHeader('access-control-allow-origin') ? (reply.getHeaders() as ReplyHeaders) : noHeaders
}

/** Answers OPTIONS. @param allow methods of the URL */
export function answerPreflight(reply: FastifyReply, allow: string): void {
  reply.hijack()
  // Caches on the way must not give one tool's answer for another's.
  const cors = corsHeadersOf(reply)
  const vary = cors === noHeaders ? {} : { vary: 'Origin, Access-Control-Request-Headers' }
  reply.raw.writeHead(204, { Allow: allow, ...cors, ...vary }).end()
}
