// Open connections by definition and scope: connects once for all callers at the same time, closes what is idle,
// leaves an upstream that fails alone for a while. It knows a scope as an opaque string, and not who is behind it.

import { GatewayError } from '../../protocol/messages.ts'
import { type ConnectBackoff, createConnectBackoff } from './connect-backoff.ts'
import { type Health, healthOf } from './health.ts'
import { type Clock, settledWithin, type Timer } from '../../time/clock.ts'
import { createPooledConnection, type PooledConnection } from './pooled-connection.ts'
import { UnreachableError } from '../rpc/errors.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { HandshakeParams, Upstream, UpstreamEvents } from '../../protocol/seams.ts'
import type { Connector } from '../connect/connect.ts'
import type { ConnectionUse } from '../rpc/transport.ts'

export interface Pool {
  /**
   * The connection of this definition and scope, the same object as long as it lives. `handshake`, `events` and `use`
   * (default `calls`) count when it is opened now. A failure of a connection for `calls` counts for its scope only,
   * unless no server was reached at all.
   * @throws GatewayError upstream_unavailable (data.retryAfterMs while it is left alone), upstream_protocol, too_many,
   * shutting_down
   */
  acquire(
    definition: UpstreamDefinition,
    scope: string,
    handshake: HandshakeParams,
    events: UpstreamEvents,
    use?: ConnectionUse
  ): Promise<Upstream>
  /** A client still listens: the connections of the scope, or that to one upstream, are not idle. */
  touch(scope: string, only?: UpstreamDefinition): void
  /** The open connection of this definition and scope, or one that was given up while calls still run on it. */
  peek(definition: UpstreamDefinition, scope: string): Upstream | undefined
  /** The same for a call: what is not open has to be acquired. */
  use(definition: UpstreamDefinition, scope: string): Upstream | undefined
  /** The open connection with this id, and its scope; undefined where it has ended, or is of another process. */
  find(id: string): { readonly upstream: Upstream; readonly scope: string } | undefined
  /** Closes all connections of the scope. */
  release(scope: string): Promise<void>
  /** Closes, once their calls have ended, the connections whose definition is not among these. */
  retain(hashes: ReadonlySet<string>): void
  health(): Health[]
  /** Closes all, in parallel, in bounded time. */
  close(): Promise<void>
  destroy(): void
}

export interface PoolOptions {
  readonly connector: Connector
  readonly clock: Clock
  /** Between 0 and 1. */
  readonly random: () => number
  readonly log: Log
}

const longestSweepMs = 5_000
/** Longer than the three graces of a child process together. */
const closeMs = 7_000

const keyOf = (definition: UpstreamDefinition, scope: string): string => `${definition.hash}\n${scope}`

