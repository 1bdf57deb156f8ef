// JSON-RPC 2.0 messages as MCP uses them. Members that the gateway does not need stay opaque and pass through
// unchanged.

export type JsonObject = Record<string, unknown>

/** JSON-RPC id. The JSON type is part of the id: 1 and "1" are two ids. */
export type RequestId = string | number

/** A request without its envelope: ids belong to the transport that carries it. */
export interface Request {
  readonly method: string
  readonly params?: JsonObject
}

export interface Notification {
  readonly method: string
  readonly params?: JsonObject
}

/** A request that a server sends to a client: sampling, elicitation, roots, ping. */
export type ServerRequest = Request

/** The `result` member of a response. */
export type Result = JsonObject

export interface RpcErrorObject {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

export type Message =
  | { readonly kind: 'request'; readonly id: RequestId; readonly request: Request }
  | { readonly kind: 'notification'; readonly notification: Notification }
  | { readonly kind: 'response'; readonly id: RequestId; readonly result: Result }
  | { readonly kind: 'error'; readonly id: RequestId | undefined; readonly error: RpcErrorObject }

export interface Implementation {
  readonly name: string
  readonly version: string
  readonly [member: string]: unknown
}

/** `capabilities` of a client: a member that is present is declared. */
export type ClientCapabilities = JsonObject
/** `capabilities` of a server. */
export type ServerCapabilities = JsonObject

export function isObject(value: unknown): value is JsonObject {
  // protocol/json.ts keeps numbers of many digits as raw JSON, which are objects at run time but not in JSON.
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawJson(value)
}
const isRawJson = (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON

// Integers beyond 2^53 lose digits in a parser, so that two ids could become one.
export function isRequestId(value: unknown): value is RequestId {
  return typeof value === 'string'
    ? value !== '' && value.length <= 1024
    : Number.isSafeInteger(value) && !Object.is(value, -0)
}

/** `params._meta`, or an empty object. */
export function metaOf(params: JsonObject | undefined): JsonObject {
  const meta = params?.['_meta']
  return isObject(meta) ? meta : {}
}

export function requestMessage(id: RequestId, request: Request): JsonObject {
  return request.params === undefined
    ? { jsonrpc: '2.0', id, method: request.method }
    : { jsonrpc: '2.0', id, method: request.method, params: request.params }
}

export function notificationMessage(notification: Notification): JsonObject {
  return notification.params === undefined
    ? { jsonrpc: '2.0', method: notification.method }
    : { jsonrpc: '2.0', method: notification.method, params: notification.params }
}

export function responseMessage(id: RequestId, result: Result): JsonObject {
  return { jsonrpc: '2.0', id, result }
}

// 2025-11-25 schema: `id` is left out, not null, when it could not be read.
export function errorMessage(id: RequestId | undefined, error: RpcErrorObject): JsonObject {
  return id === undefined ? { jsonrpc: '2.0', error } : { jsonrpc: '2.0', id, error }
}

/**
 * Sorts one decoded JSON value into the four kinds of message. Never throws.
 * @returns the message, or the reason why it is not one (JSON-RPC 2.0 sections 4 and 5)
 */
export function classifyMessage(
  value: unknown
): Message | { readonly kind: 'invalid'; readonly reason: string; readonly id: RequestId | undefined } {
  if (!isObject(value)) return { kind: 'invalid', reason: 'a message must be a JSON object', id: undefined }
  const id = isRequestId(value['id']) ? value['id'] : undefined
  const invalid = (reason: string) => ({ kind: 'invalid', reason, id }) as const
  if (value['jsonrpc'] !== '2.0') return invalid('member "jsonrpc" must be "2.0"')
  for (const member of Object.keys(value)) {
    if (!members.has(member)) return invalid(`unknown member ${JSON.stringify(member.slice(0, 40))}`)
  }
  const { method, params, result, error } = value
  if ('id' in value && id === undefined && !('error' in value && value['id'] === null)) {
    return invalid('"id" must be a string of 1 to 1024 characters or a whole number within ±(2^53-1)')
  }
  if (typeof method === 'string') {
    if (result !== undefined || error !== undefined)
      return invalid('a message has either "method" or one of "result" and "error"')
    if (params !== undefined && !isObject(params)) return invalid('"params" must be an object')
    if ('error' in value) return invalid('a message has either "method" or one of "result" and "error"')
    const body = params === undefined ? { method } : { method, params }
    return id === undefined ? { kind: 'notification', notification: body } : { kind: 'request', id, request: body }
  }
  if (method !== undefined) return invalid('"method" must be a string')
  if (isObject(result)) {
    return id === undefined || error !== undefined
      ? invalid('a response needs an "id" and either "result" or "error"')
      : { kind: 'response', id, result }
  }
  if (
    isObject(error) &&
    result === undefined &&
    Number.isSafeInteger(error['code']) &&
    typeof error['message'] === 'string'
  ) {
    return { kind: 'error', id, error: error as unknown as RpcErrorObject }
  }
  return invalid('a message needs "method", an object "result", or an "error" with "code" and "message"')
}

const members = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])
