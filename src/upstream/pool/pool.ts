// Open connections by definition and scope. The pool connects once for concurrent callers, closes idle connections, and
// backs off from upstreams that fail. A scope is an opaque string: the pool does not know who is behind it.

import { createMemoryAccount, type MemoryAccount } from '../../limits/memory.ts'
import { GatewayError } from '../../protocol/messages.ts'
import { type Clock, type Timer, settledWithin } from '../../time/clock.ts'
import { createAttempts, isOf } from './attempts.ts'
import { createBreaker } from './breaker.ts'
import { createBulkhead } from './bulkhead.ts'
import { connectionKeyOf, createOpenConnections } from './open-connections.ts'
import { type PooledConnection, type UpstreamMeter, createPooledConnection } from './pooled-connection.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { HandshakeParams, Upstream, UpstreamEvents } from '../../protocol/seams.ts'
import type { Connector } from '../connect/connect.ts'
import type { ConnectionUse } from '../rpc/transport.ts'

interface PoolOptions {
  readonly connector: Connector
  readonly clock: Clock
  /** Returns a number from 0 to 1 (1 excluded). */
  readonly random: () => number
  readonly log: Log
  readonly metrics?: UpstreamMeter | undefined
  /** Default: without limits. */
  readonly memory?: MemoryAccount
}

const longestSweepMs = 5_000
/** Longer than the three graces of a child process together. */
export const closeMs = 7_000

export type Pool = ReturnType<typeof createPool>

