// The envelope of 2026-07-28: what every request carries in `params._meta` and every result carries back (basic/index
// "_meta"), and which headers repeat it. By it a POSTed body is told to be of one era or the other.

import {
  classifyMessage,
  GatewayError,
  isModernRevision,
  isObject,
  latestModern,
  metaOf,
  modernRevisions,
  type ClientCapabilities,
  type Implementation,
  type JsonObject,
  type Request,
  type RequestId,
  type Result
} from './messages.ts'
import { modernClientRequests } from './methods.ts'
import { firstOf } from './own-text.ts'
import { isLogLevel, type LogLevel } from './seams.ts'
import { decodeHeader } from './translate/param-headers.ts'

export const versionKey = 'io.modelcontextprotocol/protocolVersion'
export const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'
export const clientInfoKey = 'io.modelcontextprotocol/clientInfo'
export const logLevelKey = 'io.modelcontextprotocol/logLevel'
export const serverInfoKey = 'io.modelcontextprotocol/serverInfo'
export const subscriptionIdKey = 'io.modelcontextprotocol/subscriptionId'

/**
 * As JSON in UTF-8. Declared capabilities are stored with connections, sessions and tasks, and sent with each request.
 */
export const maxCapabilitiesBytes = 4_096
const encoder = new TextEncoder()

export const capabilitiesFit = (capabilities: JsonObject): boolean =>
  encoder.encode(JSON.stringify(capabilities)).length <= maxCapabilitiesBytes

export interface Envelope {
  /** The version as the client wrote it; not necessarily a supported one. */
  readonly version: string
  readonly capabilities: ClientCapabilities
  readonly logLevel: LogLevel | undefined
  /** The name and version that the client gives itself. */
  readonly software: Implementation | undefined
}

/** @returns the envelope, or a sentence that says what is missing or wrong */
function readEnvelope(params: JsonObject | undefined): Envelope | string {
  const meta = params?.['_meta']
  if (!isObject(meta)) return `"params._meta" is missing: it must hold ${versionKey} and ${capabilitiesKey}.`
  const {
    [versionKey]: version,
    [capabilitiesKey]: capabilities,
    [clientInfoKey]: clientInfo,
    [logLevelKey]: logLevel,
    progressToken
  } = meta
  if (typeof version !== 'string') return `"params._meta" must hold "${versionKey}", a string.`
  if (!isObject(capabilities))
    return `"params._meta" must hold "${capabilitiesKey}", an object; {} where there are none.`
  if (!capabilitiesFit(capabilities))
    return (
      `"${capabilitiesKey}" takes more than ${maxCapabilitiesBytes} bytes as JSON. Leave out what the server need ` +
      'not know.'
    )
  if (
    clientInfo !== undefined &&
    (!isObject(clientInfo) || typeof clientInfo['name'] !== 'string' || typeof clientInfo['version'] !== 'string')
  )
    return `"${clientInfoKey}" must be an object with "name" and "version".`
  if (logLevel !== undefined && !isLogLevel(logLevel))
    return `"${logLevelKey}" must be a log level of RFC 5424, such as "info".`
  if (progressToken !== undefined && typeof progressToken !== 'string' && !Number.isSafeInteger(progressToken))
    return '"progressToken" must be a string or an integer.'
  return { version, capabilities, logLevel, software: softwareOf(clientInfo) }
}

/** @returns what fits into a log, and keeps nothing of the body */
export const softwareOf = (clientInfo: unknown): Implementation | undefined =>
  isObject(clientInfo) && typeof clientInfo['name'] === 'string'
    ? {
        name: firstOf(clientInfo['name'], 200),
        version: typeof clientInfo['version'] === 'string' ? firstOf(clientInfo['version'], 100) : 'unknown'
      }
    : undefined

const envelopeKeys = new Set([versionKey, capabilitiesKey, clientInfoKey, logLevelKey])

/** Other members of `_meta`, `progressToken` among them, stay. */
function withoutEnvelope(request: Request): Request {
  const { _meta, ...params } = request.params ?? {}
  if (!isObject(_meta)) return request
  const rest = Object.fromEntries(Object.entries(_meta).filter(([key]) => !envelopeKeys.has(key)))
  return { method: request.method, params: Object.keys(rest).length === 0 ? params : { ...params, _meta: rest } }
}

/** The request as a modern server expects it: in the gateway's name, with the capabilities of the client behind it. */
export function withEnvelope(
  request: Request,
  { version, capabilities, logLevel }: Omit<Envelope, 'software'>,
  clientInfo: Implementation
): Request {
  const { method, params } = withoutEnvelope(request)
  const _meta = {
    ...metaOf(params),
    [versionKey]: version,
    [clientInfoKey]: clientInfo,
    [capabilitiesKey]: capabilities,
    ...(logLevel === undefined ? {} : { [logLevelKey]: logLevel })
  }
  return { method, params: { ...params, _meta } }
}

/** The request with our progress token in place of the sender's, so that no two calls have the same. */
export const withProgressToken = (request: Request, token: RequestId): Request => ({
  ...request,
  params: { ...request.params, _meta: { ...metaOf(request.params), progressToken: token } }
})

/** Puts the gateway's identity in place of the upstream's (basic/index "_meta": servers SHOULD send theirs). */
export function withServerInfo(result: Result, serverInfo: Implementation): Result {
  return { ...result, _meta: { ...metaOf(result), [serverInfoKey]: serverInfo } }
}

