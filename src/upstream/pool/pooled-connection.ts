// One connection of the pool, from the attempt to open it to its end. It counts its calls: a retired connection takes
// no new calls and ends with the last one in flight.

import { GatewayError, type Result } from '../../protocol/messages.ts'
import { endedError } from '../rpc/errors.ts'
import type { Breaker } from './breaker.ts'
import type { Bulkhead } from './bulkhead.ts'
import type { OpenConnections } from './open-connections.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'
import type { UpstreamRequest } from '../../observe/metrics/call-attributes.ts'
import type { HandshakeParams, Upstream, UpstreamEvents } from '../../protocol/seams.ts'
import { type Clock, noReason, settledWithin } from '../../time/clock.ts'

export interface PooledConnection {
  readonly key: string
  readonly definition: UpstreamDefinition
  readonly scope: string
  /** In the session of another process: that it is open, or has ended, says nothing of the server. */
  readonly isBorrowed: boolean
  /** Resolves with the connection that callers of the pool get. */
  readonly ready: Promise<Upstream>
  /** The same, once it is open. */
  upstream: Upstream | undefined
  /** When it was opened; before that, when opening began. In milliseconds since the epoch. */
  openedAt: number
  /** When it was last acquired, kept open for a listener, or had a call end. */
  touchedAt: number
  inFlight: number
  /**
   * Another process uses its session until then: an idle connection ends it no sooner. In milliseconds since the epoch.
   */
  lentUntil: number
  /** It ended by itself, or takes no new calls; calls in flight go on, and after the last one it is destroyed. */
  end(reason: Error): void
  /** Forgets the stored session, so that the next connection begins a new one at the server. */
  forgetSession(): void
  /** Closes it once all its calls have ended, those included that begin meanwhile. */
  closeWhenIdle(): void
  /** The same for a connection whose session another process continues; a connection without one stays open. */
  leaveWhenIdle(): void
  /** Closes it, or cancels its opening. Never rejects. */
  close(): Promise<void>
  /** The same, but a stored session is left to the next process. */
  leave(): Promise<void>
  destroy(reason: Error): void
}

interface ConnectionPlace extends Pick<PooledConnection, 'key' | 'definition' | 'scope'> {
  readonly events: Pick<UpstreamEvents, 'retired'>
  readonly handshake: HandshakeParams
}

/** Records metrics of requests and connections to upstreams. */
export interface UpstreamMeter {
  /** @returns what to call with each request to this upstream, when it has ended */
  requestsTo(definition: UpstreamDefinition): (request: UpstreamRequest) => void
  connectionEnded(seconds: number, definition: UpstreamDefinition, error: string | undefined): void
}

interface PoolState {
  readonly connections: Pick<OpenConnections, 'remove' | 'retired'>
  readonly clock: Clock
  readonly log: Log
  readonly bulkhead: Bulkhead
  readonly breaker: Breaker
  readonly metrics: UpstreamMeter | undefined
  /** Called at the end of each request; error undefined: the server answered. */
  ended(connection: PooledConnection, error: unknown): void
}

/** How long `leave` waits for a connection that is still being opened, in milliseconds. */
const openingMs = 3_000
/**
 * The time for which a borrowed connection that takes no new calls stays open after it was given out last, in
 * milliseconds: the call that got it may wait for a limit of calls, or for the audit trail, before it is sent.
 */
const givenOutMs = 5_000

