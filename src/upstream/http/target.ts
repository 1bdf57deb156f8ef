// The address and the headers of a connection's requests, as the text that is sent. The parts that all requests of a
// definition or of a session have in common are made and checked once.

import { versionKey } from '../../protocol/envelope.ts'
import {
  GatewayError,
  type Implementation,
  type Request,
  type Revision,
  type UpstreamName,
  atLeast,
  metaOf
} from '../../protocol/messages.ts'
import { modernClientRequests } from '../../protocol/methods.ts'
import { parentIn, traceparentOf } from '../../observe/traces/trace-context.ts'
import { encodeHeader } from '../../protocol/translate/param-headers.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { MemoryShare } from '../../limits/memory.ts'
import type { ParamHeaderCache } from '../modern/param-header-cache.ts'
import type { UpstreamCredential } from '../rpc/credential.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { Egress, SocketClaim, SocketLease } from './socket-pool.ts'

export interface HttpTarget extends SocketLease {
  readonly name: UpstreamName
  /** The origin, for error messages and logs: a path or a query may hold a credential. */
  readonly origin: string
  /** The path with the query. */
  readonly path: string
  readonly maxBytes: number
  readonly memory: MemoryShare
  /** The headers of every request, as they are sent. */
  readonly headers: string
  /** Its header lines are sent after `headers`. */
  readonly credential: UpstreamCredential | undefined
}

export interface HttpRequest extends SocketClaim {
  readonly method: 'POST' | 'GET' | 'DELETE'
  /** Default: the path of the target. */
  readonly path?: string
  /** The headers as they are sent: a line for each. */
  readonly headers: string
  /** The id from which a stream is resumed: text of the server. */
  readonly lastEventId?: string | undefined
  readonly body: JsonText | null
  /** Only the status of an answer is of interest, whatever its type. */
  readonly statusOnly?: boolean
}

/** The parts of a connection that its requests to a server need. */
export interface TargetContext extends Pick<LinkContext, 'clock' | 'log' | 'memory' | 'credential'> {
  readonly handshake: Pick<LinkContext['handshake'], 'clientInfo' | 'quotaKey'>
}

/** The caller has to release it. */
export function openTarget(definition: HttpDefinition, egress: Egress, link: TargetContext): HttpTarget {
  const { origin, pathname, search } = new URL(definition.url)
  return {
    name: definition.name,
    origin,
    path: pathname + search,
    maxBytes: definition.maxMessageBytes,
    memory: link.memory,
    headers: baseHeaders(definition, link.handshake.clientInfo),
    credential: link.credential,
    ...egress.open(definition, link)
  }
}

/**
 * @param pairs names and values in turn
 * @returns a line for each
 * @throws TypeError for what would be another header, or another request (RFC 9110 section 5.5)
 */
export function headerText(pairs: readonly string[]): string {
  let text = ''
  for (let at = 0; at + 1 < pairs.length; at += 2) {
    const [name = '', value = ''] = [pairs[at], pairs[at + 1]]
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name) || /[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw new TypeError(`the header ${JSON.stringify(name.slice(0, 256))} has a name or a value that cannot be sent`)
    text += `${name}: ${value}\r\n`
  }
  return text
}

/** Returns the header in UTF-8 (WHATWG HTML 9.2.4), of which each byte is a character here. @throws TypeError */
export const eventIdHeader = (id: string): string => headerText(['last-event-id', Buffer.from(id).toString('latin1')])

/** Headers that only the gateway sets: those of a definition with these names are left out. */
const reserved = new Set([
  'accept',
  'accept-encoding',
  'connection',
  'content-length',
  'content-type',
  'host',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'transfer-encoding'
])

/** Returns the headers of every request of a definition. */
function baseHeaders({ url, headers }: HttpDefinition, { name, version }: Implementation): string {
  const own = Object.entries(headers).filter(
    ([name]) => !reserved.has(name.toLowerCase()) && !/^mcp-param-/i.test(name)
  )
  const named = own.some(([name]) => name.toLowerCase() === 'user-agent')
  return headerText([
    'host',
    new URL(url).host,
    'connection',
    'keep-alive',
    'accept-encoding',
    'identity',
    ...(named ? [] : ['user-agent', `${name}/${version}`.replace(/[^\x21-\x7e]+/g, '-')]),
    ...own.flat()
  ])
}

/** The headers of a POST whose answer is a JSON-RPC message. */
export const postHeaders = headerText([
  'accept',
  'application/json, text/event-stream',
  'content-type',
  'application/json'
])

export const streamHeaders = headerText(['accept', 'text/event-stream'])

/** 2025-06-18 basic/transports "Protocol Version Header": from that revision on, once it is negotiated. */
export function revisionHeader(revision: Revision | undefined): string {
  return revision !== undefined && atLeast(revision, '2025-06-18') ? headerText(['mcp-protocol-version', revision]) : ''
}

/**
 * Of one request of 2026-07-28, made from the very body that is sent (basic/transports/streamable-http "Request
 * Metadata"), `base` last.
 * @param request in its envelope
 * @throws GatewayError invalid_params where they would be too long
 */
export function modernHeaders(
  { method, params }: Request,
  base: string,
  schemas: ParamHeaderCache | undefined
): string {
  const member = modernClientRequests.get(method)?.nameParam
  const name = member === undefined ? undefined : params?.[member]
  const made = typeof name === 'string' ? ['mcp-name', encodeHeader(name)] : []
  if (method === 'tools/call' && schemas !== undefined)
    made.push(...schemas.headers(params?.['name'], params?.['arguments']))
  const bytes = made.reduce((sum, { length }) => sum + length, 0)
  if (bytes > maxMadeHeaders)
    throw new GatewayError(
      'invalid_params',
      `What the headers of this request repeat of its parameters takes ${bytes} bytes, more than ${maxMadeHeaders}; ` +
        'the request was not sent. Send shorter values where the tool has "x-mcp-header", or a shorter name or URI.'
    )
  const version = String(metaOf(params)[versionKey])
  made.push(...traceHeadersIn(params))
  return postHeaders + headerText(['mcp-protocol-version', version, 'mcp-method', encodeHeader(method), ...made]) + base
}

/**
 * The most headers that the gateway makes, in bytes. Servers refuse more than 16 KiB (Node's own limit) or less, and
 * seldom say why.
 */
const maxMadeHeaders = 8_192

/**
 * Trace context of a message (SEP-414) once more, as headers: proxies and servers that look at no body take it from
 * there. @returns names and values, one after the other
 */
function traceHeadersIn(params: Request['params']): string[] {
  const meta = metaOf(params)
  const parent = parentIn(meta)
  if (parent === undefined) return []
  const { tracestate } = parent
  return ['traceparent', traceparentOf(parent), ...(tracestate === undefined ? [] : ['tracestate', tracestate])]
}

/** Returns the trace headers of a legacy request as lines, each with its line end. */
export const traceHeaderText = ({ params }: Request): string => headerText(traceHeadersIn(params))
