// Sockets to upstreams: how many there may be, who shares them, and how long they are kept open between requests
// (RFC 9112 section 9.3).

import type { OnReadOpts, Socket } from 'node:net'
import type { EgressGuard } from '../../egress/guard.ts'
import { type Guarded, openedEvent, openSocket } from '../../egress/sockets.ts'
import { createQuota } from '../../limits/limits.ts'
import { type Clock, type Timer, steadyClock } from '../../time/clock.ts'
import { type Exchange, type PoolContext, PooledSocket } from './pooled-socket.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import type { Request } from '../../protocol/messages.ts'
import type { Client } from '../../protocol/seams.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { HttpFailure } from '../rpc/errors.ts'
import type { TargetContext } from './target.ts'

/**
 * Calls; streams without end; handshakes, lists and messages that are only taken. Counted apart, so that none takes the
 * sockets of another.
 */
export type SocketUse = 'calls' | keyof typeof usualSockets

export interface SocketClaim {
  readonly use: SocketUse
  /** The person behind the request; undefined: the one whom the connection serves, or nobody. */
  readonly person?: string | undefined
}

export interface SocketLease {
  readonly send: SocketPool['send']
  /**
   * Takes a socket for one request.
   * @returns what gives the socket back, once; or the failure of the request, where all are in use
   */
  take(claim: SocketClaim): (() => void) | (HttpFailure & { readonly kind: 'limited' })
  /** The last one to release it closes the sockets. Idempotent. */
  release(): void
}

/** Returns the purpose and the person for which a request takes a socket. */
export const socketClaimOf = ({ method }: Request, { quotaKey }: Pick<Client, 'quotaKey'>): SocketClaim => ({
  use: socketUseOf(method),
  person: quotaKey
})

export function socketUseOf(method: string): SocketUse {
  if (method === 'subscriptions/listen') return 'streams'
  return method === 'initialize' || method === 'server/discover' || method.endsWith('/list') ? 'others' : 'calls'
}

// An idle socket that the server closes just as we write is a call whose outcome nobody knows. Node's servers close
// after 5 s.
const keepAliveMs = 4_000
const keepAliveMarginMs = 2_000
/**
 * The most sockets to one upstream, beside its `maxCalls`. Each request has a socket for itself until its answer has
 * ended.
 */
const usualSockets = { streams: 4_096, others: 1_024 }
/** The share of one person of these sockets, and of calls. */
const share = 0.75

export const personShareOf = (max: number): number => Math.max(1, Math.floor(max * share))
/** The time between two lines of the log that say that all sockets are in use, in milliseconds. */
const loggedEveryMs = 60_000

interface EgressSockets {
  /** To one upstream. */
  maxSockets?: typeof usualSockets | undefined
  /** To all upstreams of one tenant. */
  ofTenant?: number
}

const full = 'all sockets to an upstream are in use'
const tenantFull =
  'all sockets to the upstreams of a tenant are in use: they are a part of the files that this process may have open ' +
  '(ulimit -n)'

export type Egress = ReturnType<typeof createEgress>

/**
 * One pool of sockets per connection definition, so that no two tenants and no two credentials ever share a socket; no
 * redirects, no retries, no decompression.
 */
export function createEgress(
  guard: EgressGuard,
  { maxSockets = usualSockets, ofTenant = Infinity }: Readonly<EgressSockets> = {}
) {
  const pools = new Map<
    string,
    { readonly pool: SocketPool; readonly loggedAt: Map<SocketUse, number>; users: number }
  >()
  const sockets = createQuota()
  return {
    open(definition: HttpDefinition, { handshake, log, clock }: TargetContext): SocketLease {
      const { hash, name, tenant, maxCalls } = definition
      let shared = pools.get(hash)
      if (shared === undefined) {
        const url = new URL(definition.url)
        const guarded = definition.publicHosts?.includes(url.hostname) === true ? { guard, owner: tenant } : undefined
        const pool = createSocketPool(url, definition.connectMs, { guarded })
        shared = { pool, loggedAt: new Map(), users: 0 }
        pools.set(hash, shared)
      }
      const { pool } = shared
      const mine = shared
      mine.users++
      let released = false
      return {
        send: pool.send,
        take({ use, person = handshake.quotaKey }) {
          const max = use === 'calls' ? maxCalls : maxSockets[use]
          const own = personShareOf(max)
          const ofAll = [`${hash} ${use}`, max] as const
          const all = [ofAll, [`tenant ${tenant}`, ofTenant]] as const
          const giveBack = sockets.take(1, person === undefined ? all : [...all, [`${ofAll[0]} ${person}`, own]])
          if (giveBack !== undefined) return giveBack
          const isTenantFull = sockets.amountOf(`tenant ${tenant}`) >= ofTenant
          const now = clock.now()
          // Math.abs: a clock that is set back must not silence it.
          if (Math.abs(now - (mine.loggedAt.get(use) ?? -Infinity)) >= loggedEveryMs) {
            log.warn(
              { upstream: name, tenant, use, max: isTenantFull ? ofTenant : max },
              isTenantFull ? tenantFull : full
            )
            mine.loggedAt.set(use, now)
          }
          return {
            kind: 'limited',
            what: isTenantFull
              ? `${ofTenant} requests at once together with the other upstreams of its tenant`
              : `${max} requests of the kind "${use}" at once, ${own} of them for one caller`
          }
        },
        release() {
          if (released) return
          released = true
          if (--mine.users > 0) return
          pools.delete(definition.hash)
          pool.destroy()
        }
      }
    }
  }
}

