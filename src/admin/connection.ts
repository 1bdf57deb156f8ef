// Limits what one connection of the admin listener may send at once: one request, and no body in thousands of tiny
// pieces. One read of a socket can hold hundreds of tiny requests, and thirty such connections, without any key, would
// keep the process busy for a second.

import type { RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { CountedPieces, passOverRequests, tooManyPieces } from '../limits/counted-pieces.ts'
import { nodeHttp } from '../limits/node-http.ts'
import { AdminProblem } from './problem.ts'

/**
 * Puts itself in front of the listener that the server has. A request that comes before the one before it is answered
 * is passed over, and the connection ends after that answer: its client sends the rest again (RFC 9112 section 9.3.2).
 */
export function serveOneRequest(server: Server): void {
  const [serve] = server.listeners('request') as [RequestListener]
  /** The answer that is awaited. */
  const awaited = new WeakMap<Socket, ServerResponse>()
  server.off('request', serve).on('request', (request, response) => {
    const { socket } = request
    const before = awaited.get(socket)
    if (before !== undefined) {
      passOverRequests(socket)
      if (!before.headersSent) before.shouldKeepAlive = false
      before.once('finish', () => socket.destroySoon())
      return
    }
    if (request instanceof CountedAdminRequest) request.response = response
    awaited.set(socket, response)
    response.once('finish', () => awaited.delete(socket))
    serve(request, response)
  })
}

/** A request of the admin API, whose body may not come in thousands of tiny pieces. */
class CountedAdminRequest extends CountedPieces {
  protected override refuse(response: ServerResponse): void {
    const problem = new AdminProblem('too_large', tooManyPieces, 'Send it in larger ones.')
    const [path = ''] = (this.url ?? '').split('?', 1)
    response
      .writeHead(problem.status, { 'Content-Type': 'application/problem+json', Connection: 'close' })
      .end(JSON.stringify(problem.body(path)))
  }
}

export const adminSocketLimits = {
  forceCloseConnections: true as const,
  keepAliveTimeout: 10_000,
  requestTimeout: 30_000,
  maxRequestsPerSocket: 1_000,
  http: {
    headersTimeout: 10_000,
    connectionsCheckingInterval: 2_000,
    maxHeaderSize: 16_384,
    IncomingMessage: CountedAdminRequest
  }
}

/** Refuses what is no request of HTTP/1.1, or has not come whole: there is no response to write to. */
export function refuseUnreadable(socket: Socket, { code }: NodeJS.ErrnoException): void {
  // Reset by the client: nobody is there to read.
  if (code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const problem = unreadable(code)
  const text = JSON.stringify(problem.body(''))
  socket.end(
    `HTTP/1.1 ${problem.status} ${nodeHttp.STATUS_CODES[problem.status]}\r\n` +
      'Content-Type: application/problem+json\r\n' +
      `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
    () => socket.destroy()
  )
}

function unreadable(code: string | undefined): AdminProblem {
  if (code === 'HPE_HEADER_OVERFLOW') {
    const most = `${adminSocketLimits.http.maxHeaderSize / 1024} KiB`
    return new AdminProblem('headers_too_large', `Path and headers are larger than ${most}.`, 'Send shorter ones.')
  }
  return code === 'ERR_HTTP_REQUEST_TIMEOUT'
    ? new AdminProblem('request_timeout', 'The request took too long to arrive.', 'Send it again, at once and whole.')
    : new AdminProblem('invalid_request', 'What was sent is not a request of HTTP/1.1.', 'Correct the client.')
}

/**
 * Where the connection came to, as a Host header says it. Prometheus reads each process at its own address, which no
 * configuration knows; a page that has a name of its own resolved to the listener sends that name.
 */
export function localHostOf({ localAddress = '', localPort }: Socket): string {
  const address = localAddress.replace(/^::ffff:(?=\d+\.)/, '')
  return `${address.includes(':') ? `[${address}]` : address}:${localPort}`
}
