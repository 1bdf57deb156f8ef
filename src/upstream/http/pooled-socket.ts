// One TCP or TLS connection to a server. It carries one request at a time and its response; there is no pipelining, and
// no request is written twice.

import { ResponseReader } from './response-reader.ts'
import { longRequestLength } from '../rpc/transport.ts'
import type { JsonText, LongText } from '../../protocol/json-text.ts'
import type { OnReadOpts, Socket } from 'node:net'
import type { Timer } from '../../time/clock.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'
import { StepQueue, type Steps, smallSize } from '../../time/turns.ts'
import { turnShares } from '../../time/turn-shares.ts'

/** Callbacks of a socket for one request. After the one that ends the exchange, none is called. */
export interface Exchange {
  /** The tenant and caller in whose turns of the event loop the response is read. */
  readonly owner: WorkOwner
  /** Hands over the body, to be written now: an earlier failure means unsent. @returns undefined if it was cancelled */
  start(socket: PooledSocket): JsonText | null | undefined
  /** The operating system has taken all of a body of `longRequestLength` or more. */
  written?(): void
  /**
   * A part of the response was read.
   * @param reader valid during this call only: the next request on the socket reuses it
   * @param body the bytes of the body in this part
   * @param unread the number of bytes that came and were not read yet
   */
  received(reader: ResponseReader, body: Buffer | undefined, unread: number): void
  failed(cause: Error): void
}

/** A response that cannot be read. */
export class ResponseSyntaxError extends Error {}

// The size of a read buffer. One buffer serves all sockets, because libuv reads into it and calls us before the next
// read begins. On Windows a read begins before there is data, so each socket has a buffer of its own.
const readBytes = 65_536
const sharedBytes = Buffer.allocUnsafeSlow(readBytes)
const bytesOfRead = (): Buffer => (process.platform === 'win32' ? Buffer.allocUnsafeSlow(readBytes) : sharedBytes)

export type OwnRequest = readonly [head: string, exchange: Exchange]

export interface PoolContext {
  readonly event: 'connect' | 'secureConnect'
  now(): number
  open(onread: OnReadOpts): Socket
  send(...request: OwnRequest): void
  writeSoon(socket: PooledSocket): void
  connectTimer(late: (error: Error) => void): Timer
  /** @param readAt when a response came, from which its server counts; undefined: no request was written */
  released(socket: PooledSocket, readAt?: number, keepAliveMs?: number): void
  closed(socket: PooledSocket): void
}

export class PooledSocket {
  /** The time from which the server may close it if no request comes before, in milliseconds since the epoch. */
  idleUntil = Infinity
  private readAt = 0
  private readonly pool: PoolContext
  private readonly socket: Socket
  private readonly reader = new ResponseReader()
  private connecting: Timer | undefined
  /** The request that is not written yet. */
  private request: OwnRequest | undefined
  /** The exchange whose request is written. */
  private exchange: Exchange | undefined
  /** Whether the exchange has paused the socket. */
  private paused = false
  /** The bytes of a response that takes more than one step to read. */
  private work: StepQueue | undefined
  private behind = false
  /** The bytes that came and were not read yet. */
  private unread = 0

  constructor(pool: PoolContext) {
    this.pool = pool
    // Without a stream in between, which would cost more than all that is read here.
    const socket = (this.socket = pool.open({
      buffer: bytesOfRead(),
      callback: (size, bytes) => this.read(size, bytes as Buffer)
    }))
    this.connecting = pool.connectTimer((error) => socket.destroy(error))
    socket.once(pool.event, () => {
      this.connecting?.close()
      this.connecting = undefined
      this.write()
    })
    socket.on('end', () => this.whenRead(() => this.ended()))
    // Made only when needed: an Error keeps alive what its stack refers to.
    let cause: Error | undefined
    socket.on('error', (error) => void (cause = error))
    socket.on('close', () => {
      this.connecting?.close()
      pool.closed(this)
      this.whenRead(() => this.fail(cause ?? new Error('the connection was closed')))
    })
  }

  begin(request: OwnRequest): void {
    this.request = request
    this.work = undefined
    this.unread = 0
    this.reader.begin()
    if (this.connecting === undefined) this.pool.writeSoon(this)
  }

  /** Writes head and body at once: the system call costs more than joining the two. */
  write(): void {
    const { request } = this
    // This turn may have been long. If the socket was destroyed, its `close` event sends the request on another one.
    if (this.idleUntil <= this.pool.now()) this.destroy()
    if (request === undefined || this.socket.destroyed) return
    this.request = undefined
    const [head, exchange] = request
    const body = exchange.start(this)
    if (body === undefined) return this.pool.released(this)
    this.exchange = exchange
    const isLong = body !== null && body.length >= longRequestLength
    const written = isLong ? (error?: Error | null) => void (error ?? exchange.written?.()) : undefined
    if (body !== null && typeof body !== 'string') return this.writeParts(head, body, written)
    const length = body === null ? 0 : Buffer.byteLength(body)
    // Text of one byte for each character is written without conversion.
    if (length === (body?.length ?? 0)) return void this.socket.write(head + (body ?? ''), 'latin1', written)
    const bytes = Buffer.allocUnsafeSlow(head.length + length)
    bytes.write(head, 'latin1')
    bytes.write(body ?? '', head.length)
    this.socket.write(bytes, written)
  }

