// Process of its own: the least that a call at another process can be, which the hop is measured against. What comes is
// published as it is, one at a time, for the other process, which asks the server and publishes the answer. Nothing is
// checked, sealed, watched or limited. argv: the origin of the server, the URL of Redis, own name, name of the other.

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Redis } from 'ioredis'
import { Pool, type Dispatcher } from 'undici'

interface Asked {
  readonly id: number
  readonly path: string
  readonly method: string
  readonly headers: readonly string[]
  readonly body: string
}

interface Answered {
  readonly id: number
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const [origin = '', redis = '', own = '', other = ''] = process.argv.slice(2)
const pool = new Pool(origin, { pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
/** The commands of one turn leave together, as those of the gateway do. */
const commands = new Redis(redis, { enableAutoPipelining: true })
const messages = new Redis(redis)
const waiting = new Map<number, ServerResponse>()
let last = 0

const say = (message: Asked | Answered): unknown => commands.publish(other, JSON.stringify(message))

/** Of an answer that is small. */
class Answer implements Dispatcher.DispatchHandler {
  private readonly id: number
  private status = 0
  private headers: Record<string, string> = {}
  private body = ''

  constructor(id: number) {
    this.id = id
  }

  onRequestStart(): void {}

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[]>
  ): void {
    this.status = status
    this.headers = headers as Record<string, string>
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    this.body += piece.toString('latin1')
  }

  onResponseEnd(): void {
    const { id, status, headers, body } = this
    say({ id, status, headers, body })
  }

  onResponseError(): void {
    say({ id: this.id, status: 502, headers: {}, body: '' })
  }
}

messages.on('message', (_channel: string, text: string) => {
  const message = JSON.parse(text) as Asked | Answered
  if ('path' in message) {
    const { id, path, method, headers, body } = message
    const request = { path, method: method as Dispatcher.HttpMethod, headers: [...headers], body: body || null }
    return void pool.dispatch(request, new Answer(id))
  }
  const response = waiting.get(message.id)
  waiting.delete(message.id)
  response?.writeHead(message.status, message.headers).end(message.body, 'latin1')
})

const server = createServer((request, response) => {
  const { url: path = '/', method = 'GET', rawHeaders: headers } = request
  response.sendDate = false
  const pieces: Buffer[] = []
  request.on('data', (piece: Buffer) => pieces.push(piece))
  request.on('end', () => {
    const id = ++last
    waiting.set(id, response)
    say({ id, path, method, headers, body: Buffer.concat(pieces).toString() })
  })
})

server.keepAliveTimeout = 120_000
process.once('disconnect', () => process.exit())
await messages.subscribe(own)
server.listen(0, '127.0.0.1', () => {
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
