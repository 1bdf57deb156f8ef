// Open connections by definition and scope: connects once for all callers at the same time, closes what is idle,
// leaves an upstream that fails alone for a while. It knows a scope as an opaque string, and not who is behind it.

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
  /** Between 0 and 1. */
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
  const [bulkhead, breaker] = [createBulkhead(clock, log), createBreaker(connector, attempts, clock, log)]
  const pool = { connections, clock, log, bulkhead, breaker, metrics, ended: attempts.requestEnded }
  let sweepMs = longestSweepMs
  let [sweeper, closed]: [Timer | undefined, boolean] = [undefined, false]

  function sweep(): void {
    const now = clock.now()
    for (const connection of current.values()) {
      if (connection.upstream === undefined) continue
      const { definition, key, inFlight, touchedAt, openedAt, isBorrowed } = connection
      // While it answers nothing, that it is open proves nothing.
      if (!isBorrowed && !breaker.isSilent(definition.hash)) backoff.alive(definition, key, now - openedAt)
      if (inFlight === 0 && now >= connection.lentUntil && now - touchedAt >= definition.idleMs) void connection.close()
    }
    for (const each of [backoff, breaker]) each.sweep()
    sweeper?.refresh()
  }

  /** One timer for all, at least twice as fast as the shortest time that it watches. */
  function watch(definition: UpstreamDefinition): void {
    const { idleMs } = definition
    const checkMs = definition.type === 'http' && definition.checkAfterMs > 0 ? definition.checkAfterMs : idleMs
    const wanted = Math.max(10, Math.min(sweepMs, Math.floor(Math.min(idleMs, checkMs) / 2)))
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
     * The connection of this definition and scope, the same object as long as it lives. `handshake`, `events`, `use`
     * (default `calls`) count when it is opened now. A failure of a connection for `calls` counts for its scope only,
     * unless no server was reached at all. An upstream that is away is tried by one of the callers at a time.
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

    /** A client still listens: the connections of the scope, or that to one upstream, are not idle. */
    touch: connections.touch,
    /** Others are in the session of a connection for so long. @returns false where it takes no calls */
    lent: connections.lent,
    /** The open connection of this definition and scope, or one that was given up while calls still run on it. */
    peek: connections.peek,

    /** What this process knows of an upstream. */
    stateOf: (definition: UpstreamDefinition) => attempts.stateOf(definition, current.values()),
    stderrOf: attempts.stderrOf,
    statesOf: (all: readonly UpstreamDefinition[]) => attempts.statesOf(all, current.values(), breaker.isSilent),

    /** The open connection for a call: what is not open has to be acquired. */
    use(definition: UpstreamDefinition, scope: string): Upstream | undefined {
      const connection = current.get(connectionKeyOf(definition, scope))
      if (connection?.upstream === undefined || closed) return undefined
      connection.touchedAt = clock.now()
      return connection.upstream
    },

    /** The open connection with this id, and its scope; undefined where it has ended, or is of another process. */
    find: connections.find,

    /** Another process goes on with what is kept of the scope: lets go of it, once its calls have ended. */
    leave: (scope: string): void => ofScope(scope).forEach((connection) => connection.leaveWhenIdle()),
    /** Closes all connections of the scope. */
    async release(scope: string): Promise<void> {
      await Promise.all(ofScope(scope).map((connection) => connection.close()))
    },

    /** `connect`: one that its caller alone has. `endSession`: of one that no connection of any process is in. */
    ...connector,

    /** Closes, once their calls have ended, the connections whose definition is not among these. */
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      attempts.retain(hashes)
      bulkhead.retain(hashes)
      breaker.retain(hashes)
      // Calls keep the configuration they began with.
      for (const each of current.values()) if (!hashes.has(each.definition.hash)) each.closeWhenIdle()
    },

    /** Connections to an upstream are opened anew: after the calls that run on them, or at once, which ends those. */
    renew: (hash: string, atOnce: boolean): void => renew([...current.values()], hash, atOnce, backoff),
    /** Closes all, in parallel, in bounded time. What is kept is left to the process that comes next. */
    async close(): Promise<void> {
      const all = stopAll()
      await settledWithin(clock, closeMs, Promise.all(all.map((connection) => connection.leave())))
    },

    destroy(): void {
      for (const each of stopAll()) each.destroy(new GatewayError('shutting_down', 'The gateway is stopping.'))
    }
  }
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
