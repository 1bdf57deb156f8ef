// The formats that schema.ts names: what a single string must look like, beyond its JSON type. No message repeats the
// string.

import { isIP, isIPv6 } from 'node:net'

import { isLoopback } from '../loopback.ts'
import type { Fault } from '../problems.ts'

type Format = (text: string) => Fault | undefined

const fault = (message: string, suggestion?: string): Fault => ({ message, suggestion })

/**
 * @returns the fault with this text, or undefined where it is as it should be; a format that is not listed accepts
 * everything
 */
export function formatFault(format: string, text: string): Fault | undefined {
  return Object.hasOwn(formats, format) ? formats[format]?.(text) : undefined
}

const hostNamePattern = /^(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?$/

function isHost(text: string): boolean {
  return isIP(text) !== 0 || (text.length <= 253 && hostNamePattern.test(text))
}

function isHostHeader(text: string): boolean {
  const match = /^(\[[^\]]*\]|[^:[\]]*)(?::([0-9]{1,5}))?$/.exec(text)
  const host = match?.[1] ?? ''
  if (match?.[2] !== undefined && Number(match[2]) > 65_535) return false
  return host.startsWith('[') ? isIPv6(host.slice(1, -1)) : isHost(host)
}

/**
 * WHATWG parsing forgives white space, control characters and backslashes, which other parsers read otherwise: refused
 * before it.
 */
function parseUrl(text: string): URL | undefined {
  return /^[\x21-\x5b\x5d-\x7e]+$/.test(text) && /^[a-z][a-z0-9+.-]*:\/\//i.test(text) && URL.canParse(text)
    ? new URL(text)
    : undefined
}

function urlFault(text: string, example: string): Fault | URL {
  const url = parseUrl(text)
  if (url === undefined) return fault('is not an absolute URL', `Write it like ${example}.`)
  if (url.protocol !== 'https:' && url.protocol !== 'http:')
    return fault('must begin with https:// or http://', `Write it like ${example}.`)
  if (url.username !== '' || url.password !== '')
    return fault(
      'carries a user name or password',
      'Take it out of the URL; credentials of an upstream go under headers, as Authorization.'
    )
  if (text.includes('#')) return fault('carries a fragment', 'Remove the # and what follows it.')
  return url
}

function secureUrlFault(text: string, example: string): Fault | URL {
  const url = urlFault(text, example)
  if (!(url instanceof URL)) return url
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    return fault('is plain http', 'Use https://; http:// is accepted for loopback only.')
  return url
}

const issuer: Format = (text) => {
  const url = secureUrlFault(text, 'https://idp.example.com')
  if (!(url instanceof URL)) return url
  // RFC 8414 section 2: an issuer has no query and no fragment.
  return text.includes('?')
    ? fault('carries a query', 'An issuer has none (RFC 8414): remove the ? and what follows it.')
    : undefined
}

const origin: Format = (text) => {
  if (text === '*')
    return fault(
      'must not be *: any web page could then call with what its visitor may do',
      'List the origins one by one, such as https://claude.ai.'
    )
  if (text === 'null')
    return fault(
      'must not be null: any sandboxed page has that origin',
      'List the origins one by one, such as https://claude.ai.'
    )
  const url = urlFault(text, 'https://claude.ai')
  if (!(url instanceof URL)) return url
  return isBareOrigin(text, url)
    ? undefined
    : fault('must be an origin: scheme, host and port only', 'Remove the path, such as in https://claude.ai.')
}

function isBareOrigin(text: string, url: URL): boolean {
  return url.pathname === '/' && !text.includes('?') && !text.endsWith('/')
}

const publicUrl: Format = (text) => {
  const url = secureUrlFault(text, 'https://mcp.example.com')
  if (!(url instanceof URL)) return url
  return url.pathname === '/' && !text.includes('?')
    ? undefined
    : fault(
        'must be an origin: scheme, host and port only',
        'Remove the path; the endpoints are at /t/{tenant}/mcp under it.'
      )
}

