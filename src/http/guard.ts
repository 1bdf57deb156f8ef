// Host and Origin, checked on every request before anything else: a page that got a name to resolve to us (DNS rebinding), or that simply
// posts to us, is refused here. Exact comparison, no patterns.

import { GatewayError } from '../protocol/errors.ts'

export interface Names {
  /** Origin of the public URL, such as https://mcp.example.com. */
  readonly publicUrl: string
  /** Further names, each with or without a port. */
  readonly hosts: readonly string[]
  /** The port, when bound to loopback; there the loopback names are ours too. */
  readonly loopbackPort: number | undefined
}

// Node joins some duplicates with a comma and drops others; either way two parties could read two things (RFC 9110 section 5.3).
const single = new Set(['host', 'origin', 'authorization', 'content-type', 'content-length', 'content-encoding', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'])

/** @throws GatewayError invalid_request when a header that must be single comes twice */
export function refuseDuplicates (rawHeaders: readonly string[]): void {
  const seen = new Set<string>()
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? ''
    if (!single.has(name)) continue
    if (seen.has(name)) throw new GatewayError('invalid_request', `The header ${name} is there twice; send it once.`)
    seen.add(name)
  }
}

/** Compiles the names into one check. An entry of `hosts` without a port allows the name with any port. */
export function hostCheck ({ publicUrl, hosts, loopbackPort }: Names): (host: string | undefined) => void {
  const own = new URL(publicUrl)
  const exact = new Set([own.host, `${own.hostname}:${own.port || (own.protocol === 'https:' ? '443' : '80')}`])
  const anyPort = new Set<string>()
  for (const entry of hosts) (/:\d+$/.test(entry) ? exact : anyPort).add(entry.toLowerCase())
  if (loopbackPort !== undefined) {
    for (const name of ['localhost', '127.0.0.1', '[::1]']) exact.add(`${name}:${loopbackPort}`)
  }
  return (host) => {
    const given = host?.toLowerCase() ?? ''
    if (exact.has(given) || anyPort.has(given.replace(/:\d+$/, ''))) return
    throw new GatewayError('forbidden_host', 'The Host header names none of the hosts of this gateway. Use its public URL, or list the name under "hosts" in the configuration.')
  }
}

/** @returns host (none in the usual form) and path of a request target, which may be absolute (RFC 9112 section 3.2.2) */
export function readTarget (url: string): { readonly host: string | undefined, readonly path: string } {
  const absolute = url.startsWith('/') ? null : /^https?:\/\/([^/?#]*)/i.exec(url)
  const target = absolute === null ? url : url.slice(absolute[0].length)
  const end = target.search(/[?#]/)
  return { host: absolute?.[1], path: end === -1 ? target : target.slice(0, end) }
}

/** No Origin: not a browser. With one: exactly an allowed one. */
export function mayCall (origin: string | undefined, publicUrl: string, allowed: ReadonlySet<string> | undefined): boolean {
  return origin === undefined || origin === publicUrl || allowed?.has(origin) === true
}

/**
 * 2025-11-25 basic/transports "Security Warning": 403 for an origin that is not allowed.
 * @throws GatewayError forbidden_origin
 */
export function checkOrigin (origin: string | undefined, publicUrl: string, allowed: ReadonlySet<string> | undefined): void {
  if (mayCall(origin, publicUrl, allowed)) return
  throw new GatewayError('forbidden_origin', 'Pages of this origin may not call this endpoint. List the origin under "origins" of the tenant in the configuration.')
}

/** CORS reply headers for an origin that passed the check. Credentials are bearer tokens in a header, never cookies. */
export function corsHeaders (origin: string | undefined): Record<string, string> {
  return origin === undefined
    ? {}
    : { 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': 'Mcp-Session-Id, WWW-Authenticate, Retry-After', Vary: 'Origin' }
}

const allowedHeaders = 'Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID'
/** More than any tool mirrors (protocol/param-headers.ts). */
const maxParamHeaders = 64
const paramHeader = /^mcp-param-[!#$%&'*+\-.^_`|~0-9a-z]{1,128}$/i

/**
 * CORS reply headers of a preflight. Which `Mcp-Param-*` there are is the tools' to say, and a wildcard does not cover Authorization: those
 * that the browser asks for are allowed by name.
 * @param wanted Access-Control-Request-Headers
 */
export function preflightHeaders (wanted: string | undefined): Record<string, string> {
  const params = (wanted ?? '').split(',').map((name) => name.trim()).filter((name) => paramHeader.test(name)).slice(0, maxParamHeaders)
  return {
    'Access-Control-Allow-Methods': 'GET, POST, DELETE',
    'Access-Control-Allow-Headers': [allowedHeaders, ...params].join(', '),
    'Access-Control-Max-Age': '600',
    // Next to Origin: caches on the way must not give one tool's answer for another's.
    Vary: 'Origin, Access-Control-Request-Headers'
  }
}