type SocketPool = ReturnType<typeof createSocketPool>

interface SocketPoolOptions {
  /** The guard that judges addresses. Default: any address. */
  readonly guarded?: Guarded | undefined
  readonly clock?: Clock
}

/** @param url whose origin the sockets go to; @param connectMs until a socket is connected, with TLS */
export function createSocketPool(
  url: URL,
  connectMs: number,
  { guarded, clock = steadyClock }: SocketPoolOptions = {}
) {
  /** The one that was used last is the last. */
  const idle: PooledSocket[] = []
  const all = new Set<PooledSocket>()
  let sweep: Timer | undefined
  let destroyed = false
  let due: PooledSocket[] = []
  let session: Buffer | undefined

  function open(onread: OnReadOpts): Socket {
    const socket = openSocket(url, { guarded, onread, session })
    socket.on('session', (ticket: Buffer) => {
      session = ticket
    })
    return socket
  }

  function closeIdle(): void {
    sweep = undefined
    for (const socket of [...idle]) if (socket.idleUntil <= clock.now()) socket.destroy()
    const [first] = idle
    if (first !== undefined) watchIdle(first.idleUntil - clock.now())
  }

  function watchIdle(ms: number): void {
    if (sweep !== undefined) return
    sweep = clock.timer(Math.max(1, ms), closeIdle)
    sweep.unref()
  }

  function writeDue(): void {
    const sockets = due
    due = []
    for (const socket of sockets) socket.write()
  }

  /** @param head latin1, with the empty line at its end */
  function send(head: string, body: JsonText | null, exchange: Exchange): void {
    if (destroyed) return exchange.failed(new Error('the connection was closed'))
    for (let socket = idle.pop(); socket !== undefined; socket = idle.pop()) {
      if (socket.idleUntil > clock.now()) return socket.begin([head, body, exchange])
      socket.destroy()
    }
    const socket = new PooledSocket(context)
    all.add(socket)
    socket.begin([head, body, exchange])
  }

  const text = `not connected within ${connectMs / 1000} s (connectMs)`
  const context: PoolContext = {
    open,
    send,
    // What has come on an idle socket, or its end, has to be seen before anything is written: an answer that came ahead
    // of its request would be taken for that of the next. Between two of these the event loop looks at its sockets.
    writeSoon(socket) {
      if (due.push(socket) === 1) setImmediate(() => setImmediate(writeDue))
    },
    event: openedEvent(url),
    connectTimer: (late) => clock.timer(connectMs, () => late(Object.assign(new Error(text), { code: 'ETIMEDOUT' }))),
    released(socket, named) {
      const ms = Math.min(keepAliveMs, (named ?? Infinity) - keepAliveMarginMs)
      if (destroyed || ms <= 0) return socket.destroy()
      socket.idleUntil = clock.now() + ms
      idle.push(socket)
      watchIdle(ms)
    },
    closed(socket) {
      all.delete(socket)
      const at = idle.indexOf(socket)
      if (at !== -1) idle.splice(at, 1)
    }
  }

  return {
    send,
    /** Requests that are under way fail. */
    destroy(): void {
      destroyed = true
      sweep?.close()
      for (const socket of all) socket.destroy()
    }
  }
}
