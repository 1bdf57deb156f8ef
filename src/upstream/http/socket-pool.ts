// Pools of sockets to upstreams: their limits, who shares them, and how long idle ones are kept (RFC 9112 section 9.3).

import type { OnReadOpts, Socket } from 'node:net'
import type { EgressGuard } from '../../egress/guard.ts'
import { type Guarded, openedEvent, openSocket } from '../../egress/sockets.ts'
import { createQuota } from '../../limits/limits.ts'
import { type Clock, type Timer, steadyClock } from '../../time/clock.ts'
import { type Exchange, type PoolContext, PooledSocket } from './pooled-socket.ts'
import type { Request } from '../../protocol/messages.ts'
import type { Client } from '../../protocol/seams.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { HttpFailure } from '../rpc/errors.ts'
import { createReconnects } from './sessions/reconnects.ts'
import type { TargetContext } from './target.ts'

/**
 * `calls`; `streams`, which have no end; `others`: handshakes, lists, notifications and responses. Each kind has a
 * limit of its own, so that none can take the sockets of another.
 */
export type SocketUse = 'calls' | keyof typeof usualSockets

export interface SocketClaim {
  readonly use: SocketUse
  /** The person behind the request; undefined: the person whom the whole connection serves, or none. */
  readonly person?: string | undefined
}

export interface SocketLease {
  readonly send: SocketPool['send']
  /** Of the streams that all leases of the upstream have open. */
  readonly reconnects: ReturnType<typeof createReconnects>
  /**
   * Takes a socket for one request.
   * @returns a function that releases the socket, to be called once; or the failure if all sockets are in use
   */
  take(claim: SocketClaim): (() => void) | (HttpFailure & { readonly kind: 'limited' })
  /** Ends this lease; the end of the last lease closes the sockets. Idempotent. */
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

// If the server closes an idle socket just as a request is written, the outcome of the request is unknown. So idle
// sockets are closed earlier than by Node's servers, which close theirs after 5 s.
const keepAliveMs = 4_000
const keepAliveMarginMs = 2_000
/**
 * The most sockets to one upstream, besides those of its `maxCalls`. A request has a socket for itself until its
 * response has ended.
 */
const usualSockets = { streams: 4_096, others: 1_024 }
/** The part of these sockets, and of `maxCalls`, that one person may use. */
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
    Pick<SocketLease, 'reconnects'> & {
      readonly pool: SocketPool
      readonly loggedAt: Map<SocketUse, number>
      users: number
    }
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
        shared = { pool, reconnects: createReconnects(clock), loggedAt: new Map(), users: 0 }
        pools.set(hash, shared)
      }
      const { pool } = shared
      const mine = shared
      mine.users++
      let released = false
      return {
        send: pool.send,
        reconnects: shared.reconnects,
        take({ use, person = handshake.quotaKey }) {
          const max = use === 'calls' ? maxCalls : maxSockets[use]
          const own = personShareOf(max)
          const ofAll = [`${hash} ${use}`, max] as const
          const all = [ofAll, [`tenant ${tenant}`, ofTenant]] as const
          const giveBack = sockets.take(1, person === undefined ? all : [...all, [`${ofAll[0]} ${person}`, own]])
          if (giveBack !== undefined) return giveBack
          const isTenantFull = sockets.amountOf(`tenant ${tenant}`) >= ofTenant
          const now = clock.now()
          // Math.abs: the line is logged also after the clock was set back.
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
  /** Refuses connections to forbidden addresses. Default: every address is allowed. */
  readonly guarded?: Guarded | undefined
  readonly clock?: Clock
}

/** @param url its origin is where the sockets go @param connectMs the time for connecting a socket, TLS included */
export function createSocketPool(
  url: URL,
  connectMs: number,
  { guarded, clock = steadyClock }: SocketPoolOptions = {}
) {
  /** The idle sockets in the order of their last use, the latest last. */
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

  /** @param head the request line and the headers, latin1, with the empty line at the end */
  function send(head: string, exchange: Exchange): void {
    if (destroyed) return exchange.failed(new Error('the connection was closed'))
    for (let socket = idle.pop(); socket !== undefined; socket = idle.pop()) {
      if (socket.idleUntil > clock.now()) return socket.begin([head, exchange])
      socket.destroy()
    }
    const socket = new PooledSocket(context)
    all.add(socket)
    socket.begin([head, exchange])
  }

  const text = `not connected within ${connectMs / 1000} s (connectMs)`
  const context: PoolContext = {
    open,
    send,
    // Bytes that came on an idle socket, or its end, must be noticed before a request is written: bytes that came early
    // would be taken for the response to it. Between two callbacks of setImmediate the event loop polls its sockets.
    writeSoon(socket) {
      if (due.push(socket) === 1) setImmediate(() => setImmediate(writeDue))
    },
    event: openedEvent(url),
    now: clock.now,
    connectTimer: (late) => clock.timer(connectMs, () => late(Object.assign(new Error(text), { code: 'ETIMEDOUT' }))),
    released(socket, readAt, named = Infinity) {
      const now = clock.now()
      if (readAt === undefined) socket.idleUntil = Math.min(socket.idleUntil, now + keepAliveMs)
      else socket.idleUntil = readAt + Math.min(keepAliveMs, named - keepAliveMarginMs)
      if (destroyed || socket.idleUntil <= now) return socket.destroy()
      idle.push(socket)
      watchIdle(socket.idleUntil - now)
    },
    closed(socket) {
      all.delete(socket)
      const at = idle.indexOf(socket)
      if (at !== -1) idle.splice(at, 1)
    }
  }

  return {
    send,
    /** Closes all sockets; open requests fail. */
    destroy(): void {
      destroyed = true
      sweep?.close()
      for (const socket of all) socket.destroy()
    }
  }
}
