// Where the requests of one connection go, and what each of them carries besides what its session or revision adds: the
// definition's own headers, none of them ours.

import { versionKey } from '../../protocol/envelope.ts'
import {
  atLeast,
  type Implementation,
  metaOf,
  type Request,
  type Revision,
  type UpstreamName
} from '../../protocol/messages.ts'
import { modernClientRequests } from '../../protocol/methods.ts'
import { encodeHeader } from '../../protocol/translate/param-headers.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { ParamHeaderCache } from '../modern/param-header-cache.ts'
import type { Egress, SocketPool } from './egress.ts'

export interface HttpTarget extends SocketPool {
  readonly name: UpstreamName
  /** For messages, in place of the URL: a path or a query may hold a credential. */
  readonly origin: string
  /** With the query. */
  readonly path: string
  readonly maxBytes: number
  /** Names and values in turn. */
  readonly headers: readonly string[]
}

/** Ours to set; what a definition says for them is left out. */
const reserved = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'transfer-encoding'
])

/** The caller has to release it. */
export function openTarget(definition: HttpDefinition, egress: Egress, clientInfo: Implementation): HttpTarget {
  const { origin, pathname, search } = new URL(definition.url)
  return {
    name: definition.name,
    origin,
    path: pathname + search,
    maxBytes: definition.maxMessageBytes,
    headers: baseHeaders(definition, clientInfo),
    ...egress.open(definition)
  }
}

function baseHeaders(definition: HttpDefinition, { name, version }: Implementation): string[] {
  const own = Object.entries(definition.headers).filter(
    ([name]) => !reserved.has(name.toLowerCase()) && !/^mcp-param-/i.test(name)
  )
  const named = own.some(([name]) => name.toLowerCase() === 'user-agent')
  return [
    'accept-encoding',
    'identity',
    ...(named ? [] : ['user-agent', `${name}/${version}`.replace(/[^\x21-\x7e]+/g, '-')]),
    ...own.flat()
  ]
}

/** Of a POST whose answer is a JSON-RPC message; names and values in turn. */
export const postHeaders = [
  'accept',
  'application/json, text/event-stream',
  'content-type',
  'application/json'
] as const

/** 2025-06-18 basic/transports "Protocol Version Header": from that revision on, once it is negotiated. */
export function revisionHeader(revision: Revision | undefined): string[] {
  return revision !== undefined && atLeast(revision, '2025-06-18') ? ['mcp-protocol-version', revision] : []
}

/**
 * Of one request of 2026-07-28, made from the very body that is sent (basic/transports/streamable-http "Request
 * Metadata"): names and values in turn, `base` last.
 * @param request in its envelope
 */
export function modernHeaders(
  { method, params }: Request,
  base: readonly string[],
  schemas: ParamHeaderCache | undefined
): string[] {
  const headers: string[] = [
    ...postHeaders,
    'mcp-protocol-version',
    String(metaOf(params)[versionKey]),
    'mcp-method',
    encodeHeader(method)
  ]
  const member = modernClientRequests.get(method)?.nameParam
  const name = member === undefined ? undefined : params?.[member]
  if (typeof name === 'string') headers.push('mcp-name', encodeHeader(name))
  if (method === 'tools/call' && schemas !== undefined)
    headers.push(...schemas.headers(params?.['name'], params?.['arguments']))
  headers.push(...base)
  return headers
}