  private writeParts(head: string, { parts }: LongText, written: ((error?: Error | null) => void) | undefined): void {
    const { socket } = this
    socket.cork()
    socket.write(head, 'latin1')
    parts.forEach((part, at) => socket.write(part, at === parts.length - 1 ? written : undefined))
    socket.uncork()
  }

  /** @returns false if the socket must not be read on */
  private read(size: number, shared: Buffer): boolean {
    const { exchange } = this
    // No request is open: these bytes would be taken for the response to the next request.
    if (exchange === undefined) {
      this.destroy()
      return false
    }
    this.unread += size
    this.readAt = this.pool.now()
    // A copy, because the next read overwrites the shared buffer.
    let rest: Buffer | undefined = Buffer.from(shared.subarray(0, size))
    if (size <= smallSize && !this.behind && turnShares.take(exchange.owner.tenant))
      rest = this.readStep(exchange, rest)
    if (rest !== undefined) this.readLater(exchange, rest)
    return !this.socket.destroyed
  }

  /** @returns the bytes that are left for further steps; undefined: none */
  private readStep(exchange: Exchange, bytes: Buffer): Buffer | undefined {
    const { reader } = this
    const body = reader.push(bytes)
    const rest = bytes.subarray(reader.taken)
    this.unread -= reader.taken
    // A small part of the bytes would keep all of them in memory.
    const isSmall = body !== undefined && body.length < bytes.length / 2
    this.tell(exchange, isSmall ? Buffer.from(body) : body)
    return this.exchange === exchange && rest.length > 0 ? rest : undefined
  }

  private *readSteps(exchange: Exchange, bytes: Buffer): Steps {
    for (let rest: Buffer | undefined = bytes; rest !== undefined; rest = this.readStep(exchange, rest)) yield
  }

  /** Reads in a later step: hundreds of sockets can be ready in one turn of the event loop. */
  private readLater(exchange: Exchange, bytes: Buffer): void {
    const resume = (): void => this.holdUp(false)
    const destroy = (fault: Error): void => this.giveUp(fault)
    this.work ??= new StepQueue({ pause: () => this.holdUp(true), resume, destroy }, exchange.owner)
    this.work.push(this.readSteps(exchange, bytes), readBytes)
    if (this.unread > 0 && this.exchange === exchange) this.tell(exchange, undefined)
  }

  private ended(): void {
    this.reader.end()
    if (this.exchange !== undefined && this.reader.complete) this.tell(this.exchange, undefined)
    else this.fail(new Error('the server closed the connection'))
    this.destroy()
  }

  private tell(exchange: Exchange, body: Buffer | undefined): void {
    const { reader, unread } = this
    exchange.received(reader, body, unread)
    if (this.exchange !== exchange) return
    if (reader.complete) {
      this.exchange = undefined
      // The socket cannot be reused: a server that answers before it has read the request may never read the rest.
      if (!reader.reusable || unread > 0 || this.socket.writableLength > 0) return this.destroy()
      this.resume()
      this.pool.released(this, this.readAt, reader.keepAliveMs)
    } else if (reader.fault !== undefined) this.giveUp(new ResponseSyntaxError(reader.fault))
  }

  private fail(cause: Error): void {
    const { exchange, request } = this
    this.exchange = undefined
    this.request = undefined
    exchange?.failed(cause)
    if (request === undefined) return
    // It was idle, and its server has closed it: not a byte of the request was written.
    if (this.connecting === undefined) this.pool.send(...request)
    else request[1].failed(cause)
  }

  private giveUp(cause: Error): void {
    this.fail(cause)
    this.destroy()
  }

  pause(): void {
    this.paused = true
    this.socket.pause()
  }

  resume(): void {
    if (this.paused && !this.behind) this.socket.resume()
    this.paused = false
  }

  private holdUp(behind: boolean): void {
    this.behind = behind
    if (behind) this.socket.pause()
    else if (!this.paused) this.socket.resume()
  }

  /** Runs after the last read: a paused TLS socket reports its end before its bytes were read. */
  private whenRead(run: () => void): void {
    if (this.work === undefined) run()
    else this.work.whenIdle(run)
  }

  /** Cancels the request; none of its callbacks is called after this. */
  abandon(): void {
    this.exchange = undefined
    this.destroy()
  }

  destroy(): void {
    this.pool.closed(this)
    this.work?.close()
    this.work = undefined
    this.socket.destroy()
  }
}
