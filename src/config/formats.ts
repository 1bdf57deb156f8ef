// The formats that the schema names: what a single string must look like, beyond its JSON type. No message repeats the
// string.

import { isIP, isIPv4, isIPv6 } from 'node:net'

import { parseJsonPath } from '../protocol/translate/omit.ts'
import { networksOf } from './policy/networks.ts'
import { isEd25519Key, isPrivateKey } from './auth/key-formats.ts'
import type { Fault } from './problems.ts'
import { redisAddress, redisAddressForms } from './redis-address.ts'

/** Whether a text passes, and what is wrong where it does not. */
type Rule = readonly [passes: (text: string) => boolean, ...fault: Fault]

/** @returns the fault of the first rule of the format that the text breaks */
export function formatFault(format: string, text: string): Fault | undefined {
  const [, ...fault] = formats[format]?.find(([passes]) => !passes(text)) ?? []
  return fault.length === 0 ? undefined : fault
}

/** @param allowed hosts in lower case; `*.` before one stands for any name below it */
export function isAllowedHost(url: URL, allowed: readonly string[]): boolean {
  const { hostname } = url
  return allowed.some((each) => (each.startsWith('*.') ? hostname.endsWith(each.slice(1)) : hostname === each))
}

/** 127.0.0.0/8, ::1 and `localhost`, as bound or as `URL.hostname` writes them. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  return bare === 'localhost' || bare === '::1' || (isIPv4(bare) && bare.startsWith('127.'))
}

const hostNamePattern = /^(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?$/

function isHost(text: string): boolean {
  return isIP(text) !== 0 || (text.length <= 253 && hostNamePattern.test(text))
}

function isHostHeader(text: string): boolean {
  const [, host = '', port = '0'] = /^(\[[^\]]*\]|[^:[\]]*)(?::([0-9]{1,5}))?$/.exec(text) ?? []
  return Number(port) <= 65_535 && (host.startsWith('[') ? isIPv6(host.slice(1, -1)) : isHost(host))
}

/**
 * WHATWG parsing forgives white space, control characters and backslashes, which other parsers read otherwise: refused
 * before it.
 */
const isUrl = (text: string): boolean =>
  /^[\x21-\x5b\x5d-\x7e]+$/.test(text) && /^[a-z][a-z0-9+.-]*:\/\//i.test(text) && URL.canParse(text)

const url = (example: string): readonly Rule[] => [
  [isUrl, 'is not an absolute URL', `Write it like ${example}.`],
  [(text) => /^https?:/i.test(text), 'must begin with https:// or http://', `Write it like ${example}.`],
  [
    (text) => new URL(text).username + new URL(text).password === '',
    'carries a user name or password',
    'Take it out of the URL; credentials of an upstream go under headers, as Authorization.'
  ],
  [(text) => !text.includes('#'), 'carries a fragment', 'Remove the # and what follows it.']
]

/**
 * Browsers take every name below `localhost` for this machine (RFC 6761 section 6.3), resolvers of networks not always:
 * good for providers that stand beside the gateway, and for nothing to which the gateway sends what it keeps.
 */
export const isLocal = (host: string): boolean => isLoopback(host) || host.endsWith('.localhost')

const secureUrl = (example: string, mayBePlain = isLoopback): readonly Rule[] => [
  ...url(example),
  [
    (text) => /^https:/i.test(text) || mayBePlain(new URL(text).hostname),
    'is plain http',
    'Use https://; http:// is accepted for loopback only.'
  ]
]

const isJsonPath = (text: string): boolean => parseJsonPath(text) !== undefined
const isCidr = (text: string): boolean => text.includes('/') && networksOf([text]) !== undefined

const bareOrigin = (remedy: string): Rule => [
  (text) => new URL(text).pathname === '/' && !text.includes('?'),
  'must be an origin: scheme, host and port only',
  remedy
]

const oneByOne = 'List the origins one by one, such as https://claude.ai.'
const withoutPath = 'Remove the path, such as in https://claude.ai.'
const likeRedis = 'Write it like redis://redis.example.com:6379/0.'
const makeKey = 'Make one with: openssl rand -hex 32.'

const isRedis = (text: string): boolean => /^rediss?(?:\+\w+)?:\/\//.test(text)
const isOneRedis = (text: string): boolean => /^rediss?:\/\//.test(text) && URL.canParse(text)

