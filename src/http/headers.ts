// What the headers of a request say of themselves: Host and Origin, checked before anything else, against pages that
// make a name of their own resolve to the gateway (DNS rebinding) or simply post to it; CORS; Content-Type and Accept.

import type { FastifyCorsOptions } from '@fastify/cors'
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError, isLegacyRevision, legacyRevisions, type Revision } from '../protocol/messages.ts'
import { requestIdHeader, type ClientReply, type ClientRequest, type ReplyHeaders } from './reply.ts'

export interface ServerAddress {
  /** The URL on which the gateway listens. */
  readonly url: string
  /** Origin of the public URL, such as https://mcp.example.com. */
  readonly publicUrl: string
  /** The port, when bound to loopback; the loopback names are hosts of ours there too. */
  readonly loopbackPort: number | undefined
}

// Node joins some duplicates with a comma and drops others, so two parties could read two things (RFC 9110 section
// 5.3). A bit for each.
const singleHeaders = new Map(
  [
    'host',
    'origin',
    'authorization',
    'dpop',
    'content-type',
    'content-length',
    'content-encoding',
    'mcp-session-id',
    'mcp-protocol-version',
    'mcp-method',
    'mcp-name',
    'last-event-id'
  ].map((name, at) => [name, 1 << at])
)

/** @throws GatewayError invalid_request when a header that must be single comes twice */
export function refuseDuplicateHeaders(rawHeaders: readonly string[]): void {
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    const bit = singleHeaders.get(name)
    if (bit === undefined) continue
    if ((seen & bit) !== 0)
      throw new GatewayError('invalid_request', `The header ${name} is there twice; send it once.`)
    seen |= bit
  }
}

/**
 * @param hosts of the configuration: one that names no port allows any
 * @returns the check of a Host, which throws GatewayError forbidden_host
 */
export function hostCheck({ publicUrl, loopbackPort }: ServerAddress, hosts: readonly string[]) {
  const own = new URL(publicUrl)
  const exact = new Set([own.host, `${own.hostname}:${own.port || (own.protocol === 'https:' ? '443' : '80')}`])
  const anyPort = new Set<string>()
  for (const entry of hosts) (/:\d+$/.test(entry) ? exact : anyPort).add(entry.toLowerCase())
  if (loopbackPort !== undefined) {
    for (const name of ['localhost', '127.0.0.1', '[::1]']) exact.add(`${name}:${loopbackPort}`)
  }
  return (host: string | undefined): void => {
    const given = host?.toLowerCase() ?? ''
    if (exact.has(given) || anyPort.has(given.replace(/:\d+$/, ''))) return
    throw new GatewayError(
      'forbidden_host',
      'The Host header names none of the hosts of this gateway. Use its public URL, or list the name under "hosts" ' +
        'in the configuration.'
    )
  }
}

/**
 * @returns host (undefined in the usual form) and path of a request target, which may be absolute (RFC 9112 section
 * 3.2.2)
 */