export function createPool(options: PoolOptions): Pool {
  const { connector, clock, random, log } = options
  /** Those that are given out, or being opened. */
  const current = new Map<string, PooledConnection>()
  /** Those that are no longer given out but not closed yet. */
  const retired = new Set<PooledConnection>()
  const backoff = createConnectBackoff({ clock, random })
  let sweepMs = longestSweepMs
  let sweeper: Timer | undefined
  let closed = false

  function forget(connection: PooledConnection): void {
    if (current.get(connection.key) === connection) current.delete(connection.key)
    retired.delete(connection)
  }

  function open(
    definition: UpstreamDefinition,
    scope: string,
    handshake: HandshakeParams,
    events: UpstreamEvents,
    use: ConnectionUse | undefined
  ): PooledConnection {
    const key = keyOf(definition, scope)
    const watched: UpstreamEvents = {
      ...events,
      closed(reason) {
        backoff.ended(key, clock.now() - connection.openedAt, reason)
        connection.end(reason)
        events.closed(reason)
      }
    }
    const connection = createPooledConnection({
      key,
      definition,
      scope,
      clock,
      log,
      connect: (signal) =>
        connector.connect(definition, handshake, watched, signal, use).catch((error: unknown) => {
          if (!isOwnRefusal(error)) noteFailure(error as Error, definition, key, use, backoff, log)
          throw error
        }),
      retired: (connection) => {
        forget(connection)
        retired.add(connection)
      },
      gone: forget
    })
    return connection
  }

  function sweep(): void {
    const now = clock.now()
    for (const connection of current.values()) {
      if (connection.upstream === undefined) continue
      const { definition, key, inFlight, touchedAt, openedAt } = connection
      backoff.alive(definition, key, now - openedAt)
      if (inFlight === 0 && now - touchedAt >= definition.idleMs) void connection.close()
    }
    backoff.sweep()
    sweeper?.refresh()
  }

  /** One timer for all, at least twice as fast as the shortest idle time. */
  function watch(definition: UpstreamDefinition): void {
    const wanted = Math.max(10, Math.min(sweepMs, Math.floor(definition.idleMs / 2)))
    if (sweeper !== undefined && wanted === sweepMs) return
    sweeper?.close()
    sweepMs = wanted
    sweeper = clock.timer(sweepMs, sweep)
    sweeper.unref()
  }

  function stopAll(): PooledConnection[] {
    closed = true
    sweeper?.close()
    return [...current.values(), ...retired]
  }

  return {
    acquire(definition, scope, handshake, events, use) {
      if (closed) return Promise.reject(stoppingError())
      const key = keyOf(definition, scope)
      let connection = current.get(key)
      if (connection === undefined) {
        const refusal = backoff.refusal(definition, key)
        if (refusal !== undefined) return Promise.reject(refusal)
        connection = open(definition, scope, handshake, events, use)
        current.set(key, connection)
        watch(definition)
      }
      connection.touchedAt = clock.now()
      return connection.ready
    },

    touch(scope, only) {
      const now = clock.now()
      const touched =
        only === undefined
          ? [...current.values()].filter((connection) => connection.scope === scope)
          : [current.get(keyOf(only, scope))]
      for (const connection of touched) if (connection !== undefined) connection.touchedAt = now
    },

    peek: (definition, scope) => openAt(keyOf(definition, scope), current, retired),

    use(definition, scope) {
      const connection = current.get(keyOf(definition, scope))
      if (connection?.upstream === undefined || closed) return undefined
      connection.touchedAt = clock.now()
      return connection.upstream
    },

    find(id) {
      for (const connections of [current.values(), retired]) {
        for (const { upstream, scope } of connections) if (upstream?.id === id) return { upstream, scope }
      }
      return undefined
    },

    async release(scope) {
      await Promise.all(
        [...current.values()].filter((connection) => connection.scope === scope).map((connection) => connection.close())
      )
    },

    retain(hashes) {
      backoff.retain(hashes)
      // Calls keep the configuration they began with.
      for (const connection of current.values()) if (!hashes.has(connection.definition.hash)) connection.closeWhenIdle()
    },

    health() {
      return [...backoff.all()].map((known) => healthOf(known, [...current.values()], clock.now()))
    },

    async close() {
      const all = stopAll()
      await settledWithin(clock, closeMs, Promise.all(all.map((connection) => connection.close())))
    },

    destroy() {
      const reason = new GatewayError('shutting_down', 'The gateway is stopping.')
      for (const connection of stopAll()) connection.destroy(reason)
    }
  }
}

const stoppingError = (): GatewayError =>
  new GatewayError('shutting_down', 'The gateway is stopping. Retry; another process will answer.')

const openAt = (
  key: string,
  current: ReadonlyMap<string, PooledConnection>,
  retired: ReadonlySet<PooledConnection>
): Upstream | undefined => current.get(key)?.upstream ?? [...retired].find((each) => each.key === key)?.upstream

const isOwnRefusal = (error: unknown): boolean =>
  error instanceof GatewayError && (error.code === 'cancelled' || error.code === 'too_many')

function noteFailure(
  err: Error,
  definition: UpstreamDefinition,
  key: string,
  use: ConnectionUse | undefined,
  backoff: ConnectBackoff,
  log: Log
): void {
  // The connection for the listing declares nothing of any client, so its failures are the upstream's.
  const failures = backoff.failed(definition, key, err, use === 'listing' || err instanceof UnreachableError)
  // No warning: the caller is told, and the listing warns once for all.
  log.debug({ err, upstream: definition.name, tenant: definition.tenant, failures }, 'cannot connect to the upstream')
}