const wellKnownKeys = [
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

const genericAudience = /^(?:mcp|api|account|default|gateway|gatehouse|server|resource|test|\*)$/i

// Of the connection or of MCP: we write them ourselves, and a second one smuggles a request or forges a session.
const ownHeader = new RegExp(
  '^(?:host|content-(?:length|type|encoding)|transfer-encoding|connection|keep-alive|upgrade|te|trailer|expect|' +
    'accept|accept-encoding|last-event-id|mcp-session-id|mcp-protocol-version|mcp-method|mcp-name|' +
    'proxy-.*|mcp-param-.*)$',
  'i'
)

const noNul: Rule = [(text) => !text.includes('\0'), 'contains a NUL character', 'Remove it.']

const formats: Readonly<Record<string, readonly Rule[]>> = {
  'syslog-address': [
    [
      (text) =>
        /^(?:unix:\/[^\0]+|(?:tcp|tls):\/\/(?:[\w.-]+|\[[\da-f:.]+\]):\d{1,5})$/i.test(text) && URL.canParse(text),
      'is no address of a syslog server',
      'Write tcp://HOST:PORT, tls://HOST:PORT or unix:/PATH.'
    ]
  ],
  'json-path': [[isJsonPath, 'is no JSON path of names and [*]', 'Write it like $.items[*].price.']],
  'listen-host': [
    [
      isHost,
      'is not an address or host name',
      'Use an address such as 127.0.0.1, ::1 or 0.0.0.0, without scheme and port.'
    ]
  ],
  'host-header': [
    [
      isHostHeader,
      'is not a host name',
      'Write a name or address, with a port if there is one, such as gatehouse.internal:8080; no scheme, no path.'
    ]
  ],
  'public-url': [
    ...secureUrl('https://mcp.example.com'),
    bareOrigin('Remove the path; the endpoints are at /t/{tenant}/mcp under it.')
  ],
  store: [
    [
      (text) => text === 'memory:' || /^file:./.test(text) || isRedis(text),
      'is no store',
      'Use file:PATH, memory:, redis://HOST:PORT/DB or rediss://HOST:PORT/DB.'
    ],
    [(text) => !isOneRedis(text) || new URL(text).hostname !== '', 'names no host', likeRedis],
    [
      (text) => !isOneRedis(text) || /^\/?[0-9]*$/.test(new URL(text).pathname),
      'must end in the number of a database',
      likeRedis
    ],
    [
      (text) => !isRedis(text) || redisAddress(text) !== undefined,
      'is no address of Redis',
      `Write it like ${redisAddressForms}. In a password that stands in the address / is %2F and # is %23; one that ` +
        '${file:PATH} or ${NAME} inserts is taken as it is.'
    ],
    [(text) => isRedis(text) || !text.includes('\0'), 'contains a NUL character']
  ],
  origin: [
    [(text) => text !== '*', 'must not be *: any web page could then call with what its visitor may do', oneByOne],
    [(text) => text !== 'null', 'must not be null: any sandboxed page has that origin', oneByOne],
    ...url('https://claude.ai'),
    bareOrigin(withoutPath),
    [(text) => !text.endsWith('/'), 'must be an origin: scheme, host and port only', withoutPath]
  ],
  issuer: [
    ...secureUrl('https://idp.example.com', isLocal),
    // RFC 8414 section 2: an issuer has no query and no fragment.
    [
      (text) => !text.includes('?'),
      'carries a query',
      'An issuer has none (RFC 8414): remove the ? and what follows it.'
    ]
  ],
  'ed25519-key': [
    [
      isEd25519Key,
      'is no private Ed25519 key in PEM',
      'Make one with: openssl genpkey -algorithm ed25519, and name its file as ${file:PATH}.'
    ]
  ],
  'private-key': [
    [isPrivateKey, 'is no private key in PEM', 'Name its file as ${file:PATH}; PKCS #8, without a passphrase.']
  ],
  'vault-key': [
    [
      (text) => Buffer.from(text, 'base64').length === 32,
      'is not 32 bytes in base64',
      'Make one with: openssl rand -base64 32.'
    ]
  ],
  cidr: [[isCidr, 'is no range of addresses', 'Write it like 10.1.0.0/16 or fd00::/8.']],
  'date-or-time': [
    [
      (text) =>
        /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d))?$/.test(text) && !Number.isNaN(Date.parse(text)),
      'is no time',
      'Write a day, such as 2027-01-31, or a time with its zone, such as 2027-01-31T09:00:00Z.'
    ]
  ],
  'jwks-url': secureUrl('https://idp.example.com/jwks', isLocal),
  'kms-url': secureUrl('https://kms.eu-central-1.amazonaws.com'),
  audience: [
    [
      (text) => text.length >= 3 && !genericAudience.test(text),
      'is too general: tokens made for other services could carry it',
      'Use a name that only this deployment has, such as its URL.'
    ]
  ],
  'api-key': [
    [(text) => text.length >= 16, 'is shorter than 16 characters', makeKey],
    [
      // RFC 6750 section 2.1: what a bearer may consist of.
      (text) => /^[A-Za-z0-9\-._~+/]+=*$/.test(text),
      'contains characters that cannot be sent as a bearer (RFC 6750)',
      'Use letters, digits and - . _ ~ + / only.'
    ],
    [
      (text) => !wellKnownKeys.some((pattern) => pattern.test(text)) && new Set(text).size >= 6,
      'is a placeholder or easily guessed',
      makeKey
    ]
  ],
  command: [[(text) => text.trim() !== '', 'is empty', 'Name a program or a folder, or remove the key.'], noNul],
  'no-nul': [noNul],
  'upstream-url': url('https://tickets.example.com/mcp'),
  'header-name': [
    [
      // RFC 9110 section 5.6.2
      (text) => /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/.test(text),
      'is not a possible header name',
      'Use letters, digits and "-".'
    ],
    [(text) => !ownHeader.test(text), 'is a header that the gateway writes itself', 'Remove it.']
  ],
  'header-value': [
    [
      (text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text),
      'contains a line break or a character that no header may carry',
      'Remove it; a secret read from a file may have a line too many.'
    ]
  ]
}
