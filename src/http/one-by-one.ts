// One connection, one request at a time: those that a client sends before it has the answer wait for it. Node hands
// over all requests that one reading of the socket holds, hundreds of some bytes each, and thirty such connections
// would keep the process busy for seconds.

import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { passOver } from './counted-request.ts'

/** That wait for the answer to the one before them. */
const maxWaitingRequests = 32
/** Of Node's parser, for what makes a request. */
const requestCallbacks = ['parserOnHeaders', 'parserOnHeadersComplete', 'parserOnBody', 'parserOnMessageComplete']

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Puts itself in front of the listener that the server has. */
export function serveOneByOne(server: Server): void {
  const [serve] = server.listeners('request') as [RequestListener]
  /** Of the connections on which a request is worked on. */
  const waiting = new WeakMap<Socket, Exchange[]>()

  function begin({ request, response }: Exchange): void {
    // In a later turn of the event loop, so that one connection does not keep it for all of its requests.
    response.once('close', () => setImmediate(goOn, request.socket))
    serve(request, response)
  }

  function goOn(socket: Socket): void {
    const next = waiting.get(socket)?.shift()
    // Where the answer was the last one of the connection, nobody would get that of the next.
    if (next !== undefined && socket.writable) begin(next)
    else waiting.delete(socket)
  }

  server.off('request', serve).on('request', (request, response) => {
    const { socket } = request
    const before = waiting.get(socket)
    if (before === undefined) {
      waiting.set(socket, [])
      return begin({ request, response })
    }
    if (before.length < maxWaitingRequests) return void before.push({ request, response })
    if (socket.destroyed) return
    passOver(socket, requestCallbacks)
    socket.destroy()
  })
}
