// What every request of 2026-07-28 carries in `params._meta`, and what every result carries back (basic/index "_meta").

import {
  type RequestId,
  type ClientCapabilities,
  type Implementation,
  type JsonObject,
  type Request,
  type Result,
  isObject,
  metaOf
} from './messages.ts'
import { isLogLevel, type LogLevel } from './seams.ts'

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

export interface Envelope {
  /** As the client wrote it; not necessarily a supported one. */
  readonly version: string
  readonly capabilities: ClientCapabilities
  readonly logLevel: LogLevel | undefined
}

/** Does the message claim to be of the modern era, well formed or not? */
export function claimsEnvelope(params: JsonObject | undefined): boolean {
  return versionKey in metaOf(params)
}

/** @returns the envelope, or a sentence that says what is missing or wrong */
export function readEnvelope(params: JsonObject | undefined): Envelope | string {
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
  ) {
    return `"${clientInfoKey}" must be an object with "name" and "version".`
  }
  if (logLevel !== undefined && !isLogLevel(logLevel))
    return `"${logLevelKey}" must be a log level of RFC 5424, such as "info".`
  if (progressToken !== undefined && typeof progressToken !== 'string' && !Number.isSafeInteger(progressToken))
    return '"progressToken" must be a string or an integer.'
  return { version, capabilities, logLevel }
}

/** Are they within `maxCapabilitiesBytes`? */
export const capabilitiesFit = (capabilities: JsonObject): boolean =>
  encoder.encode(JSON.stringify(capabilities)).length <= maxCapabilitiesBytes

const envelopeKeys = new Set([versionKey, capabilitiesKey, clientInfoKey, logLevelKey])

/** The request without its envelope; other members of `_meta`, `progressToken` among them, stay. */
export function withoutEnvelope(request: Request): Request {
  const { _meta, ...params } = request.params ?? {}
  if (!isObject(_meta)) return request
  const rest = Object.fromEntries(Object.entries(_meta).filter(([key]) => !envelopeKeys.has(key)))
  return { method: request.method, params: Object.keys(rest).length === 0 ? params : { ...params, _meta: rest } }
}

/** The request as a modern server expects it: in the gateway's name, with the capabilities of the client behind it. */
export function withEnvelope(
  request: Request,
  { version, capabilities, logLevel }: Envelope,
  clientInfo: Implementation
): Request {
  const bare = withoutEnvelope(request)
  return {
    method: bare.method,
    params: {
      ...bare.params,
      _meta: {
        ...metaOf(bare.params),
        [versionKey]: version,
        [clientInfoKey]: clientInfo,
        [capabilitiesKey]: capabilities,
        ...(logLevel === undefined ? {} : { [logLevelKey]: logLevel })
      }
    }
  }
}

/**
 * The result with the gateway's identity in place of the upstream's (basic/index "_meta": servers SHOULD send theirs).
 */
export function withServerInfo(result: Result, serverInfo: Implementation): Result {
  return { ...result, _meta: { ...metaOf(result), [serverInfoKey]: serverInfo } }
}

/** The request with our progress token in place of the sender's, so that no two calls have the same. */
export const withProgressToken = (request: Request, token: RequestId): Request => ({
  ...request,
  params: { ...request.params, _meta: { ...metaOf(request.params), progressToken: token } }
})
