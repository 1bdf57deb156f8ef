// Process of its own: the least that a proxy on node:http and undici can be, which everything is measured against.
// Heads and bodies go through as they are, piece by piece; nothing is parsed, checked or logged. What comes in one
// piece goes on in one piece: streams on both sides, as most proxies are written, cost 1.6 to 1.9 times as much. argv:
// the origin behind it.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool, type Dispatcher } from 'undici'

const [origin = ''] = process.argv.slice(2)
const pool = new Pool(origin, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })

/** Writes an answer into the response as it comes, without a stream of undici's in between. */
class Pass implements Dispatcher.DispatchHandler {
  private readonly response: ServerResponse
  /** Of a declared length. */
  private left = Number.NaN

  constructor(response: ServerResponse) {
    this.response = response
  }

  onRequestStart(): void {}

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>
  ): void {
    this.left = Number(headers['content-length'])
    this.response.writeHead(status, headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.left -= piece.length
    if (this.left === 0) return void this.response.end(piece)
    if (this.response.write(piece)) return
    controller.pause()
    this.response.once('drain', () => controller.resume())
  }

  onResponseEnd(): void {
    if (!this.response.writableEnded) this.response.end()
  }

  onResponseError(): void {
    this.response.destroy()
  }
}

function pass(
  { url = '/', method = 'GET', rawHeaders: headers }: IncomingMessage,
  response: ServerResponse,
  body: IncomingMessage | Buffer | null
): void {
  pool.dispatch({ path: url, method: method as Dispatcher.HttpMethod, headers, body }, new Pass(response))
}

const server = createServer((request, response) => {
  response.sendDate = false
  const length = Number(request.headers['content-length'] ?? 0)
  if (length === 0) return pass(request, response, null)
  request.once('data', (piece: Buffer) => {
    if (piece.length === length) return pass(request, response, piece)
    request.pause()
    request.unshift(piece)
    pass(request, response, request)
  })
})

server.keepAliveTimeout = 120_000
process.once('disconnect', () => process.exit())
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
