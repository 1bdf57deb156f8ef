// Classifies a POSTed body: which era it belongs to, and whether its envelope and its headers agree (2026-07-28). The
// checks run in a fixed order, and the first that fails is the response. Looks nothing up.

import { modernClientRequests } from './methods.ts'
import {
  type Envelope,
  capabilitiesKey,
  claimsEnvelope,
  readEnvelope,
  versionKey,
  withoutEnvelope
} from './envelope.ts'
import {
  GatewayError,
  type JsonObject,
  type Request,
  type RequestId,
  classifyMessage,
  isModernRevision,
  isObject,
  latestModern,
  modernRevisions
} from './messages.ts'
import { decodeHeader } from './translate/header-values.ts'

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
  /** Without its envelope. */
  readonly request: Request
  readonly envelope: Envelope
}

export type ClassifiedBody =
  | { readonly kind: 'legacy' }
  | ModernRequest
  /** 2026-07-28 defines no notification that a client sends over HTTP: it is accepted and ignored. */
  | { readonly kind: 'notification' }

/** Does the header MCP-Protocol-Version name a revision without a handshake, supported or not? */
export function isModernVersionHeader(version: string | undefined): boolean {
  return version !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= latestModern
}

/**
 * Classifies one POSTed body.
 * @param body any decoded JSON value
 * @throws GatewayError invalid_request, invalid_envelope, header_mismatch, unsupported_revision; all of them HTTP 400
 */
export function classifyHttpBody(headers: RoutingHeaders, body: unknown): ClassifiedBody {
  const saysModern = isModernVersionHeader(headers.version)
  if (Array.isArray(body)) return batch(body, saysModern)
  const params = isObject(body) && isObject(body['params']) ? body['params'] : undefined
  const claims = claimsEnvelope(params)
  if (!claims && !saysModern) return { kind: 'legacy' } // Valid or not: the legacy path reports what is wrong.

  const message = classifyMessage(body)
  if (message.kind === 'invalid')
    throw new GatewayError('invalid_request', `Not a JSON-RPC message: ${message.reason}.`)
  if (message.kind === 'notification') return { kind: 'notification' }
  if (message.kind !== 'request') {
    throw new GatewayError(
      'invalid_request',
      `Revision ${latestModern} has no requests from servers that a client could answer. Send what the server ` +
        'asks for in inputResponses, with the same request again.'
    )
  }
  const { id, request } = message
  const envelope = readEnvelope(params)
  if (request.method === 'initialize' && (typeof envelope === 'string' || !isModernRevision(envelope.version))) {
    // The headers tell proxies on the way that there is no session, so none may be opened.
    if (saysModern)
      throw new GatewayError(
        'header_mismatch',
        `MCP-Protocol-Version names ${shown(headers.version)}, which has no initialize. Send server/discover, or ` +
          'leave the header out of initialize.'
      )
    return { kind: 'legacy' }
  }
  if (typeof envelope === 'string')
    throw new GatewayError(
      'invalid_envelope',
      claims
        ? envelope
        : `MCP-Protocol-Version names ${shown(headers.version)}, where every request has "${versionKey}" and ` +
            `"${capabilitiesKey}" in params._meta. ${envelope}`
    )
  checkVersion(headers.version, envelope.version)
  checkMethod(headers.method, request.method)
  checkName(headers.name, request)
  return { kind: 'modern', id, request: withoutEnvelope(request), envelope }
}

/** Only 2025-03-26 has batches. The legacy path reports anything else that is wrong with one. */
function batch(body: readonly unknown[], saysModern: boolean): ClassifiedBody {
  if (body.length === 0) throw new GatewayError('invalid_request', 'The array is empty; send one JSON-RPC message.')
  const modern =
    saysModern || body.some((item) => isObject(item) && isObject(item['params']) && claimsEnvelope(item['params']))
  if (modern)
    throw new GatewayError('invalid_request', `Revision ${latestModern} has no batches; send one message per request.`)
  return { kind: 'legacy' }
}

/**
 * "Protocol Version Header". The comparison comes first: a proxy that routes by the header must see the same version as
 * the gateway.
 */
function checkVersion(header: string | undefined, version: string): void {
  if (header === undefined)
    throw new GatewayError(
      'header_mismatch',
      `The header MCP-Protocol-Version is missing: it must repeat "${versionKey}" of params._meta.`
    )
  if (header !== version)
    throw new GatewayError(
      'header_mismatch',
      `The header MCP-Protocol-Version does not say the same as "${versionKey}" of params._meta.`
    )
  if (!isModernRevision(version)) {
    throw new GatewayError(
      'unsupported_revision',
      'This endpoint does not support the revision that the request names. Use one of data.supported; earlier ' +
        'revisions begin with initialize.',
      {
        data: { supported: modernRevisions, requested: version }
      }
    )
  }
}

function checkMethod(header: string | undefined, method: string): void {
  if (header === undefined)
    throw new GatewayError('header_mismatch', 'The header Mcp-Method is missing: it must repeat "method" of the body.')
  if (header !== method)
    throw new GatewayError(
      'header_mismatch',
      'The header Mcp-Method does not say the same as "method" of the body; upper and lower case differ.'
    )
}

function checkName(
  header: string | undefined,
  { method, params = {} }: { readonly method: string; readonly params?: JsonObject }
): void {
  const member = modernClientRequests.get(method)?.nameParam
  if (member === undefined) return
  const value = params[member]
  if (header === undefined) {
    // The body lacks the value that the header would repeat: the method reports that, in clearer words.
    if (typeof value !== 'string') return
    throw new GatewayError(
      'header_mismatch',
      `The header Mcp-Name is missing: it must repeat "params.${member}" of the body.`
    )
  }
  const name = decodeHeader(header)
  if (name === undefined)
    throw new GatewayError(
      'header_mismatch',
      'The header Mcp-Name is damaged: it must be visible ASCII, or the base64 of UTF-8 between "=?base64?" and "?=".'
    )
  if (name !== value)
    throw new GatewayError(
      'header_mismatch',
      `The header Mcp-Name does not say the same as "params.${member}" of the body.`
    )
}

const shown = (version: string | undefined): string => (version ?? '').slice(0, 20)