export function readTarget(url: string): { readonly host: string | undefined; readonly path: string } {
  const absolute = url.startsWith('/') ? null : /^https?:\/\/([^/?#]*)/i.exec(url)
  const target = absolute === null ? url : url.slice(absolute[0].length)
  const end = target.search(/[?#]/)
  return { host: absolute?.[1], path: end === -1 ? target : target.slice(0, end) }
}

/**
 * A request without Origin does not come from a browser's page. One with Origin must name exactly an allowed one.
 * @param allowed origins of the tenant, if the path names one
 */
export function isAllowedOrigin(
  origin: string | undefined,
  publicUrl: string,
  allowed: ReadonlySet<string> | undefined
): boolean {
  return origin === undefined || origin === publicUrl || allowed?.has(origin) === true
}

/**
 * 2025-11-25 basic/transports "Security Warning": 403 for an origin that is not allowed.
 * @throws GatewayError invalid_request, forbidden_host, forbidden_origin
 */
export function checkNames(
  { httpVersionMajor, rawHeaders, headers, url = '' }: ClientRequest,
  checkHost: ReturnType<typeof hostCheck>,
  originAllowed: boolean
): void {
  if (httpVersionMajor !== 1) throw new GatewayError('invalid_request', 'The request line must end in HTTP/1.1.')
  refuseDuplicateHeaders(rawHeaders)
  checkHost(headers.host)
  const { host } = readTarget(url)
  if (host !== undefined) checkHost(host)
  if (originAllowed) return
  throw new GatewayError(
    'forbidden_origin',
    'Pages of this origin may not call this endpoint. List the origin under "origins" of the tenant in the ' +
      'configuration.'
  )
}

const namedHeaders =
  'Authorization, DPoP, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID'
const readableHeaders = 'Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After, RateLimit, RateLimit-Policy'
/** More than any tool mirrors (protocol/translate/param-headers.ts). */
const maxParamHeaders = 64
/** Of a list in a header, which strangers send, too: what comes after it is not read. */
const maxListChars = 4_096
const paramHeader = /^mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]{1,128}$/i

const noCors: FastifyCorsOptions = { origin: false }

/**
 * The headers that the plugin prepares, which every reply of ours takes over: for exactly the allowed origin, never
 * `*`, and without cookies, because credentials are tokens in a header.
 */
export function corsOptionsOf(headers: IncomingHttpHeaders, originAllowed: boolean): FastifyCorsOptions {
  const { origin, 'access-control-request-headers': wanted = '' } = headers
  if (origin === undefined || !originAllowed) return noCors
  // Tools decide which `Mcp-Param-*` there are, and a wildcard would not cover Authorization: those that the browser
  // asks for are allowed by name.
  const params = wanted
    .slice(0, maxListChars)
    .split(',')
    .map((name) => name.trim())
    .filter((name) => paramHeader.test(name))
  return {
    origin,
    methods: 'GET, POST, DELETE',
    allowedHeaders: [namedHeaders, ...params.slice(0, maxParamHeaders)].join(', '),
    exposedHeaders: `${readableHeaders}, ${requestIdHeader}`,
    maxAge: 600,
    // The handler of the route answers OPTIONS, with the methods that it has.
    preflightContinue: true,
    strictPreflight: false
  }
}

/** The prepared headers of a reply. */
export interface PreparedHeaders {
  hasHeader(name: string): boolean
  getHeaders(): unknown
}

const noHeaders: ReplyHeaders = {}

/** The CORS headers that a reply has to carry. Without an allowed origin there are none, not even `Vary`. */
export function corsHeadersOf(reply: PreparedHeaders): ReplyHeaders {
  return reply.hasHeader('access-control-allow-origin') ? (reply.getHeaders() as ReplyHeaders) : noHeaders
}

export function answerPreflight(
  reply: PreparedHeaders & { readonly raw: Pick<ClientReply, 'writeHead'>; hijack(): unknown },
  allow: string
): void {
  reply.hijack()
  const cors = corsHeadersOf(reply)
  // Caches on the way must not give one tool's answer for another's.
  const vary = 'access-control-allow-origin' in cors ? { vary: 'Origin, Access-Control-Request-Headers' } : {}
  reply.raw.writeHead(204, { Allow: allow, ...cors, ...vary }).end()
}

// Only JSON makes browsers ask first (CORS preflight), and only one charset can mean only one thing.
const jsonType = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

export const notJson = (): GatewayError =>
  new GatewayError('unsupported_media_type', 'The body must be sent with Content-Type: application/json (UTF-8).')

/** @throws GatewayError unsupported_media_type */
export function checkContent(headers: IncomingHttpHeaders): void {
  if (headers['content-encoding'] !== undefined) {
    throw new GatewayError(
      'unsupported_media_type',
      'Compressed bodies are not accepted; send the body without Content-Encoding.'
    )
  }
  if (!jsonType.test(headers['content-type'] ?? '')) throw notJson()
}

/** Formats that the caller takes. */
export interface Accepts {
  readonly json: boolean
  readonly stream: boolean
}

/** The `Accept` that the SDKs send, so that nearly every request is spared the reading. */
const usual = 'application/json, text/event-stream'

// A missing Accept stands for both formats, and so does `*/*`: some clients send none, and curl sends `*/*`.
export function readAccept({ accept }: IncomingHttpHeaders): Accepts {
  if (accept === undefined || accept === usual || accept.slice(0, maxListChars).trim() === '')
    return { json: true, stream: true }
  let json = false
  let stream = false
  for (const part of accept.slice(0, maxListChars).split(',')) {
    const [type = '', ...params] = part.split(';').map((text) => text.trim().toLowerCase())
    if (params.some((param) => /^q=0(\.0*)?$/.test(param))) continue
    if (type === '*/*') json = stream = true
    else if (type === 'application/json' || type === 'application/*') json = true
    else if (type === 'text/event-stream' || type === 'text/*') stream = true
  }
  return { json, stream }
}

/** @throws GatewayError not_acceptable where the caller takes neither format */
export function formatsOf(headers: IncomingHttpHeaders): Accepts {
  const accepts = readAccept(headers)
  if (accepts.json || accepts.stream) return accepts
  throw new GatewayError('not_acceptable', 'The answer is application/json or text/event-stream; allow both in Accept.')
}

/** @throws GatewayError not_acceptable where the caller of a GET takes no stream */
export function checkTakesStream(headers: IncomingHttpHeaders): void {
  if (readAccept(headers).stream) return
  throw new GatewayError('not_acceptable', 'GET opens the stream of a session; it needs Accept: text/event-stream.')
}

/**
 * 2025-11-25 basic/transports "Protocol Version Header": invalid or unsupported is 400.
 * @throws GatewayError unsupported_version
 */
export function checkRevision(headers: IncomingHttpHeaders): Revision | undefined {
  const header = headers['mcp-protocol-version']
  if (header === undefined || isLegacyRevision(header)) return header
  throw new GatewayError(
    'unsupported_version',
    'The MCP-Protocol-Version header names a revision that this endpoint does not speak.',
    { data: { supported: legacyRevisions, requested: String(header).slice(0, 40) } }
  )
}
