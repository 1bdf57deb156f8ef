// Node's own timeouts of sockets and servers, made to run out sooner: no test waits out the time that the gateway gives
// slow and silent clients. They hold for the whole process, until the end of the test.

import http from 'node:http'
import { Socket } from 'node:net'
import type { Teardown } from './listen.ts'

const factor = 10

/** @returns the socket timeouts that were asked for since, in milliseconds */
export function fasterSocketTimeouts(t: Teardown): ReadonlySet<number> {
  const asked = new Set<number>()
  const { setTimeout } = Socket.prototype
  Socket.prototype.setTimeout = function (ms, run) {
    asked.add(ms)
    return setTimeout.call(this, ms / factor, run)
  }
  t.teardown(() => {
    Socket.prototype.setTimeout = setTimeout
  })
  return asked
}

export interface HeldTimeouts {
  /** The socket timeouts that were asked for since, in milliseconds. */
  readonly asked: ReadonlySet<number>
  /** Idempotent. */
  begin(): void
}

/**
 * Timeouts of exactly `heldMs` do not run out before `begin` (they last ten times as long), as a test has something to
 * do before; from then on they take a tenth of their time.
 */
export function heldSocketTimeouts(t: Teardown, heldMs: number): HeldTimeouts {
  const asked = new Set<number>()
  const held = new Set<Socket>()
  let begun = false
  const { setTimeout } = Socket.prototype
  Socket.prototype.setTimeout = function (ms, run) {
    asked.add(ms)
    if (ms === heldMs) held.add(this)
    else held.delete(this)
    const lastsMs = begun ? ms / factor : ms * factor
    return setTimeout.call(this, ms === heldMs ? lastsMs : ms, run)
  }
  t.teardown(() => {
    Socket.prototype.setTimeout = setTimeout
  })
  return {
    asked,
    begin() {
      if (begun) return
      begun = true
      for (const socket of held) setTimeout.call(socket, heldMs / factor)
    }
  }
}

export interface ServerTimeouts {
  headersTimeout: number
  requestTimeout: number
  connectionsCheckingInterval: number
  /** The server's end of each connection, by the port of the other end. */
  readonly connections: ReadonlyMap<number | undefined, Socket>
}

/** For servers made from now on. @returns what the latest of them was given, in milliseconds */
export function fasterServerTimeouts(t: Teardown): ServerTimeouts {
  const connections = new Map<number | undefined, Socket>()
  const asked = { headersTimeout: 0, requestTimeout: 0, connectionsCheckingInterval: 30_000, connections }
  const { createServer } = http
  http.createServer = ((options: http.ServerOptions, listener: http.RequestListener) => {
    asked.connectionsCheckingInterval = options.connectionsCheckingInterval ?? 30_000
    const connectionsCheckingInterval = asked.connectionsCheckingInterval / factor
    const server = createServer({ ...options, connectionsCheckingInterval }, listener)
    server.on('connection', (socket) => connections.set(socket.remotePort, socket))
    for (const name of ['headersTimeout', 'requestTimeout'] as const) {
      asked[name] = server[name]
      Object.defineProperty(server, name, {
        get: () => asked[name] / factor,
        set(ms: number) {
          asked[name] = ms
        }
      })
    }
    return server
  }) as typeof createServer
  t.teardown(() => {
    http.createServer = createServer
  })
  return asked
}
