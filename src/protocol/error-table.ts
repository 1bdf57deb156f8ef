// Every error that the gateway makes, in one table. A missing row does not compile. The JSON-RPC code is a standard one
// where one fits. Otherwise it is the HTTP status, which lies outside of the range that the specification reserves
// (-32768..-32000; 2026-07-28 basic/index "Error Codes").

import type { rpcCodes } from './messages.ts'

type RpcCode = keyof typeof rpcCodes

export interface ErrorRow {
  /**
   * The status of the HTTP response while nothing of it was sent; 200 where the error is an ordinary JSON-RPC response.
   */
  readonly status: number
  /** Default: the status. */
  readonly rpcCode?: RpcCode
  /** The log level of the line about a refused request. */
  readonly level: 'debug' | 'info' | 'error'
  /** May the same request succeed later without anybody changing anything? */
  readonly retry: boolean
  /** The data of the error has the members of the specification and no others: clients know the error by them. */
  readonly bareData?: boolean
  /** The text for docs/errors.md: when the error happens and what to do. */
  readonly meaning: string
}

type Extras = Partial<ErrorRow>

const http = (status: number, meaning: string, extras: Extras = {}): ErrorRow => ({
  status,
  level: 'info',
  retry: false,
  meaning,
  ...extras
})
const badRequest = (rpcCode: RpcCode, meaning: string): ErrorRow => http(400, meaning, { rpcCode })
const rpc = (rpcCode: RpcCode, meaning: string, extras?: Extras): ErrorRow => http(200, meaning, { rpcCode, ...extras })

