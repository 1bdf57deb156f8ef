// Requests that are refused before they became a call: each is one line of the log, is counted, and is answered with
// the id by which it is found there.

import type { Socket } from 'node:net'
import { nodeHttp } from '../limits/node-http.ts'
import { CallerStopped } from '../auth/authenticate.ts'
import type { Audit } from '../audit/audit.ts'
import { noteRefused, type RefusalObservers, type RefusedRequest } from '../observe/refused-requests.ts'
import { errorMessage, GatewayError, isObject, tenantId } from '../protocol/messages.ts'
import { errorObject } from '../protocol/translate/error-object.ts'
import { clientAddressOf, type PathParams, type RouteReply, type RouteRequest, type ServerState } from './admission.ts'
import { steadyClock } from '../time/clock.ts'
import { corsHeadersOf, notJson } from './headers.ts'
import { type ReadId, type RefuseUnbegun, type ReplyHeaders, requestIdHeader, sendError } from './reply.ts'

/** Of a path that no route has seen (http/routes.ts). Not named: `default`, as there. */
export const placeIn = (path: string): { readonly tenant: string | undefined; readonly endpoint: string } => {
  const [, tenant, endpoint = 'default'] = endpointPath.exec(path) ?? []
  return { tenant, endpoint }
}

const endpointPath = /^\/t\/([^/?]+)(?:\/([a-z\d-]{1,63})\/(?:mcp|sse|messages)(?=\?|$))?/

export interface RefusalOptions extends RefusalObservers {
  readonly state: ServerState
  readonly requestId: () => string
  readonly audit?: Audit | undefined
  /** Of all headers of a request together. */
  readonly maxHeaderBytes: number
}

export function createRequestRefusals(options: RefusalOptions) {
  const { state, log, requestId, audit, maxHeaderBytes, strangers } = options

  const known = (tenant: string | undefined): string | undefined =>
    tenant !== undefined && state.snapshot.tenants.has(tenantId(tenant)) ? tenant : undefined

  return {
    /** A route does not take it. */
    refuse(request: RouteRequest & { isRefused?: boolean }, reply: RouteReply, thrown: unknown, id: ReadId): void {
      reply.hijack()
      // The client hung up while it was sending: nobody's fault, and nobody is there to read.
      if (thrown === request.raw.errored) return log.debug({ path: request.routeOptions.url }, 'a request broke off')
      request.isRefused = true
      const error = translateFastifyError(thrown)
      if (error instanceof GatewayError) {
        const { tenant: named, endpoint = 'default' } = (request.params ?? {}) as PathParams
        const tenant = known(named)
        const stopped = error instanceof CallerStopped ? error.principal : undefined
        const refused = { ...refusedRequest(request, clientAddressOf(request.raw, state.snapshot)), stopped }
        noteRefused(options, refused, tenant, error)
        if (tenant !== undefined) audit?.refused(tenant, endpoint, refused, error.code)
      } else {
        const address = clientAddressOf(request.raw, state.snapshot)
        const level = request.context === undefined ? (strangers?.levelOf('error', address) ?? 'error') : 'error'
        log[level]({ err: error, requestId: request.id }, 'a request failed by a fault of the gateway')
      }
      // Nobody who was not let in keeps a connection, and with it a descriptor, for the next request.
      const close: ReplyHeaders = request.context === undefined ? { Connection: 'close' } : {}
      sendError(reply.raw, error, request.id, { ...corsHeadersOf(reply), ...close }, id)
    },
    /** There is no time or memory for it, and nobody has looked at more than its head. */
    refuseUnbegun: ((reply, error) => {
      const raw = reply.req
      const { method = '', url = '', headers } = raw
      const id = requestId()
      const address = clientAddressOf(raw, state.snapshot)
      const { tenant: named, endpoint } = placeIn(url)
      const tenant = known(named)
      const refused = { id, method, url, headers, address }
      noteRefused(options, refused, tenant, error)
      if (tenant !== undefined) audit?.refused(tenant, endpoint, refused, error.code)
      sendError(reply, error, id, { Connection: 'close' }, null)
    }) satisfies RefuseUnbegun,
    /** What came is no request of HTTP/1.1, or has not come whole. */
    refuseUnreadable(socket: Socket, error: NodeJS.ErrnoException): void {
      const id = requestId()
      sendUnreadable(socket, error, maxHeaderBytes, id, (refusal) =>
        noteRefused(
          options,
          { id, method: '', url: '', headers: {}, address: socket.remoteAddress },
          undefined,
          refusal
        )
      )
    },
    /** Nothing at all came: it is no request, and load balancers connect so to see whether somebody listens. */
    closeSilent: (socket: Socket): void => sendUnreadable(socket, requestTimeout, maxHeaderBytes, '', () => {})
  }
}

const refusedRequest = (
  { id, method, url, headers, context, since }: RouteRequest,
  address: string | undefined
): RefusedRequest => ({
  id,
  method,
  url,
  headers,
  context,
  address,
  ...(since > 0 && { ms: steadyClock.now() - since })
})

/** As Node's server says it. */
const requestTimeout = Object.assign(new Error('nothing came'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })

/**
 * On the bare socket: there is no response to write to.
 * @param requestId '': it has none
 * @param note is told what it is refused with, where somebody may be there to read that
 */
function sendUnreadable(
  socket: Socket,
  error: NodeJS.ErrnoException,
  maxHeaderBytes: number,
  requestId: string,
  note: (refusal: GatewayError) => void
): void {
  // Reset by the client: nobody is there to read.
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const refusal = unreadable(error.code, maxHeaderBytes)
  note(refusal)
  const { status } = refusal.row
  const text = JSON.stringify(errorMessage(null, errorObject(refusal, requestId)))
  const idHeader = requestId === '' ? '' : `${requestIdHeader}: ${requestId}\r\n`
  if (socket.writable)
    socket.write(
      `HTTP/1.1 ${status} ${nodeHttp.STATUS_CODES[status]}\r\nContent-Type: application/json\r\n${idHeader}` +
        `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`
    )
  // The answer to a request before it may still be held back, to go out with more.
  while (socket.writableCorked > 0) socket.uncork()
  socket.destroy(error)
}

function unreadable(code: string | undefined, maxHeaderBytes: number): GatewayError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new GatewayError(
      'headers_too_large',
      `The headers of the request are larger than ${maxHeaderBytes / 1024} KiB together. Send fewer or shorter ones.`
    )
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new GatewayError('request_timeout', 'The request did not arrive in time. Send it again, at once and whole.')
  return new GatewayError('invalid_request', 'What was sent is not a request of HTTP/1.1. Correct the client.')
}

/** Fastify's own errors in our words; any other error as it is. */
function translateFastifyError(error: unknown): unknown {
  switch (isObject(error) ? error['code'] : undefined) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new GatewayError(
        'too_large',
        'The body is larger than this gateway takes (limits.bodyBytes). Send less in one request.',
        {
          headers: { Connection: 'close' }
        }
      )
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return notJson()
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
