// Connections of clients while they bring POSTs and DELETEs in their usual form, each of which came with its body in
// one or two reads: those are read from the socket and answered on it. Node's server, its parser, request, response and
// streams cost as much as all that the gateway does with a small call. With whatever else comes, a connection is handed
// over to Node's server for good, with every byte that was not answered.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { ClientReply, ClientRequest, RefuseUnbegun } from '../reply.ts'
import type { RequestTurns } from '../request-turns.ts'
import { headEnd, HeadReader, isBeginning, type RequestHead } from './request-head.ts'
import type { ConnectionMoves } from '../../workers/connection-moves.ts'
import type { MovedConnection } from '../../workers/messages.ts'
import { createMoving, isIdle, type MovableConnection, type Moving } from './moving.ts'
import { createDateHeader, type ReplySettings, SocketReply } from './socket-reply.ts'

/** In milliseconds; those of Node's server. */
export interface ConnectionTimes {
  readonly keepAliveTimeout: number
  readonly headersTimeout: number
}

export interface DirectOptions extends ConnectionTimes {
  readonly maxRequestsPerSocket: number
  readonly turns: RequestTurns
  /** Does the server take connections? */
  isOpen(): boolean
  /** Is it a request that `serve` takes, now? */
  accepts(head: RequestHead): boolean
  /** @param body of a POST */
  serve(request: ClientRequest, reply: ClientReply, body: Buffer): void
  readonly refuse: RefuseUnbegun
  /** To and from other workers, where there are some. */
  readonly moves?: ConnectionMoves | undefined
  /** Nothing came on the connection for `headersTimeout`. */
  silent(socket: Socket): void
}

/** Longer requests are Node's, in bytes with the head: it hands over bodies as they come. */
const maxDirectBytes = 16_384
/** The same of their heads, in bytes. */
const maxDirectHead = 8_192
/** Of a request that has not come whole, or of a next one: beyond, it is Node's, or waits in the system. */
const maxHeldBytes = 4_096
/** How long the second half of a request may take; then it is Node's, with its own limits. In milliseconds. */
const secondHalfMs = 1_000

/** Puts itself in front of the listener that the server has for connections. */
export function serveDirectly(server: Server, options: DirectOptions) {
  const [serveByNode] = server.listeners('connection') as [(socket: Socket) => void]
  const { keepAliveTimeout, maxRequestsPerSocket, moves, isOpen } = options
  const settings = {
    date: createDateHeader(),
    keepAlive: `timeout=${Math.floor(keepAliveTimeout / 1_000)}, max=${maxRequestsPerSocket}`
  }
  const open = new Set<DirectConnection>()
  const serve = (socket: Socket, before?: MovedConnection): void =>
    void open.add(new DirectConnection(socket, context, before))
  const moving = moves && createMoving(server, moves, isOpen, serve)
  const context: ConnectionContext = {
    ...options,
    settings,
    moving,
    left: (connection) => open.delete(connection),
    handOver: (socket) => serveByNode.call(server, socket)
  }
  server
    .off('connection', serveByNode)
    .prependListener('connection', (socket: Socket) => serve(socket, moving?.arriving))
  return {
    closeIdle(): void {
      for (const connection of open) connection.closeIfIdle()
    },
    closeAll(): void {
      for (const connection of open) connection.destroy()
      moving?.closeAll()
    }
  }
}

interface ConnectionContext extends DirectOptions {
  readonly settings: ReplySettings
  readonly moving: Moving | undefined
  left(connection: DirectConnection): void
  handOver(socket: Socket): void
}

class DirectConnection implements MovableConnection {
  readonly socket: Socket
  private readonly context: ConnectionContext
  private reply: SocketReply | undefined
  /** A request is being answered, or waits to be. */
  private isBusy = false
  /** Of a request that has not come whole, or of one that came before the answer to the one before it. */
  private held: Buffer | undefined
  requests: number
  readonly moves: number
  lastHome: string | undefined
  private isReleased = false
  private readonly heads = new HeadReader()

  constructor(socket: Socket, context: ConnectionContext, before?: MovedConnection) {
    this.socket = socket
    this.context = context
    this.moves = before?.moves ?? 0
    this.requests = before?.requests ?? 0
    socket.setTimeout(before === undefined ? context.headersTimeout : context.keepAliveTimeout)
    socket.on('data', this.onData).on('end', this.onEnd).on('timeout', this.onTimeout)
    socket.on('drain', this.onDrain).on('error', this.onError).on('close', this.onClose)
  }

  destroy(): void {
    this.socket.destroy()
  }

  closeIfIdle(): void {
    if (!this.isBusy && this.held === undefined && this.requests > 0) this.socket.destroy()
  }

