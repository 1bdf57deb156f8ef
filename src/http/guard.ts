// Host and Origin, checked on every request before anything else, against pages that make a name of their own resolve
// to the gateway (DNS rebinding) or simply post to it. Exact comparison, no patterns.

import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../protocol/messages.ts'
import type { ServerAddress } from './endpoints.ts'

// Node joins some duplicates with a comma and drops others, so two parties could read two things (RFC 9110 section
// 5.3). A bit for each.
const singleHeaders = new Map(
  [
    'host',
    'origin',
    'authorization',
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

/** @throws GatewayError forbidden_host */
export type HostCheck = (host: string | undefined) => void

/**
 * Compiles names into one check. An entry of `hosts`, which come from the configuration, allows any port where it names
 * none.
 */
export function hostCheck({ publicUrl, loopbackPort }: ServerAddress, hosts: readonly string[]): HostCheck {
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

/** A request without Origin does not come from a browser's page. One with Origin must name exactly an allowed one. */
export function isAllowedOrigin(
  origin: string | undefined,
  publicUrl: string,
  allowed: ReadonlySet<string> | undefined
): boolean {
  return origin === undefined || origin === publicUrl || allowed?.has(origin) === true
}

/**
 * 2025-11-25 basic/transports "Security Warning": 403 for an origin that is not allowed.
 * @param allowed origins of the tenant, if the path names one
 * @throws GatewayError invalid_request, forbidden_host, forbidden_origin
 */
export function checkNames(
  { httpVersionMajor, rawHeaders, headers, url = '' }: IncomingMessage,
  checkHost: HostCheck,
  publicUrl: string,
  allowed: ReadonlySet<string> | undefined
): void {
  if (httpVersionMajor !== 1) throw new GatewayError('invalid_request', 'The request line must end in HTTP/1.1.')
  refuseDuplicateHeaders(rawHeaders)
  checkHost(headers.host)
  const { host } = readTarget(url)
  if (host !== undefined) checkHost(host)
  if (isAllowedOrigin(headers.origin, publicUrl, allowed)) return
  throw new GatewayError(
    'forbidden_origin',
    'Pages of this origin may not call this endpoint. List the origin under "origins" of the tenant in the ' +
      'configuration.'
  )
}
