// One connection, one new request in each turn of the event loop: Node hands over all requests that one reading of the
// socket holds, hundreds of some bytes each, and thirty such connections would keep the process busy for seconds.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { passOverRequests } from '../limits/counted-pieces.ts'
import type { RefuseUnbegun } from './reply.ts'
import type { RequestTurns } from './request-turns.ts'

/** That came at once, on one connection. */
const maxWaitingRequests = 64
/** In bytes: as much as Node reads of a socket at once. */
const maxReadBytes = 65_536

/** What watches over the process asks for these. */
const isProbe = /^\/health\/(?:live|ready)(?:\?|$)/

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Puts itself in front of the listener that the server has. */
export function serveOneByOne(server: Server, turns: RequestTurns, refuseUnbegun: RefuseUnbegun): void {
  const [serve] = server.listeners('request') as [RequestListener]
  /** What came on a connection while a request of it was begun in this turn, or waits. */
  const following = new WeakMap<Socket, Exchange[]>()
  const paused = new WeakSet<Socket>()

  /** No more is read of it than what came with a request that waits: nobody counts how much that takes. */
  function pause(socket: Socket): void {
    paused.add(socket)
    // At the end of a body Node resumes its socket, at the earliest when the parser has called us.
    queueMicrotask(() => {
      if (paused.has(socket)) socket.pause()
    })
  }

  function begin({ request, response }: Exchange): void {
    const { socket } = request
    // Of a client that has gone no body can be read any more.
    if (request.destroyed || !socket.writable) return void following.delete(socket)
    if (following.get(socket)?.length === 0 && paused.delete(socket)) socket.resume()
    setImmediate(goOn, socket)
    serve(request, response)
  }

  function beginInTurn(exchange: Exchange): void {
    const { request, response } = exchange
    const { socket } = request
    const waits = turns.add({
      socket,
      headers: request.headers,
      url: request.url ?? '',
      isProbe: isProbe.test(request.url ?? ''),
      bytes: bytesOf(request),
      begin: () => begin(exchange),
      refuse(error) {
        following.delete(socket)
        refuseUnbegun(response, error)
      }
    })
    if (waits) pause(socket)
  }

  function goOn(socket: Socket): void {
    const next = following.get(socket)?.shift()
    // Where the last answer of the connection was given, nobody would get that of the next.
    if (next === undefined || !socket.writable) following.delete(socket)
    else beginInTurn(next)
  }

  server.off('request', serve).on('request', (request, response) => {
    const { socket } = request
    const before = following.get(socket)
    if (before === undefined) {
      following.set(socket, [])
      beginInTurn({ request, response })
      return
    }
    if (before.length < maxWaitingRequests) {
      before.push({ request, response })
      return pause(socket)
    }
    if (socket.destroyed) return
    passOverRequests(socket)
    socket.destroy()
  })
}

/** What its body takes at most until the connection is read again. */
function bytesOf({ headers }: IncomingMessage): number {
  if (headers['transfer-encoding'] !== undefined) return maxReadBytes
  return Math.min(Number(headers['content-length'] ?? 0), maxReadBytes)
}