export function createPool({ connector, clock, random, log, metrics, memory = createMemoryAccount() }: PoolOptions) {
  const connections = createOpenConnections(clock)
  const { current, retired, ofScope } = connections
  const attempts = createAttempts(clock, random, log, memory)
  const { backoff } = attempts
  const bulkhead = createBulkhead(clock, log)
  const breaker = createBreaker(connector, attempts, clock, log)
  const pool = { connections, clock, log, bulkhead, breaker, metrics, ended: attempts.requestEnded }
  let sweepMs = longestSweepMs
  let sweeper: Timer | undefined
  let closed = false

  function sweep(): void {
    const now = clock.now()
    for (const connection of current.values()) {
      if (connection.upstream === undefined) continue
      const { definition, key, inFlight, touchedAt, openedAt, isBorrowed } = connection
      // While an upstream answers nothing, its open connections prove nothing.
      if (!isBorrowed && !breaker.isSilent(definition.hash)) backoff.alive(definition, key, now - openedAt)
      if (inFlight === 0 && now >= connection.lentUntil && now - touchedAt >= definition.idleMs) void connection.close()
    }
    backoff.sweep()
    breaker.sweep()
    sweeper?.refresh()
  }

  /** Sets the one timer of all connections to half the shortest time that it watches, or less. */
  function watch(definition: UpstreamDefinition): void {
    const wanted = Math.max(10, Math.min(sweepMs, Math.floor(shortestWatchedMs(definition) / 2)))
    if (sweeper !== undefined && wanted === sweepMs) return
    sweeper?.close()
    sweepMs = wanted
    sweeper = clock.timer(sweepMs, sweep)
    sweeper.unref()
  }

  function stopAll(): PooledConnection[] {
    closed = true
    sweeper?.close()
    breaker.close()
    return [...current.values(), ...retired]
  }

  function open(
    definition: UpstreamDefinition,
    scope: string,
    handshake: HandshakeParams,
    events: UpstreamEvents,
    use: ConnectionUse
  ): PooledConnection {
    const key = connectionKeyOf(definition, scope)
    const watched: UpstreamEvents = {
      ...events,
      stderr: (line, leftOut) => attempts.said(definition, line, leftOut),
      closed(reason) {
        if (!opened.isBorrowed) attempts.ended(definition, key, clock.now() - opened.openedAt, reason)
        opened.end(reason)
        events.closed(reason)
      }
    }
    const stop = new AbortController()
    const connect = (): Promise<Upstream> => connector.connect(definition, handshake, watched, stop.signal, use)
    const opening = handshake.loan === undefined ? attempts.run(definition, key, use, connect) : connect()
    const opened = createPooledConnection({ key, definition, scope, events, handshake }, opening, stop, pool)
    connections.add(opened)
    watch(definition)
    return opened
  }

  return {
    /**
     * Returns the connection of this definition and scope, the same object as long as it lives. `handshake`, `events`
     * and `use` (default `calls`) matter only if it has to be opened. A failure of a connection for `calls` counts for
     * its scope only, unless the server was not reached. Only one caller at a time tries an upstream that is away.
     * @throws GatewayError upstream_unavailable (data.retryAfterMs while it is left alone), upstream_protocol,
     * too_many, shutting_down
     */
    async acquire(
      definition: UpstreamDefinition,
      scope: string,
      handshake: HandshakeParams,
      events: UpstreamEvents,
      use: ConnectionUse = 'calls'
    ): Promise<Upstream> {
      const key = connectionKeyOf(definition, scope)
      const refusal = (): GatewayError | undefined =>
        current.has(key) ? undefined : attempts.refusal(definition, key, use)
      if (!closed && refusal() !== undefined) await attempts.other(definition)
      if (closed) throw stopping()
      const refused = refusal()
      if (refused !== undefined) throw refused
      const connection = current.get(key) ?? open(definition, scope, handshake, events, use)
      connection.touchedAt = clock.now()
      return await connection.ready
    },

    /** A client still listens: the connections of the scope, or the one to one upstream, do not count as idle. */
    touch: connections.touch,
    /** Others are in the session of a connection for so long. @returns false where it takes no calls */
    lent: connections.lent,
    /** The open connection of this definition and scope, or a retired one on which calls still run. */
    peek: connections.peek,

    stateOf: (definition: UpstreamDefinition) => attempts.stateOf(definition, current.values()),
    stderrOf: attempts.stderrOf,
    statesOf: (all: readonly UpstreamDefinition[]) => attempts.statesOf(all, current.values(), breaker.isSilent),

    /** The open connection for a call; undefined: it has to be acquired. */
    use(definition: UpstreamDefinition, scope: string): Upstream | undefined {
      const connection = current.get(connectionKeyOf(definition, scope))
      if (connection?.upstream === undefined || closed) return undefined
      connection.touchedAt = clock.now()
      return connection.upstream
    },

    /** The open connection with this id, and its scope; undefined if it has ended or another process has it. */
    find: connections.find,

    /** Another process continues the stored sessions of the scope: closes their connections after their calls. */
    leave: (scope: string): void => ofScope(scope).forEach((connection) => connection.leaveWhenIdle()),
    /** Closes all connections of the scope. */
    async release(scope: string): Promise<void> {
      await Promise.all(ofScope(scope).map((connection) => connection.close()))
    },

    /** `connect` opens a connection outside of the pool. `endSession` ends a session that no process uses. */
    ...connector,

    /** Closes, once their calls have ended, the connections whose definition is not among these. */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      attempts.retain(hashes)
      bulkhead.retain(hashes)
      breaker.retain(hashes)
      // Running calls keep the configuration that they began with.
      for (const each of current.values()) if (!hashes.has(each.definition.hash)) each.closeWhenIdle()
    },

    /** Replaces the connections to an upstream: after their calls have ended, or at once, which fails the calls. */
    renew: (hash: string, atOnce: boolean): void => renew([...current.values()], hash, atOnce, backoff),
    /** Closes all connections in parallel, within `closeMs`. Stored sessions are left to the next process. */
    async close(): Promise<void> {
      const all = stopAll()
      await settledWithin(clock, closeMs, Promise.all(all.map((connection) => connection.leave())))
    },

    destroy(): void {
      for (const each of stopAll()) each.destroy(new GatewayError('shutting_down', 'The gateway is stopping.'))
    }
  }
}

function shortestWatchedMs(definition: UpstreamDefinition): number {
  const { idleMs } = definition
  if (definition.type !== 'http' || definition.checkAfterMs === 0) return idleMs
  return Math.min(idleMs, definition.checkAfterMs)
}

const stopping = (): GatewayError =>
  new GatewayError('shutting_down', 'The gateway is stopping. Retry; another process will answer.')

function renew(
  connections: readonly PooledConnection[],
  hash: string,
  atOnce: boolean,
  backoff: { forget(hash: string): unknown }
): void {
  backoff.forget(hash)
  for (const each of connections.filter(({ definition }) => isOf(definition, hash))) {
    each.forgetSession()
    if (atOnce) void each.close()
    else each.closeWhenIdle()
  }
}
