// A request whose body is cut into tiny pieces: chunked, each byte can be a piece of its own, which costs an event and
// some hundred bytes of memory. A few megabytes of such pieces would keep the process busy for seconds, before anybody
// knows who sends them.

import type { ServerResponse } from 'node:http'
import { nodeHttp } from './node-http.ts'
import type { Socket } from 'node:net'

/** A body may come in so many pieces, however small they are. */
const maxSmallPieces = 500
/** The most pieces of a request that is answered already. */
const maxUnreadPieces = 10
/** Beyond these, in pieces of so many bytes on the average. */
const leastPieceBytes = 256

/** The message for a client that sends such a body. */
export const tooManyPieces =
  `The body comes in more than ${maxSmallPieces} pieces that have less than ${leastPieceBytes} bytes each ` +
  'on the average.'

/** A request as Node's server makes it, whose pieces are counted. */
export abstract class CountedPieces extends nodeHttp.IncomingMessage {
  /** The response to the request, once that is known. */
  response: ServerResponse | undefined
  #pieces = 0
  #bytes = 0
  #refused = false

  /** That came of its body so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** Answers that the body comes in too many pieces, and closes the connection. */
  protected abstract refuse(response: ServerResponse): void

  override push(chunk: Buffer | null): boolean {
    if (chunk === null) return super.push(chunk)
    // What came with it in one reading of the socket is still handed over.
    if (this.#refused) return false
    this.#bytes += chunk.length
    const max = this.response?.headersSent === true ? maxUnreadPieces : maxSmallPieces
    if (++this.#pieces <= max + this.#bytes / leastPieceBytes) return super.push(chunk)
    this.#giveUp()
    return false
  }

  /** Node calls it where the request was answered before it was read whole; its own lets what comes pass uncounted. */
  _dump(): void {
    this.removeAllListeners('data')
    this.resume()
  }

  #giveUp(): void {
    const { response, socket } = this
    this.#refused = true
    passOver(socket, ['parserOnBody'])
    if (response === undefined || response.headersSent) return void socket.destroy()
    this.refuse(response)
  }
}

/** The callbacks of Node's parser that make a request. */
const requestCallbacks = ['parserOnHeaders', 'parserOnHeadersComplete', 'parserOnBody', 'parserOnMessageComplete']

/** No request that this reading of the socket still holds is handed over, nor any that follows. */
export function passOverRequests(socket: Socket): void {
  passOver(socket, requestCallbacks)
}

/**
 * What was read of the socket, 64 KiB at a time, is parsed to its end, which nothing stops: each piece in it would be
 * copied and handed over, 20 ms for all. Without its callbacks Node's parser passes over them.
 * @param names of callbacks of Node's parser
 */
function passOver(socket: Socket, names: readonly string[]): void {
  const { parser } = socket as { readonly parser?: Record<string, unknown> | null }
  if (parser === null || parser === undefined) return
  for (const [key, callback] of Object.entries(parser)) {
    if (typeof callback !== 'function' || !names.includes(callback.name)) continue
    parser[key] = undefined
    // Node uses it again, for another connection.
    socket.once('close', () => (parser[key] = callback))
  }
}