const store: Format = (text) => {
  if (text === 'memory:' || /^file:./.test(text))
    return text.includes('\0') ? fault('contains a NUL character') : undefined
  if (/^rediss?:\/\//.test(text) && URL.canParse(text)) {
    const url = new URL(text)
    if (url.hostname === '') return fault('names no host', 'Write it like redis://redis.example.com:6379/0.')
    return /^\/?[0-9]*$/.test(url.pathname)
      ? undefined
      : fault('must end in the number of a database', 'Write it like redis://redis.example.com:6379/0.')
  }
  return fault('is no store', 'Use file:PATH, memory:, redis://HOST:PORT/DB or rediss://HOST:PORT/DB.')
}

// RFC 6750 section 2.1: what a bearer may consist of. Anything else could never be sent.
const bearer = /^[A-Za-z0-9\-._~+/]+=*$/
const wellKnown = [
  /change-?_?me/i,
  /your-?_?(api-?_?)?(key|token|secret)/i,
  /replace-?_?(me|with|this)/i,
  /placeholder/i,
  /example-?_?key/i,
  /insert-?_?(your|key)/i,
  /^(secret|password|default|gatehouse|admin|test)+[0-9]*$/i,
  /^0?123456789/i,
  /^abcdef/i
]

const apiKey: Format = (text) => {
  const make = 'Make one with: openssl rand -hex 32.'
  if (text.length < 16) return fault('is shorter than 16 characters', make)
  if (!bearer.test(text))
    return fault(
      'contains characters that cannot be sent as a bearer (RFC 6750)',
      'Use letters, digits and - . _ ~ + / only.'
    )
  if (wellKnown.some((pattern) => pattern.test(text)) || new Set(text).size < 6)
    return fault('is a placeholder or easily guessed', make)
  return undefined
}

const genericAudiences = new Set([
  'mcp',
  'api',
  'account',
  'default',
  'gateway',
  'gatehouse',
  'server',
  'resource',
  'test',
  '*'
])

const audience: Format = (text) =>
  text.length < 3 || genericAudiences.has(text.toLowerCase())
    ? fault(
        'is too general: tokens made for other services could carry it',
        'Use a name that only this deployment has, such as its URL.'
      )
    : undefined

// Of the connection or of MCP: we write them ourselves, and a second one smuggles a request or forges a session.
const ownHeaders = new Set([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'accept',
  'accept-encoding',
  'last-event-id',
  'mcp-session-id',
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name'
])

const headerName: Format = (text) => {
  // RFC 9110 section 5.6.2
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/.test(text))
    return fault('is not a possible header name', 'Use letters, digits and "-".')
  const lower = text.toLowerCase()
  return ownHeaders.has(lower) || lower.startsWith('proxy-') || lower.startsWith('mcp-param-')
    ? fault('is a header that the gateway writes itself', 'Remove it.')
    : undefined
}

const noNul: Format = (text) => (text.includes('\0') ? fault('contains a NUL character', 'Remove it.') : undefined)

const formats: Readonly<Record<string, Format>> = {
  'listen-host': (text) =>
    isHost(text)
      ? undefined
      : fault(
          'is not an address or host name',
          'Use an address such as 127.0.0.1, ::1 or 0.0.0.0, without scheme and port.'
        ),
  'host-header': (text) =>
    isHostHeader(text)
      ? undefined
      : fault(
          'is not a host name',
          'Write a name or address, with a port if there is one, such as gatehouse.internal:8080; no scheme, no path.'
        ),
  'public-url': publicUrl,
  store,
  origin,
  issuer,
  'jwks-url': (text) => {
    const url = secureUrlFault(text, 'https://idp.example.com/jwks')
    return url instanceof URL ? undefined : url
  },
  audience,
  'api-key': apiKey,
  command: (text) =>
    text.trim() === '' ? fault('is empty', 'Name a program or a folder, or remove the key.') : noNul(text),
  'no-nul': noNul,
  'upstream-url': (text) => {
    const url = urlFault(text, 'https://tickets.example.com/mcp')
    return url instanceof URL ? undefined : url
  },
  'header-name': headerName,
  'header-value': (text) =>
    /^[\t\x20-\x7e\x80-\xff]*$/.test(text)
      ? undefined
      : fault(
          'contains a line break or a character that no header may carry',
          'Remove it; a secret read from a file may have a line too many.'
        )
}
