// JSON-RPC 2.0 messages as MCP uses them, their errors, and the revisions and names that the gateway tells apart.
// Members that it does not need stay opaque and pass through unchanged.

import { type ErrorCode, type ErrorRow, errorTable } from './error-table.ts'

export type JsonObject = Record<string, unknown>

/** The JSON type is part of the id: 1 and "1" are two ids. */
export type RequestId = string | number

/** A request without its id, which belongs to the transport that carries it. */
export interface Request {
  readonly method: string
  readonly params?: JsonObject
}

export type Notification = Request

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

/** A member that is present is declared. */
export type ClientCapabilities = JsonObject
export type ServerCapabilities = JsonObject

export function isObject(value: unknown): value is JsonObject {
  // protocol/json.ts keeps numbers of many digits as raw JSON, which are objects at run time but not in JSON.
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawJson(value)
}
/** A number that a double would change, kept as it was written. */
export const isRawJson = (JSON as unknown as { isRawJSON(value: unknown): boolean }).isRawJSON

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

export function requestMessage(id: RequestId, { method, params }: Request): JsonObject {
  return { jsonrpc: '2.0', id, method, ...(params && { params }) }
}

export function notificationMessage({ method, params }: Notification): JsonObject {
  return { jsonrpc: '2.0', method, ...(params && { params }) }
}

export const responseMessage = (id: RequestId, result: Result): JsonObject => ({ jsonrpc: '2.0', id, result })

// `id`: left out (2025-11-25 schema) where the body is no request; null (JSON-RPC 2.0 section 5) where it was not
// parsed: the official Python client reads a refusal only where it has the member.
export const errorMessage = (id: RequestId | null | undefined, error: RpcErrorObject): JsonObject =>
  id === undefined ? { jsonrpc: '2.0', error } : { jsonrpc: '2.0', id, error }

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
  const foreign = Object.keys(value).find((member) => !members.has(member))
  if (foreign !== undefined) return invalid(`unknown member ${JSON.stringify(foreign.slice(0, 40))}`)
  const { method, params, result, error } = value
  if ('id' in value && id === undefined && !('error' in value && value['id'] === null)) {
    return invalid('"id" must be a string of 1 to 1024 characters or a whole number within ±(2^53-1)')
  }
  if (typeof method === 'string') {
    if (result !== undefined || 'error' in value)
      return invalid('a message has either "method" or one of "result" and "error"')
    if (params !== undefined && !isObject(params)) return invalid('"params" must be an object')
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

/** No other file contains numbers of errors. */
export const rpcCodes = {
  // JSON-RPC 2.0 section 5.1.
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** Up to 2025-11-25 (server/resources "Error Handling"); 2026-07-28 answers invalidParams instead. */
  resourceNotFound: -32002,
  /** 2025-11-25 client/elicitation "URL Elicitation Required Error". */
  urlElicitationRequired: -32042,
  // 2026-07-28 basic/index "Error Codes".
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedRevision: -32022
} as const

/** Codes that only servers of 2026-07-28 and later send. */
export const modernOnlyCodes: ReadonlySet<number> = new Set([
  rpcCodes.headerMismatch,
  rpcCodes.missingCapability,
  rpcCodes.unsupportedRevision
])

/** The range that 2026-07-28 reserves for the specification (basic/index "Error Codes"). */
export const isReservedForMcp = (code: number): boolean => code <= -32020 && code >= -32099

/** Does JSON-RPC or MCP define the code, or reserve it? */
export const isSpecifiedCode = (code: unknown): boolean =>
  typeof code === 'number' &&
  (isReservedForMcp(code) || (code <= -32600 && code >= -32603) || code === rpcCodes.parseError)

/** An answer, of which there can be thousands at once: without a stack, which takes ten times as long as the rest. */
class AnswerError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super(message, options)
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** `message` goes to the caller: what happened and what to do about it. */
export class GatewayError extends AnswerError {
  override readonly name = 'GatewayError'
  readonly code: ErrorCode
  /** Goes to the caller as members of `error.data`, beside `reason`: nothing secret. */
  readonly data: Readonly<Record<string, unknown>>
  /** Reply headers, such as WWW-Authenticate, Allow, Retry-After. */
  readonly headers: Readonly<Record<string, string>>

  /** @param extras `cause` goes to the log only */
  constructor(
    code: ErrorCode,
    message: string,
    extras: Partial<Pick<GatewayError, 'cause' | 'data' | 'headers'>> = {}
  ) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.code = code
    this.data = extras.data ?? {}
    this.headers = extras.headers ?? {}
  }

  get row(): ErrorRow {
    return errorTable[this.code]
  }
}

/** An upstream's own JSON-RPC error, carried to the client as it came. */
export class RpcError extends AnswerError {
  override readonly name = 'RpcError'
  readonly error: RpcErrorObject
  /** The gateway made it, in this form because the specification or somebody's code has it so. */
  readonly reason: ErrorCode | undefined

  constructor(error: RpcErrorObject, reason?: ErrorCode) {
    super(error.message)
    this.error = error
    this.reason = reason
  }
}

/** The JSON-RPC code of an error of the gateway: a standard one, or its HTTP status. */
export function rpcCodeOf(code: ErrorCode): number {
  const { rpcCode, status }: ErrorRow = errorTable[code]
  return rpcCode === undefined ? status : rpcCodes[rpcCode]
}

/** Legacy: `initialize` agrees on a revision for a session. Modern: every request names one. */
export type Era = 'legacy' | 'modern'

export const legacyRevisions = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const
export const modernRevisions = ['2026-07-28'] as const
export type LegacyRevision = (typeof legacyRevisions)[number]
export type ModernRevision = (typeof modernRevisions)[number]
export type Revision = LegacyRevision | ModernRevision

export const latestLegacy: LegacyRevision = '2025-11-25'
export const latestModern: ModernRevision = '2026-07-28'

export const isLegacyRevision = (value: unknown): value is LegacyRevision =>
  (legacyRevisions as readonly unknown[]).includes(value)

export const isModernRevision = (value: unknown): value is ModernRevision =>
  (modernRevisions as readonly unknown[]).includes(value)

/** Revisions are dates, which compare as text. */
export const atLeast = (revision: Revision, minimum: Revision): boolean => revision >= minimum

// Names and ids that must not be mixed up: strings at run time, distinct types to the compiler.
declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

export type TenantId = Branded<'TenantId'>
export type EndpointName = Branded<'EndpointName'>
export type UpstreamName = Branded<'UpstreamName'>
export type SessionId = Branded<'SessionId'>
/** A tool or prompt name as the client sees it. */
export type PublicName = Branded<'PublicName'>

export const tenantId = (value: string): TenantId => value as TenantId
export const endpointName = (value: string): EndpointName => value as EndpointName
export const upstreamName = (value: string): UpstreamName => value as UpstreamName
export const sessionId = (value: string): SessionId => value as SessionId
export const publicName = (value: string): PublicName => value as PublicName