export const errorTable = {
  parse_error: badRequest('parseError', 'The body is not a single JSON text in UTF-8. Send valid JSON.'),
  invalid_request: badRequest(
    'invalidRequest',
    'The message or a header violates JSON-RPC 2.0 or the MCP transport rules, or the body is nested deeper than 64 ' +
      'levels; the message says which. Correct the client.'
  ),
  unsupported_version: badRequest(
    'invalidRequest',
    'The MCP-Protocol-Version header names a revision that this endpoint does not support. Use one of ' +
      'data.supported.'
  ),
  header_mismatch: badRequest(
    'headerMismatch',
    'A header that must repeat a value of the body (MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Param-*) is ' +
      'missing, malformed or differs from the body; the message says which. Derive the headers from the body; list ' +
      'the tools again if their schema may have changed.'
  ),
  missing_capability: badRequest(
    'missingCapability',
    'The request needs a capability that its _meta does not declare; data.requiredCapabilities names it.'
  ),
  unsupported_revision: badRequest(
    'unsupportedRevision',
    'The request names a revision that this endpoint does not support. Use one of data.supported.'
  ),
  invalid_envelope: badRequest(
    'invalidParams',
    'From 2026-07-28 on every request carries io.modelcontextprotocol/protocolVersion and ' +
      'io.modelcontextprotocol/clientCapabilities in params._meta; the message says what is missing or wrong.'
  ),
  unknown_method: http(404, 'Revision 2026-07-28 has no such method, or the endpoint does not offer it.', {
    rpcCode: 'methodNotFound'
  }),
  session_required: badRequest(
    'invalidRequest',
    'The request carries no Mcp-Session-Id. Send initialize first, and the session id of its response with every ' +
      'request after it.'
  ),
  session_unknown: http(
    404,
    'The session has ended or expired, or never existed for this caller. Send a new initialize without a session ' +
      'id.'
  ),
  unauthenticated: http(
    401,
    'No valid bearer token. Follow resource_metadata in WWW-Authenticate to get one, or use an API key of the ' +
      'tenant. Without resource_metadata the tenant has API keys only. data.refusal names the check that the ' +
      'credential did not pass.'
  ),
  forbidden_host: http(
    403,
    'The Host header is not a name of this gateway. Use its public URL, or list the name under hosts.'
  ),
  forbidden_origin: http(
    403,
    'The request comes from a web page whose origin is not allowed. List the origin under the origins of the ' +
      'tenant.'
  ),
  insufficient_scope: http(
    403,
    'The token lacks a scope that the operation needs; WWW-Authenticate names all of them.'
  ),
  stopped: http(
    403,
    'Those who run the gateway have stopped this caller or API key, or the whole tenant, by a kill switch. Ask them.'
  ),
  not_found: http(404, 'No such tenant, endpoint or page.'),
  method_not_allowed: http(405, 'This URL does not support the HTTP method; Allow lists those that it supports.'),
  not_acceptable: http(
    406,
    'The Accept header excludes every format of the response. Send "application/json, text/event-stream".'
  ),
  too_large: http(
    413,
    'The body is larger than limits.bodyBytes, or the body of a subscriptions/listen is larger than 256 KiB; or it ' +
      'comes in too many tiny pieces.'
  ),
  unsupported_media_type: http(415, 'The body must be application/json in UTF-8 without Content-Encoding.'),
  headers_too_large: http(
    431,
    'The headers of the request are larger than 32 KiB together. Send fewer or shorter ones.'
  ),
  request_timeout: http(408, 'The request did not arrive whole in time. Send it again.', { retry: true }),
  too_many: http(
    429,
    'A limit of sessions, calls, processes or memory is reached; the message names it. Retry later.',
    { retry: true }
  ),
  rate_limited: http(
    429,
    'The caller, or all callers of the tenant together, send more requests a second than limits.requestsPerSecond... ' +
      'allows, more bytes in long bodies than limits.bodyBytesPerSecond..., more sessions than ' +
      'limits.sessionsPerSecond..., or more calls a second, minute or hour than a limit of the tenant does; ' +
      'data.limit names which. Wait for as long as Retry-After and data.retryAfterMs say, then send more slowly.',
    { level: 'debug', retry: true }
  ),
  quota_exceeded: http(
    429,
    'More calls than a limit of the tenant allows in a day or month; data.limit names it, Retry-After and ' +
      'data.retryAfterMs say when the next one begins.',
    { level: 'debug', retry: true }
  ),
  method_not_found: rpc('methodNotFound', 'The endpoint does not offer this MCP method.'),
  invalid_params: rpc(
    'invalidParams',
    'The tool, prompt or cursor is unknown, or the parameters have the wrong shape; the message says which.'
  ),
  refused_by_policy: rpc(
    'invalidParams',
    'A condition of the policy refuses this call, of a tool or prompt that may be called otherwise: data.rule names ' +
      'the rule, or is "default" where the condition of no rule allows it. Change the arguments.'
  ),
  result_too_large: rpc(
    'internalError',
    'What the upstream has answered is longer than maxResultBytes of the endpoint or tool lets through; of a tool ' +
      'that is said by a result with isError. The call has been made. Ask for less.'
  ),
  resource_not_found: rpc('resourceNotFound', 'No upstream of the endpoint serves this resource URI.'),
  unknown_resource: rpc(
    'invalidParams',
    'No upstream of the endpoint serves this resource URI (2026-07-28; earlier revisions get resource_not_found). ' +
      'Its data is `{ uri }` alone, without reason and requestId: official clients know the error by that.',
    { bareData: true }
  ),
  invalid_state: rpc(
    'invalidParams',
    'The requestState is too old, or it is not the one that this gateway gave to this caller for this very request. ' +
      'Send the request again without it. But where data.outcome is "unknown" the upstream has received the call: ' +
      'find out first what it did.'
  ),
  connect_required: rpc(
    'internalError',
    'The person has to connect an account, or enter a secret, on a page of the gateway first: the message has its ' +
      'address. A client of 2025-11-25 that can open pages gets it as error -32042; of a tool that others call it is ' +
      'a result with isError.'
  ),
  client_lacks_capability: rpc(
    'internalError',
    'The upstream needs something of the client that this one did not declare, or has no stream open for ' +
      '(data.requiredCapabilities); of a tool that is said by a result with isError. Clients of 2026-07-28 get ' +
      'missing_capability.'
  ),
  client_no_answer: rpc(
    'internalError',
    'The client refused, or failed to answer, what the upstream asked it during the call; the message says what. The ' +
      'code is that of the client, unless the specification reserves it.'
  ),
  declined: rpc('internalError', 'The user declined what the upstream needs for this request, so it was not executed.'),
  cancelled: rpc(
    'internalError',
    'The caller cancelled the request. Only callers that do not accept a stream get this error. The others get an ' +
      'empty stream, because a cancelled request is not answered.'
  ),
  call_stopped: rpc(
    'internalError',
    'Those who run the gateway have stopped the tool, its upstream, the caller or the tenant while the call ran. ' +
      'Where it was sent already, it was cancelled, and whether it took effect is unknown (data.outcome).'
  ),
  upstream_unavailable: rpc(
    'internalError',
    'The upstream server cannot be reached or does not start. The message says for how long it has been away and ' +
      'when it is tried again: by the gateway with back-off (data.retriedInMs), or by the next call ' +
      '(data.retryAfterMs). Other upstreams are not affected.',
    { retry: true }
  ),
  upstream_timeout: rpc(
    'internalError',
    'The upstream server sent nothing for its `timeoutMs`, or no answer within its `maxTimeoutMs`. The call was ' +
      'cancelled there; whether it took effect is unknown.'
  ),
  upstream_lost: rpc(
    'internalError',
    'The connection to the upstream broke, or its process ended, after the request was sent. It is not sent again: ' +
      'data.outcome is "unknown".'
  ),
  upstream_protocol: rpc(
    'internalError',
    'The upstream sent something that is not MCP, or more than its limits allow.'
  ),
  unavailable: http(
    503,
    'Something that this request needs, such as the session store or the identity provider, cannot be reached. ' +
      'Retry after the time in Retry-After.',
    { level: 'error', retry: true }
  ),
  overloaded: http(
    503,
    'The gateway has more to do than it can: the request waited longer than limits.queueMs, or would have, and was ' +
      'not begun. Retry after the time in Retry-After.',
    { level: 'debug', retry: true }
  ),
  shutting_down: http(503, 'The gateway is shutting down. Retry: another process will answer.', { retry: true }),
  internal: http(500, 'A fault of the gateway. Its log has the details under the request id of the response.', {
    rpcCode: 'internalError',
    level: 'error'
  })
} as const satisfies Record<string, ErrorRow>

export type ErrorCode = keyof typeof errorTable
