// One connection, one new request in each turn of the event loop: Node hands over all requests that one reading of the
// socket holds, hundreds of some bytes each, and thirty such connections would keep the process busy for seconds.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { passOver } from './counted-request.ts'
import type { RequestTurns } from './request-turns.ts'

/** That came at once, on one connection. */
const maxWaitingRequests = 64
/** Of Node's parser, for what makes a request. */
const requestCallbacks = ['parserOnHeaders', 'parserOnHeadersComplete', 'parserOnBody', 'parserOnMessageComplete']

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Puts itself in front of the listener that the server has. */
export function serveOneByOne(server: Server, turns: RequestTurns): void {
  const [serve] = server.listeners('request') as [RequestListener]
  /** What came on a connection while a request of it was begun in this turn, or waits. */
  const following = new WeakMap<Socket, Exchange[]>()

  function begin({ request, response }: Exchange): void {
    const { socket } = request
    turns.begin(socket, () => {
      // Of a client that has gone no body can be read any more.
      if (request.destroyed) return void following.delete(socket)
      setImmediate(goOn, socket)
      serve(request, response)
    })
  }

  function goOn(socket: Socket): void {
    const next = following.get(socket)?.shift()
    // Where the last answer of the connection was given, nobody would get that of the next.
    if (next === undefined || !socket.writable) following.delete(socket)
    else begin(next)
  }

  server.off('request', serve).on('request', (request, response) => {
    const { socket } = request
    const before = following.get(socket)
    if (before === undefined) {
      following.set(socket, [])
      begin({ request, response })
      return
    }
    if (before.length < maxWaitingRequests) return void before.push({ request, response })
    if (socket.destroyed) return
    passOver(socket, requestCallbacks)
    socket.destroy()
  })
}