/** @param stop aborts the opening */
export function createPooledConnection(
  { key, definition, scope, events, handshake }: ConnectionPlace,
  opening: Promise<Upstream>,
  stop: AbortController,
  { connections, clock, log, bulkhead, breaker, metrics, ended: requestEnded }: PoolState
): PooledConnection {
  let own: Pick<Upstream, 'close' | 'leave' | 'stopListening' | 'destroy'> | undefined
  let ended: Error | undefined
  let whenIdle: 'close' | 'leave' | undefined
  let isTold = false
  const countRequest = metrics?.requestsTo(definition)

  function callEnded(error?: unknown): void {
    requestEnded(connection, error)
    connection.touchedAt = clock.now()
    if (--connection.inFlight > 0) return
    if (ended !== undefined) connection.destroy(ended)
    else if (whenIdle !== undefined) finishWhenIdle(whenIdle)
  }

  async function probed(send: () => Promise<Result>): Promise<Result> {
    const refused = await breaker.refusal(definition)
    if (refused !== undefined) throw refused
    return send() // Not awaited: until then `send` would keep the arguments.
  }

  function told(error?: Error): void {
    if (isTold || connection.upstream?.transport === undefined) return
    isTold = true
    const type = error instanceof GatewayError ? error.code : error && 'upstream_lost'
    metrics?.connectionEnded((clock.now() - connection.openedAt) / 1e3, definition, type)
  }

  function remove(): void {
    connections.retired.delete(connection)
    if (connections.remove(connection)) events.retired?.()
  }

  function retire(): void {
    remove()
    connections.retired.add(connection)
  }

  async function finish(how: 'close' | 'leave'): Promise<void> {
    retire()
    // An aborted handshake may leave a session at the server that is neither stored nor ended.
    if (how === 'leave' && handshake.place !== undefined) await settledWithin(clock, openingMs, connection.ready)
    stop.abort(noReason)
    try {
      await connection.ready
      await (own?.[how] ?? own?.close)?.()
      told()
    } catch (err) {
      // The connection never opened or failed to close: either way it is not used any more.
      log.debug({ err, upstream: definition.name }, 'a connection ended while it was being closed')
    } finally {
      remove()
    }
  }

  function finishWhenIdle(how: 'close' | 'leave'): void {
    whenIdle = how
    retire()
    if (connection.inFlight > 0) return
    const lentUntil = how === 'close' ? connection.lentUntil : 0
    const leftMs = (connection.isBorrowed ? connection.touchedAt + givenOutMs : lentUntil) - clock.now()
    if (leftMs <= 0) void connection[how]()
    else clock.timer(leftMs, () => finishWhenIdle(how)).unref()
  }

  const connection: PooledConnection = {
    key,
    definition,
    scope,
    isBorrowed: handshake.loan !== undefined,
    ready: opening.then(
      (upstream) => {
        connection.openedAt = connection.touchedAt = clock.now()
        const { request, close, leave, stopListening, destroy } = upstream
        own = { close, leave, stopListening, destroy }
        // The object is changed in place to keep its getters: a repeated handshake may change their values.
        const send: Upstream['request'] = (outgoing, client, signal) => {
          if (ended !== undefined) return Promise.reject(endedError(definition.name, ended))
          const leave = bulkhead.enter(definition, outgoing, client.quotaKey ?? handshake.quotaKey)
          if (leave instanceof GatewayError) return Promise.reject(leave)
          const watched = breaker.began(definition, outgoing, handshake)
          connection.inFlight++
          // No closure below may refer to the request: its arguments must be collectable once they are sent.
          const { method } = outgoing
          const { revision } = upstream
          const name = metrics && outgoing.params?.['name']
          const result = sent(request, outgoing, client, signal)
          // A stand-in (no transport) accepts any name, and is no upstream whose requests could be measured.
          const sentAt = upstream.transport && metrics && clock.now()
          const over = (error?: unknown, isToolError = false): void => {
            leave()
            watched(error)
            callEnded(error)
            if (sentAt === undefined) return
            countRequest?.({ revision, method, name, error, isToolError, ms: connection.touchedAt - sentAt })
          }
          result.then(
            (answer) => over(undefined, answer['isError'] === true && method === 'tools/call'),
            (error: unknown) => over(error)
          )
          return result
        }
        upstream.request = (outgoing, client, signal) => {
          if (breaker.isSilent(definition.hash)) return probed(() => send(outgoing, client, signal))
          return send(outgoing, client, signal)
        }
        upstream.close = connection.close
        upstream.destroy = connection.destroy
        connection.upstream = upstream
        return upstream
      },
      (error: unknown) => {
        remove()
        throw error
      }
    ),
    upstream: undefined,
    openedAt: clock.now(),
    touchedAt: clock.now(),
    inFlight: 0,
    lentUntil: 0,
    end(reason) {
      ended ??= reason
      if (connection.inFlight === 0) connection.destroy(reason)
      else retire()
    },
    forgetSession: () => handshake.place?.forget(),
    closeWhenIdle: () => finishWhenIdle('close'),
    leaveWhenIdle() {
      // A connection that is being opened may have a session in a moment.
      if (own === undefined ? handshake.place === undefined : own.leave === undefined) return
      own?.stopListening?.()
      finishWhenIdle('leave')
    },
    close: () => finish('close'),
    leave: () => finish('leave'),
    destroy(reason) {
      told(reason)
      remove()
      stop.abort(noReason)
      own?.destroy(reason)
    }
  }
  return connection
}

/** Sends a request; a thrown error becomes a rejection, so that the place of the call is given back. */
function sent(request: Upstream['request'], ...given: Parameters<Upstream['request']>): Promise<Result> {
  try {
    return request(...given)
  } catch (error) {
    return Promise.reject(error)
  }
}
