// One connection, one new request in each turn of the event loop: Node hands over all requests that one reading of the
// socket holds, hundreds of some bytes each, and thirty such connections would keep the process busy for seconds.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { passOver } from './counted-request.ts'

/** That came at once, on one connection. */
const maxWaitingRequests = 64
/** Of Node's parser, for what makes a request. */
const requestCallbacks = ['parserOnHeaders', 'parserOnHeadersComplete', 'parserOnBody', 'parserOnMessageComplete']

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Puts itself in front of the listener that the server has. */
export function serveOneByOne(server: Server): void {
  const [serve] = server.listeners('request') as [RequestListener]
  /** Of the connections on which one was begun in this turn. */
  const waiting = new WeakMap<Socket, Exchange[]>()

  function goOn(socket: Socket): void {
    const next = waiting.get(socket)?.shift()
    // Where the last answer of the connection was given, nobody would get that of the next.
    if (next === undefined || !socket.writable) return void waiting.delete(socket)
    setImmediate(goOn, socket)
    serve(next.request, next.response)
  }

  server.off('request', serve).on('request', (request, response) => {
    const { socket } = request
    const before = waiting.get(socket)
    if (before === undefined) {
      waiting.set(socket, [])
      setImmediate(goOn, socket)
      serve(request, response)
      return
    }
    if (before.length < maxWaitingRequests) return void before.push({ request, response })
    if (socket.destroyed) return
    passOver(socket, requestCallbacks)
    socket.destroy()
  })
}
