// Every error that we make, in one table: HTTP status, JSON-RPC code, log level, retry hint. A missing row does not compile.
// JSON-RPC codes: the standard ones where one fits; else the HTTP status itself, which lies outside the range that the
// specification reserves (-32768..-32000; 2026-07-28 basic/index "Error Codes").

import type { RpcErrorObject } from './messages.ts'

export interface ErrorRow {
  /** Status of the HTTP reply while nothing was streamed yet; 200 where the error is an ordinary JSON-RPC answer. */
  readonly status: number
  readonly rpcCode: number
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  /** May the very same request succeed later without anybody changing anything? */
  readonly retry: boolean
  /** For docs/errors.md: when it happens and what to do. */
  readonly meaning: string
}

const row = (status: number, rpcCode: number, level: ErrorRow['level'], retry: boolean, meaning: string): ErrorRow =>
  ({ status, rpcCode, level, retry, meaning })

export const errorTable = {
  parse_error: row(400, -32700, 'info', false, 'The body is not one JSON text in UTF-8. Send valid JSON.'),
  invalid_request: row(400, -32600, 'info', false, 'The message or a header breaks JSON-RPC 2.0 or the MCP transport rules, or the body is nested deeper than 64 levels; the message says which. Correct the client.'),
  unsupported_version: row(400, -32600, 'info', false, 'The MCP-Protocol-Version header names a revision that this endpoint does not speak. Use one of data.supported.'),
  header_mismatch: row(400, -32020, 'info', false, 'A header that must repeat a value of the body (MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Param-*) is missing, damaged or says something else; the message says which. Derive the headers from the body; list the tools again if their schema may have changed.'),
  missing_capability: row(400, -32021, 'info', false, 'The request needs a capability that its _meta does not declare; data.requiredCapabilities names it.'),
  unsupported_revision: row(400, -32022, 'info', false, 'The request names a revision that this endpoint does not speak. Use one of data.supported.'),
  invalid_envelope: row(400, -32602, 'info', false, 'From 2026-07-28 on every request carries io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities in params._meta; the message says what is missing or wrong.'),
  unknown_method: row(404, -32601, 'info', false, 'Revision 2026-07-28 has no such method, or the endpoint does not offer it.'),
  session_required: row(400, -32600, 'info', false, 'The request carries no Mcp-Session-Id. Send initialize first and repeat the id of its answer on every request.'),
  session_unknown: row(404, 404, 'info', false, 'The session has ended, expired or never existed for this caller. Send a new initialize without a session id.'),
  unauthenticated: row(401, 401, 'info', false, 'No valid bearer token. Follow resource_metadata in WWW-Authenticate to get one, or use an API key of the tenant.'),
  forbidden_host: row(403, 403, 'warn', false, 'The Host header is none of the names of this gateway. Use its public URL, or list the name under hosts.'),
  forbidden_origin: row(403, 403, 'warn', false, 'A browser page of an origin that is not allowed. List the origin under the tenant\'s origins.'),
  insufficient_scope: row(403, 403, 'info', false, 'The token lacks a scope that the operation needs; WWW-Authenticate names them all.'),
  not_found: row(404, 404, 'info', false, 'No such tenant, endpoint or page.'),
  method_not_allowed: row(405, 405, 'info', false, 'The HTTP method is not used here; Allow lists those that are.'),
  not_acceptable: row(406, 406, 'info', false, 'The Accept header allows none of the formats of this answer. Send "application/json, text/event-stream".'),
  too_large: row(413, 413, 'info', false, 'The body is larger than limits.bodyBytes, or that of a subscriptions/listen than 256 KiB.'),
  unsupported_media_type: row(415, 415, 'info', false, 'The body must be application/json in UTF-8 without Content-Encoding.'),
  too_many: row(429, 429, 'warn', true, 'A limit of sessions, calls or processes is reached; the message names it. Retry later.'),
  method_not_found: row(200, -32601, 'info', false, 'The endpoint does not offer this MCP method.'),
  invalid_params: row(200, -32602, 'info', false, 'Unknown tool, prompt or cursor, or parameters of the wrong shape; the message says which.'),
  resource_not_found: row(200, -32002, 'info', false, 'No upstream of the endpoint serves this resource URI.'),
  unknown_resource: row(200, -32602, 'info', false, 'No upstream of the endpoint serves this resource URI (2026-07-28; older revisions get resource_not_found).'),
  invalid_state: row(200, -32602, 'info', false, 'The requestState is not what this gateway gave to this caller for this very request, or it is too old. Send the request again without it; but where data.outcome is "unknown" its upstream has had the call, so find out first what it did.'),
  declined: row(200, -32603, 'info', false, 'The user declined what the upstream needs for this request, so it was not carried out.'),
  cancelled: row(200, -32603, 'debug', false, 'The caller cancelled the request. Sent only to callers that take no stream; the others get an empty stream, since a cancelled request is not answered.'),
  upstream_unavailable: row(200, -32603, 'warn', true, 'The upstream server cannot be reached or does not start. It is retried with back-off; other upstreams go on.'),
  upstream_timeout: row(200, -32603, 'warn', false, 'The upstream server sent nothing for its timeout. The call was cancelled there; whether it took effect is unknown.'),
  upstream_lost: row(200, -32603, 'warn', false, 'The connection to the upstream broke, or its process ended, after the request was sent. It is not sent again: data.outcome is "unknown".'),
  upstream_protocol: row(200, -32603, 'warn', false, 'The upstream sent something that is not MCP, or more than its limits allow.'),
  unavailable: row(503, 503, 'error', true, 'A part that this request needs, such as the session store or the identity provider, cannot be reached. Retry after Retry-After.'),
  shutting_down: row(503, 503, 'info', true, 'The gateway is stopping. Retry; another process will answer.'),
  internal: row(500, -32603, 'error', false, 'A fault of the gateway. The request id in the answer finds it in the log.')
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof errorTable

export interface ErrorExtras {
  readonly cause?: unknown
  /** Goes to the caller as `error.data`, beside `reason`. Nothing secret in it. */
  readonly data?: Readonly<Record<string, unknown>>
  /** Reply headers, such as WWW-Authenticate, Allow, Retry-After. */
  readonly headers?: Readonly<Record<string, string>>
}

/** An error of ours. `message` goes to the caller: what happened and what to do about it. `cause` goes to the log only. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  readonly data: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>

  constructor (code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.code = code
    this.data = extras.data ?? {}
    this.headers = extras.headers ?? {}
  }

  get row (): ErrorRow {
    return errorTable[this.code]
  }
}

/** An upstream's own JSON-RPC error, carried to the client as it came. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly error: RpcErrorObject

  constructor (error: RpcErrorObject) {
    super(error.message)
    this.error = error
  }
}

/** The JSON-RPC error object that a caller sees. Anything that is not ours says nothing of the thrown value. */
export function errorObject (error: unknown, requestId: string): RpcErrorObject {
  if (error instanceof RpcError) return error.error
  if (error instanceof GatewayError) {
    return { code: error.row.rpcCode, message: error.message, data: { reason: error.code, ...error.data } }
  }
  return { code: errorTable.internal.rpcCode, message: `Internal error. The log of the gateway has the details under request id ${requestId}.`, data: { reason: 'internal', requestId } }
}