  private readonly onData = (chunk: Buffer): void => {
    // The last answer was given: nobody would get that of another request, so it is not begun.
    if (!this.socket.writable) return
    const bytes = this.held === undefined ? chunk : Buffer.concat([this.held, chunk])
    if (!this.isBusy) return this.read(bytes, this.held !== undefined)
    this.held = bytes
    if (bytes.length > maxHeldBytes) this.socket.pause()
  }

  /** @param isSecond half of a request: no third part is waited for */
  private read(bytes: Buffer, isSecond: boolean): void {
    this.held = undefined
    const end = this.heads.endOf(bytes)
    const head = end === -1 || end > maxDirectHead ? undefined : this.heads.read(bytes, end)
    if (end !== -1 && (head === undefined || !this.context.accepts(head))) return this.handOver(bytes)
    const start = end + headEnd.length
    const length = head === undefined ? start : start + head.bodyLength
    if (head !== undefined && length === bytes.length) return this.queue(head, bytes, start)
    // What is longer holds the next request, too.
    if (
      isSecond ||
      !isBeginning(bytes) ||
      (head !== undefined && length < bytes.length) ||
      length > maxDirectBytes ||
      bytes.length > maxHeldBytes
    )
      return this.handOver(bytes)
    this.held = bytes
    this.socket.setTimeout(secondHalfMs)
  }

  /** @param bytes of the whole request */
  private queue(head: RequestHead, bytes: Buffer, bodyStart: number): void {
    const { context, socket } = this
    this.isBusy = true
    const waits = context.turns.add({
      socket,
      headers: head.headers,
      url: head.url,
      bytes: bytes.length,
      begin: () => this.begin(head, bytes, bodyStart),
      refuse: (error) => context.refuse(this.replyTo(head), error)
    })
    if (waits) socket.pause()
  }
  private begin(head: RequestHead, bytes: Buffer, bodyStart: number): void {
    const { context, socket, held } = this
    if (socket.destroyed) return
    if (socket.isPaused()) socket.resume()
    // The gateway may be stopping since it came.
    if (!context.accepts(head)) return this.handOver(held === undefined ? bytes : Buffer.concat([bytes, held]))
    const reply = this.replyTo(head)
    context.serve(reply.req, reply, bytes.subarray(bodyStart))
  }

  private replyTo({ method, url, headers, rawHeaders, keepAlive }: RequestHead): SocketReply {
    const { context, socket } = this
    if (this.requests++ === 0 || socket.timeout !== context.keepAliveTimeout)
      socket.setTimeout(context.keepAliveTimeout)
    const whole = { httpVersionMajor: 1, complete: true, errored: null }
    const request: ClientRequest = { method, url, headers, rawHeaders, socket, ...whole }
    const isLast = !keepAlive || this.requests >= context.maxRequestsPerSocket
    return (this.reply = new SocketReply(request, context.settings, !isLast, this.answered))
  }

  private readonly answered = (reply: SocketReply): void => {
    this.reply = undefined
    this.isBusy = false
    const { socket, context } = this
    if (socket.destroyed) return
    if (!reply.shouldKeepAlive || !socket.writable) {
      this.held = undefined
      return socket.destroySoon()
    }
    if (socket.timeout !== context.keepAliveTimeout) socket.setTimeout(context.keepAliveTimeout)
    if (this.held !== undefined) this.handOver(this.held)
    else context.moving?.follow(this, reply.home)
  }

  /** @returns whether it was idle, and is the caller's now */
  leave(): boolean {
    if (this.isReleased || this.isBusy || this.held !== undefined || !isIdle(this.socket)) return false
    this.release()
    return true
  }

  private handOver(bytes: Buffer): void {
    const { socket, context } = this
    this.release()
    socket.setTimeout(0)
    socket.pause()
    socket.unshift(bytes)
    context.handOver(socket)
    process.nextTick(() => socket.resume())
  }

  private release(): void {
    const { socket } = this
    this.isReleased = true
    socket.off('data', this.onData).off('end', this.onEnd).off('timeout', this.onTimeout)
    socket.off('drain', this.onDrain).off('error', this.onError).off('close', this.onClose)
    this.context.left(this)
  }

  /** Timers come before what has arrived in a turn that was held up: that is read first, and is not late. */
  private readonly onTimeout = (): void => void setImmediate(this.timedOut, this.socket.bytesRead)

  private readonly timedOut = (bytesRead: number): void => {
    const { isBusy, held, socket } = this
    if (socket.bytesRead !== bytesRead || this.isReleased) return
    if (isBusy) this.reply?.emit('timeout')
    else if (held !== undefined) this.handOver(held)
    else if (this.requests === 0) this.context.silent(socket)
    else socket.destroy()
  }

  /** As Node does: who ends its side waits for no answer. */
  private readonly onEnd = (): void => void this.socket.end()

  private readonly onDrain = (): void => void this.reply?.emit('drain')

  /** Reset by the client: nobody is there to be told. */
  private readonly onError = (): void => this.destroy()

  private readonly onClose = (): void => {
    this.release()
    this.reply?.closed()
  }
}
