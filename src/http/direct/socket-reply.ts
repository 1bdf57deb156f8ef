// The answer to a request that was read from its socket directly: as much of Node's `ServerResponse` as the handlers
// use, with the same bytes on the wire and the same events.

import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { nodeHttp } from '../../limits/node-http.ts'
import type { ClientReply, ClientRequest } from '../reply.ts'

export interface ReplySettings {
  /** Value of the header `Date`. */
  date(): string
  /** Value of the header `Keep-Alive`. */
  readonly keepAlive: string
}

/** Anything else could end the head, or begin another one. */
const notInHeaders = /[^\t\x20-\x7e\x80-\xff]/

export class SocketReply extends EventEmitter implements ClientReply {
  readonly req: ClientRequest
  shouldKeepAlive: boolean
  headersSent = false
  statusCode = 200
  writableEnded = false
  destroyed = false
  home: string | undefined
  private readonly socket: Socket
  private readonly settings: ReplySettings
  private readonly done: (reply: SocketReply) => void
  /** That is not written yet: it goes out with the first bytes of the body. */
  private head = ''
  private isChunked = false
  private isDone = false
  /** Of the body. */
  private length: number | undefined

  /** @param done it has left, or never will */
  constructor(req: ClientRequest, settings: ReplySettings, keepAlive: boolean, done: (reply: SocketReply) => void) {
    super()
    this.req = req
    this.socket = req.socket
    this.settings = settings
    this.shouldKeepAlive = keepAlive
    this.done = done
  }

  get writableLength(): number {
    return this.destroyed ? 0 : this.socket.writableLength
  }

  get writableNeedDrain(): boolean {
    return !this.destroyed && this.socket.writableNeedDrain
  }

  /** @throws TypeError where a value could not stand in a header */
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): this {
    if (this.headersSent) throw new Error('the head of this reply was written before')
    this.headersSent = true
    this.statusCode = status
    let head = `HTTP/1.1 ${status} ${nodeHttp.STATUS_CODES[status]}\r\n`
    let connection: string | undefined
    for (const name of Object.keys(headers)) {
      const value = String(headers[name])
      if (notInHeaders.test(value)) throw new TypeError(`the header ${name} has a character that no header may have`)
      head += `${name}: ${value}\r\n`
      if (name === 'Connection') connection = value
      else if (name === 'Content-Length') this.length = Number(value)
    }
    if (connection === 'close') this.shouldKeepAlive = false
    head += `Date: ${this.settings.date()}\r\n`
    if (connection === undefined)
      head += this.shouldKeepAlive
        ? `Connection: keep-alive\r\nKeep-Alive: ${this.settings.keepAlive}\r\n`
        : 'Connection: close\r\n'
    this.isChunked = this.length === undefined && status !== 204
    if (this.isChunked) head += 'Transfer-Encoding: chunked\r\n'
    this.head = `${head}\r\n`
    return this
  }

  /** @returns false where more should wait for `drain` */
  write(data: string | Uint8Array): boolean {
    if (this.destroyed || this.writableEnded) return false
    // An empty chunk would be the last one.
    if (data.length === 0) return !this.socket.writableNeedDrain
    if (typeof data !== 'string') return this.writeBytes(data)
    if (!this.isChunked) return this.socket.write(`${this.takeHead()}${data}`)
    const length = Buffer.byteLength(data)
    const encoding = length === data.length ? 'latin1' : 'utf8'
    return this.socket.write(`${this.takeHead()}${length.toString(16)}\r\n${data}\r\n`, encoding)
  }

  cork(): void {
    this.socket.cork()
  }

  uncork(): void {
    this.socket.uncork()
  }

  end(text = ''): this {
    if (this.destroyed || this.writableEnded) return this
    if (text !== '' && this.isChunked) this.write(text)
    this.writableEnded = true
    // As many bytes as characters: it is ASCII, and goes out without being converted.
    const encoding = this.length === text.length ? 'latin1' : 'utf8'
    this.socket.write(this.takeHead() + (this.isChunked ? '0\r\n\r\n' : text), encoding, (error) => {
      // The connection tells what has failed.
      if (!error) this.sent()
    })
    return this
  }

  /** As that of a response: the connection tells it by an event, and 0 ends the wait. */
  setTimeout(ms: number, onTimeout?: () => void): this {
    if (onTimeout !== undefined) this.on('timeout', onTimeout)
    this.socket.setTimeout(ms)
    return this
  }

  destroy(): this {
    this.destroyed = true
    this.socket.destroy()
    return this
  }

  /** The connection is closed. */
  closed(): void {
    if (this.isDone) return
    this.isDone = true
    this.destroyed = true
    this.emit('close')
    this.done(this)
  }

  private sent(): void {
    if (this.isDone || this.destroyed) return
    this.emit('finish')
    this.closed()
  }

  private takeHead(): string {
    const { head } = this
    this.head = ''
    return head
  }

  private writeBytes(data: Uint8Array): boolean {
    const { socket } = this
    socket.cork()
    socket.write(this.takeHead() + (this.isChunked ? `${data.length.toString(16)}\r\n` : ''))
    const isFree = socket.write(data)
    if (this.isChunked) socket.write('\r\n')
    socket.uncork()
    return isFree
  }
}

/** The header is the same for all answers of one second (RFC 9110 section 5.6.7). */
export function createDateHeader(): () => string {
  let second = 0
  let text = ''
  return () => {
    const now = Math.floor(Date.now() / 1_000)
    if (now !== second) text = new Date((second = now) * 1_000).toUTCString()
    return text
  }
}
