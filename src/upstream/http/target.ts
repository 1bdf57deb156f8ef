// Where the requests of one connection go, over which sockets, and with which headers. The only place that makes HTTP
// dispatchers.

import { type Dispatcher, Pool } from 'undici'
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
import type { Client } from '../../protocol/seams.ts'
import { modernClientRequests } from '../../protocol/methods.ts'
import { encodeHeader } from '../../protocol/translate/param-headers.ts'
import { createQuota } from '../../limits/limits.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { MemoryShare } from '../../limits/memory.ts'
import type { ParamHeaderCache } from '../modern/param-header-cache.ts'
import type { HttpFailure } from '../rpc/errors.ts'
import type { LinkContext } from '../rpc/transport.ts'

/**
 * Calls; streams without end; handshakes, lists and messages that are only taken. Counted apart, so that none takes the
 * sockets of another.
 */
export type SocketUse = keyof typeof usualSockets

export interface SocketClaim {
  readonly use: SocketUse
  /** Who is behind the request; undefined: whom the connection serves, or nobody. */
  readonly person?: string | undefined
}

interface SocketPool {
  readonly dispatcher: Dispatcher
  /** For one request. @returns gives the socket back, once; or what to fail the request with, where all are in use */
  take(claim: SocketClaim): (() => void) | (HttpFailure & { readonly kind: 'limited' })
  /** The last one to release it closes the sockets. Idempotent. */
  release(): void
}

export interface HttpTarget extends SocketPool {
  readonly name: UpstreamName
  /** For messages, in place of the URL: a path or a query may hold a credential. */
  readonly origin: string
  /** With the query. */
  readonly path: string
  readonly maxBytes: number
  readonly memory: MemoryShare
  /** Names and values in turn. */
  readonly headers: readonly string[]
}

// An idle socket that the server closes just as we write is a call whose outcome nobody knows. Node's servers close
// after 5 s.
const keepAliveMs = 4_000
const keepAliveMarginMs = 2_000
/** To one upstream, at once. Each request has a socket for itself until its answer has ended. */
const usualSockets = { calls: 1_024, streams: 4_096, others: 1_024 }
/** Of these, those of one person. */
const share = 0.75

export type Egress = ReturnType<typeof createEgress>

/**
 * One pool of sockets per connection definition, so that no two tenants and no two credentials ever share a socket; no
 * redirects, no retries, no decompression.
 */
export function createEgress(maxSockets: Readonly<Record<SocketUse, number>> = usualSockets) {
  const pools = new Map<string, { readonly pool: Pool; readonly full: Set<SocketUse>; users: number }>()
  const sockets = createQuota()
  return {
    open(definition: HttpDefinition, { handshake, log }: LinkContext): SocketPool {
      const { hash, name, tenant } = definition
      let shared = pools.get(hash)
      if (shared === undefined) pools.set(hash, (shared = { pool: poolFor(definition), full: new Set(), users: 0 }))
      const { pool } = shared
      const mine = shared
      mine.users++
      let released = false
      return {
        dispatcher: pool,
        take({ use, person = handshake.quotaKey }) {
          const max = maxSockets[use]
          const own = Math.floor(max * share)
          const ofAll = [`${hash} ${use}`, max] as const
          const giveBack = sockets.take(1, person === undefined ? [ofAll] : [ofAll, [`${ofAll[0]} ${person}`, own]])
          if (giveBack !== undefined) return giveBack
          // Once: whoever is refused is told each time.
          if (!mine.full.has(use))
            log.warn({ upstream: name, tenant, use, max }, 'all sockets to an upstream are in use')
          mine.full.add(use)
          return {
            kind: 'limited',
            what: `${max} requests of the kind "${use}" at once, ${own} of them for one caller`
          }
        },
        release() {
          if (released) return
          released = true
          if (--mine.users > 0) return
          pools.delete(definition.hash)
          // Nobody is left to hear how it went.
          pool.destroy().catch(() => {})
        }
      }
    }
  }
}

function poolFor(definition: HttpDefinition): Pool {
  return new Pool(new URL(definition.url).origin, {
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: keepAliveMs,
    keepAliveMaxTimeout: keepAliveMs,
    keepAliveTimeoutThreshold: keepAliveMarginMs,
    connect: { timeout: definition.connectMs },
    // Whoever waits for an answer has a clock of its own, which knows what counts as a sign of life.
    headersTimeout: 0,
    bodyTimeout: 0
  })
}

/** What the request takes a socket for, and for whom. */
export const socketClaimOf = ({ method }: Request, { quotaKey }: Pick<Client, 'quotaKey'>): SocketClaim => ({
  use: socketUseOf(method),
  person: quotaKey
})

function socketUseOf(method: string): SocketUse {
  if (method === 'subscriptions/listen') return 'streams'
  return method === 'initialize' || method === 'server/discover' || method.endsWith('/list') ? 'others' : 'calls'
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
export function openTarget(definition: HttpDefinition, egress: Egress, link: LinkContext): HttpTarget {
  const { origin, pathname, search } = new URL(definition.url)
  return {
    name: definition.name,
    origin,
    path: pathname + search,
    maxBytes: definition.maxMessageBytes,
    memory: link.memory,
    headers: baseHeaders(definition, link.handshake.clientInfo),
    ...egress.open(definition, link)
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
 * @throws GatewayError invalid_params where they would be too long
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
  headers.push(...made, ...base)
  return headers
}

/** In bytes. Servers refuse more than 16 KiB of headers (Node's own limit) or less, in ways that tell nobody why. */
const maxMadeHeaders = 8_192
