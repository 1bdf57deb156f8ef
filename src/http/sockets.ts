// Limits of the connections, against clients that send slowly or never leave, and how they end when the gateway stops.

import type { FastifyInstance } from 'fastify'
import type { Socket } from 'node:net'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import { type Clock, every } from '../time/clock.ts'

export const socketLimits = {
  forceCloseConnections: 'idle' as const,
  keepAliveTimeout: 72_000,
  requestTimeout: 30_000,
  maxRequestsPerSocket: 1_000,
  http: {
    headersTimeout: 10_000,
    // How often slow senders are looked for; Node's default lets them sit for half a minute more.
    connectionsCheckingInterval: 2_000,
    /**
     * Of all headers of a request together, in bytes; more is answered 431. Twice what Node allows: Mcp-Name repeats
     * the whole URI of a resource, and Mcp-Param-* the arguments of a tool, in base64 where they are not plain ASCII.
     */
    maxHeaderSize: 32_768
  }
}

/** How to close a server: see `HttpServer.close`. */
export function createServerClosing(fastify: FastifyInstance): (drainMs: number, clock: Clock) => Promise<void> {
  const { server } = fastify
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })

  return async (drainMs, clock) => {
    const closed = fastify.close()
    // Connections that become idle while others still work would otherwise sit out their keep-alive time.
    const idle = every(clock, 50, () => server.closeIdleConnections())
    // To Node a connection that never sent a byte is a busy one; clients and browsers open such in advance.
    const silent = clock.timer(1_000, () => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    })
    const forced = clock.timer(drainMs + 2_000, () => server.closeAllConnections())
    await closed
    for (const timer of [idle, silent, forced]) timer.close()
  }
}

/** Ends the calls that take longer than the drain. */
export function abortCalls(calls: ReadonlySet<AbortController>, log: Log): void {
  log.warn({ calls: calls.size }, 'drain time is over; aborting calls in flight')
  const stopped = new GatewayError(
    'shutting_down',
    'The gateway stopped before the upstream had answered. Whether the call took effect is unknown.',
    { data: { outcome: 'unknown' } }
  )
  for (const call of calls) call.abort(stopped)
}