/** Headers that repeat values of the body; undefined where they are missing. */
export interface RoutingHeaders {
  /** MCP-Protocol-Version */
  readonly version: string | undefined
  /** Mcp-Method */
  readonly method: string | undefined
  /** Mcp-Name */
  readonly name: string | undefined
}

export interface ModernRequest {
  readonly kind: 'modern'
  readonly id: RequestId
  /** The request without its envelope. */
  readonly request: Request
  readonly envelope: Envelope
}

export type ClassifiedBody =
  | { readonly kind: 'legacy' }
  | ModernRequest
  /** 2026-07-28 defines no notification that a client sends over HTTP: it is accepted and ignored. */
  | { readonly kind: 'notification' }

/** Does the header MCP-Protocol-Version name a revision without a handshake, supported or not? */
export const isModernVersionHeader = (version: string | undefined): boolean =>
  version !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= latestModern

/** Does the message claim to be of the modern era, well formed or not? */
const claimsEnvelope = (body: unknown): boolean =>
  isObject(body) && isObject(body['params']) && versionKey in metaOf(body['params'])

/**
 * Which era a POSTed body belongs to, and whether its envelope and its headers agree. The checks run in a fixed order,
 * and the first that fails is the response. What is wrong with a legacy body the legacy path reports.
 * @param body any decoded JSON value
 * @throws GatewayError invalid_request, invalid_envelope, header_mismatch, unsupported_revision; all of them HTTP 400
 */
export function classifyHttpBody(headers: RoutingHeaders, body: unknown): ClassifiedBody {
  const saysModern = isModernVersionHeader(headers.version)
  if (Array.isArray(body)) {
    // Only 2025-03-26 has batches.
    if (body.length === 0) throw invalid('The array is empty; send one JSON-RPC message.')
    if (saysModern || body.some(claimsEnvelope))
      throw invalid(`Revision ${latestModern} has no batches; send one message per request.`)
    return { kind: 'legacy' }
  }
  const claims = claimsEnvelope(body)
  if (!claims && !saysModern) return { kind: 'legacy' }

  const message = classifyMessage(body)
  if (message.kind === 'invalid') throw invalid(`Not a JSON-RPC message: ${message.reason}.`)
  if (message.kind === 'notification') return { kind: 'notification' }
  if (message.kind !== 'request')
    throw invalid(
      `Revision ${latestModern} has no requests from servers that a client could answer. Send what the server ` +
        'asks for in inputResponses, with the same request again.'
    )
  const { id, request } = message
  const envelope = readEnvelope(request.params)
  const named = `MCP-Protocol-Version names ${(headers.version ?? '').slice(0, 20)}`
  if (request.method === 'initialize' && (typeof envelope === 'string' || !isModernRevision(envelope.version))) {
    // The headers tell proxies on the way that there is no session, so none may be opened.
    if (saysModern)
      throw mismatch(`${named}, which has no initialize. Send server/discover, or leave the header out of initialize.`)
    return { kind: 'legacy' }
  }
  if (typeof envelope === 'string')
    throw new GatewayError(
      'invalid_envelope',
      claims
        ? envelope
        : `${named}, where every request has "${versionKey}" and "${capabilitiesKey}" in params._meta. ${envelope}`
    )
  checkHeaders(headers, request, envelope.version)
  return { kind: 'modern', id, request: withoutEnvelope(request), envelope }
}

const invalid = (text: string): GatewayError => new GatewayError('invalid_request', text)
const mismatch = (text: string): GatewayError => new GatewayError('header_mismatch', text)

function checkHeaders(headers: RoutingHeaders, { method, params = {} }: Request, version: string): void {
  // "Protocol Version Header". The comparison comes first: a proxy that routes by the header must see the same version
  // as the gateway.
  if (headers.version === undefined)
    throw mismatch(`The header MCP-Protocol-Version is missing: it must repeat "${versionKey}" of params._meta.`)
  if (headers.version !== version)
    throw mismatch(`The header MCP-Protocol-Version does not say the same as "${versionKey}" of params._meta.`)
  if (!isModernRevision(version)) {
    throw new GatewayError(
      'unsupported_revision',
      'This endpoint does not support the revision that the request names. Use one of data.supported; earlier ' +
        'revisions begin with initialize.',
      { data: { supported: modernRevisions, requested: version } }
    )
  }
  if (headers.method === undefined)
    throw mismatch('The header Mcp-Method is missing: it must repeat "method" of the body.')
  if (headers.method !== method)
    throw mismatch('The header Mcp-Method does not say the same as "method" of the body; upper and lower case differ.')
  const member = modernClientRequests.get(method)?.nameParam
  if (member === undefined) return
  const value = params[member]
  if (headers.name === undefined) {
    // The body lacks the value that the header would repeat: the method reports that, in clearer words.
    if (typeof value !== 'string') return
    throw mismatch(`The header Mcp-Name is missing: it must repeat "params.${member}" of the body.`)
  }
  const name = decodeHeader(headers.name)
  if (name === undefined)
    throw mismatch(
      'The header Mcp-Name is damaged: it must be visible ASCII, or the base64 of UTF-8 between "=?base64?" and "?=".'
    )
  if (name !== value) throw mismatch(`The header Mcp-Name does not say the same as "params.${member}" of the body.`)
}
