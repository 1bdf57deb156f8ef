// The ladder of 2026-07-28: which era a POSTed body belongs to, and whether its envelope and its headers say the same. Every request takes
// the same rungs in the same order, and the first that it misses is the answer. Nothing is looked up here, and nobody is asked.

import { capabilitiesKey, claimsEnvelope, readEnvelope, versionKey, withoutEnvelope } from './envelope.ts'
import type { Envelope } from './envelope.ts'
import { GatewayError } from './errors.ts'
import { classifyMessage, isObject } from './messages.ts'
import type { JsonObject, Request, RequestId } from './messages.ts'
import { decodeHeader } from './param-headers.ts'
import { isModernRevision, latestModern, modernRevisions } from './revisions.ts'

/** Headers that repeat what the body says; undefined where they are missing. */
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

export type Rung =
  | { readonly kind: 'legacy' }
  | ModernRequest
  /** The core protocol has none that a client sends over HTTP: taken and ignored. */
  | { readonly kind: 'notification' }

/** Method -> the member of `params` that `Mcp-Name` repeats ("Standard Request Headers"; the tasks extension, SEP-2663). */
export const nameSource: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId'
}

/** Does the value of MCP-Protocol-Version name a revision without handshake, whether we speak it or not? */
export function namesModern (version: string | undefined): boolean {
  return version !== undefined && /^\d{4}-\d{2}-\d{2}$/.test(version) && version >= latestModern
}

/**
 * Takes one POSTed body up the ladder.
 * @param body any decoded JSON value
 * @throws GatewayError invalid_request, invalid_envelope, header_mismatch, unsupported_revision; all of them HTTP 400
 */
export function climb (headers: RoutingHeaders, body: unknown): Rung {
  const saysModern = namesModern(headers.version)
  if (Array.isArray(body)) return batch(body, saysModern)
  const params = isObject(body) && isObject(body['params']) ? body['params'] : undefined
  const claims = claimsEnvelope(params)
  if (!claims && !saysModern) return { kind: 'legacy' } // Whatever it is: the legacy path has its own words for what is no message.

  const message = classifyMessage(body)
  if (message.kind === 'invalid') throw new GatewayError('invalid_request', `Not a JSON-RPC message: ${message.reason}.`)
  if (message.kind === 'notification') return { kind: 'notification' }
  if (message.kind !== 'request') {
    throw new GatewayError('invalid_request', `Revision ${latestModern} has no requests of the server that a client could answer: send what it asks for in inputResponses of the same request.`)
  }
  const { id, request } = message
  const envelope = readEnvelope(params)
  if (request.method === 'initialize' && (typeof envelope === 'string' || !isModernRevision(envelope.version))) {
    // Never a session for somebody whose headers tell the proxies on the way that there is none.
    if (saysModern) throw new GatewayError('header_mismatch', `MCP-Protocol-Version names ${shown(headers.version)}, which has no initialize. Send server/discover, or leave the header out of initialize.`)
    return { kind: 'legacy' }
  }
  if (typeof envelope === 'string') throw new GatewayError('invalid_envelope', claims ? envelope : `MCP-Protocol-Version names ${shown(headers.version)}, where every request has "${versionKey}" and "${capabilitiesKey}" in params._meta. ${envelope}`)
  checkVersion(headers.version, envelope.version)
  checkMethod(headers.method, request.method)
  checkName(headers.name, request)
  return { kind: 'modern', id, request: withoutEnvelope(request), envelope }
}

/** Batches are of 2025-03-26 alone. What else is wrong with one is for the legacy path to say. */
function batch (body: readonly unknown[], saysModern: boolean): Rung {
  if (body.length === 0) throw new GatewayError('invalid_request', 'The array is empty; send one JSON-RPC message.')
  const modern = saysModern || body.some((item) => isObject(item) && isObject(item['params']) && claimsEnvelope(item['params']))
  if (modern) throw new GatewayError('invalid_request', `Revision ${latestModern} has no batches; send one message per request.`)
  return { kind: 'legacy' }
}

/** "Protocol Version Header". The comparison comes first: whoever routes by the header must not be led elsewhere than the body. */
function checkVersion (header: string | undefined, version: string): void {
  if (header === undefined) throw new GatewayError('header_mismatch', `The header MCP-Protocol-Version is missing: it must repeat "${versionKey}" of params._meta.`)
  if (header !== version) throw new GatewayError('header_mismatch', `The header MCP-Protocol-Version does not say the same as "${versionKey}" of params._meta.`)
  if (!isModernRevision(version)) {
    throw new GatewayError('unsupported_revision', 'This endpoint does not speak the revision that the request names. Use one of data.supported; older ones begin with initialize.', {
      data: { supported: modernRevisions, requested: version }
    })
  }
}

function checkMethod (header: string | undefined, method: string): void {
  if (header === undefined) throw new GatewayError('header_mismatch', 'The header Mcp-Method is missing: it must repeat "method" of the body.')
  if (header !== method) throw new GatewayError('header_mismatch', 'The header Mcp-Method does not say the same as "method" of the body; upper and lower case differ.')
}

function checkName (header: string | undefined, { method, params = {} }: { readonly method: string, readonly params?: JsonObject }): void {
  const member = Object.hasOwn(nameSource, method) ? nameSource[method] : undefined
  if (member === undefined) return
  const value = params[member]
  if (header === undefined) {
    // A body without it has a fault of its own, which says more than a header that had nothing to repeat.
    if (typeof value !== 'string') return
    throw new GatewayError('header_mismatch', `The header Mcp-Name is missing: it must repeat "params.${member}" of the body.`)
  }
  const name = decodeHeader(header)
  if (name === undefined) throw new GatewayError('header_mismatch', 'The header Mcp-Name is damaged: it must be visible ASCII, or the base64 of UTF-8 between "=?base64?" and "?=".')
  if (name !== value) throw new GatewayError('header_mismatch', `The header Mcp-Name does not say the same as "params.${member}" of the body.`)
}

const shown = (version: string | undefined): string => (version ?? '').slice(0, 20)
