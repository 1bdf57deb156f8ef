// One connection of the pool, from the attempt to open it to its end. It counts its calls: one that is given up takes
// no new ones, and ends with the last of those in flight.

import { endedError } from '../rpc/errors.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { Upstream } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'

export interface PooledConnection {
  readonly key: string
  readonly definition: UpstreamDefinition
  readonly scope: string
  /** What callers of the pool get. */
  readonly ready: Promise<Upstream>
  /** The same, once it is open. */
  readonly upstream: Upstream | undefined
  /** Since when it is open, or is being opened; milliseconds since the epoch. */
  readonly openedAt: number
  /** When it was last acquired, kept open for a listener, or had a call end. */
  touchedAt: number
  readonly inFlight: number
  /** It ended by itself, or serves no new calls: those in flight may go on, after which it is destroyed. */
  end(reason: Error): void
  /** Closes it once its calls have ended, new ones included. */
  closeWhenIdle(): void
  /** Closes it, or gives up opening it. Never rejects. */
  close(): Promise<void>
  destroy(reason: Error): void
}

export interface PooledConnectionOptions {
  readonly key: string
  readonly definition: UpstreamDefinition
  readonly scope: string
  readonly clock: Clock
  readonly log: Log
  connect(signal: AbortSignal): Promise<Upstream>
  /** It must not be given out any more. */
  retired(connection: PooledConnection): void
  /** It is closed, or was never open. */
  gone(connection: PooledConnection): void
}

export function createPooledConnection(options: PooledConnectionOptions): PooledConnection {
  const { key, definition, scope, clock, log } = options
  const stop = new AbortController()
  let own: Upstream | undefined
  let upstream: Upstream | undefined
  let ended: Error | undefined
  let closesWhenIdle = false
  let inFlight = 0
  let openedAt = clock.now()

  function callEnded(): void {
    inFlight--
    connection.touchedAt = clock.now()
    if (inFlight > 0) return
    if (ended !== undefined) connection.destroy(ended)
    else if (closesWhenIdle) void connection.close()
  }

  /** The connector's own object, with calls that are counted. */
  function counted(upstream: Upstream): Upstream {
    return {
      id: upstream.id,
      name: upstream.name,
      era: upstream.era,
      // A transport that had to repeat its handshake may have got another answer.
      get revision() {
        return upstream.revision
      },
      get capabilities() {
        return upstream.capabilities
      },
      get serverInfo() {
        return upstream.serverInfo
      },
      get instructions() {
        return upstream.instructions
      },
      serverRequestsNameCall: upstream.serverRequestsNameCall,
      abandonedCalls: upstream.abandonedCalls,
      request(request, client, signal) {
        if (ended !== undefined) return Promise.reject(endedError(definition.name, ended))
        inFlight++
        const result = upstream.request(request, client, signal)
        result.then(callEnded, callEnded)
        return result
      },
      notify: upstream.notify,
      close: connection.close,
      destroy: connection.destroy
    }
  }

  const connection: PooledConnection = {
    key,
    definition,
    scope,
    ready: options.connect(stop.signal).then(
      (opened) => {
        openedAt = connection.touchedAt = clock.now()
        own = opened
        upstream = counted(opened)
        return upstream
      },
      (error: unknown) => {
        options.gone(connection)
        throw error
      }
    ),
    get upstream() {
      return upstream
    },
    get openedAt() {
      return openedAt
    },
    touchedAt: openedAt,
    get inFlight() {
      return inFlight
    },
    end(reason) {
      ended ??= reason
      if (inFlight === 0) connection.destroy(reason)
      else options.retired(connection)
    },
    closeWhenIdle() {
      if (inFlight === 0) return void connection.close()
      options.retired(connection)
      closesWhenIdle = true
    },
    async close() {
      options.retired(connection)
      stop.abort()
      try {
        await connection.ready
        await own?.close()
      } catch (err) {
        // It never opened, or would not close: either way it is out of use.
        log.debug({ err, upstream: definition.name }, 'a connection ended while it was being closed')
      } finally {
        options.gone(connection)
      }
    },
    destroy(reason) {
      options.gone(connection)
      stop.abort()
      own?.destroy(reason)
    }
  }
  return connection
}
