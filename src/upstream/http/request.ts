// Sends one HTTP request to an upstream and reads its response, JSON or SSE. The outcome tells whether the request was
// sent at all, which decides whether the caller may retry. There are no retries and no redirects.

import { IncomingMemory } from '../../limits/incoming-memory.ts'
import { finished } from '../../protocol/json-steps.ts'
import { ByteChunks, decodeSteps } from '../rpc/decode-json.ts'
import { type HttpOutcome, maxRefusalBytes, refusal } from './outcome.ts'
import { eventIdHeader, type HttpRequest, type HttpTarget } from './target.ts'
import { type Exchange, type PooledSocket, ResponseSyntaxError } from './pooled-socket.ts'
import { SseReader, type SseSink } from './sse-reader.ts'
import { StepQueue, type StepSource, type Steps, smallSize } from '../../time/turns.ts'
import type { ResponseReader } from './response-reader.ts'
import type { WorkOwner } from '../../time/fair-queue.ts'

export interface HttpResponseSink extends SseSink {
  /** The head of a 2xx response has come, before any message. */
  begin?(sessionId: string | undefined, streamed: boolean): void
  /** A body of `longRequestLength` or more was handed to the operating system. */
  written?(): void
  /** Called exactly once, unless the request was aborted. */
  end(outcome: HttpOutcome): void
}

export interface OpenRequest {
  /** Stops reading; the sink is not called any more. Idempotent. */
  abort(): void
}

export function sendRequest(target: HttpTarget, request: HttpRequest, sink: HttpResponseSink): OpenRequest {
  const { method, path = target.path, headers, body, lastEventId } = request
  const socket = target.take(request)
  if (typeof socket !== 'function') {
    sink.end(socket)
    return { abort() {} }
  }
  const handler = new ResponseHandler(sink, target, request, socket)
  let head = `${method} ${path} HTTP/1.1\r\n${headers}${target.credential?.lines() ?? ''}`
  if (body !== null) head += `content-length: ${typeof body === 'string' ? Buffer.byteLength(body) : body.length}\r\n`
  try {
    if (lastEventId !== undefined) head += eventIdHeader(lastEventId)
  } catch (cause) {
    handler.failed(cause as Error)
    return handler
  }
  target.send(`${head}\r\n`, handler)
  return handler
}

/** A class, because there is one instance for each call: methods of a class are not made anew each time. */
class ResponseHandler implements Exchange, OpenRequest, StepSource {
  readonly owner: WorkOwner
  private sink: HttpResponseSink
  private body: HttpRequest['body'] | undefined
  private readonly maxBytes: number
  private readonly incoming: IncomingMemory
  private readonly statusOnly: boolean
  private readonly giveBack: () => void
  private socket: PooledSocket | undefined
  private over = false
  private complete = false
  private status = 0
  private challenge: string | undefined
  private json = false
  private reader: SseReader | undefined
  private bytes: ByteChunks | undefined
  /** The unread bytes of a response that takes more than one turn of the event loop. */
  private work: StepQueue | undefined
  /** The number of bytes that came on the socket and were not parsed yet. */
  private unread = 0

  constructor(sink: HttpResponseSink, { maxBytes, memory }: HttpTarget, request: HttpRequest, giveBack: () => void) {
    this.sink = sink
    this.body = request.body
    this.maxBytes = maxBytes
    this.owner = memory
    this.incoming = new IncomingMemory(memory)
    this.statusOnly = request.statusOnly === true
    this.giveBack = giveBack
  }

  abort(): void {
    if (this.over) return
    this.letGo()
    // A socket that is still being connected refers to this: not to the caller, who has the body too.
    this.sink = { message() {}, end() {} }
    this.leave()
  }

  /** Whoever made the request may keep it for long, but neither its body nor a message that came in part. */
  private letGo(): void {
    this.over = true
    this.work?.close()
    this.reader = this.bytes = this.body = undefined
    this.incoming.fits(0)
  }

  /** Abandons the response and its socket. */
  private leave(): void {
    // A socket that is still being connected stays counted.
    if (this.complete || this.socket === undefined) return
    this.complete = true
    this.giveBack()
    this.socket.abandon()
  }

  private end(outcome: HttpOutcome): void {
    if (this.over) return
    this.letGo()
    this.sink.end(outcome)
  }

  /** Ends the request after everything that came before was read. */
  private finish(outcome: HttpOutcome): void {
    if (this.work === undefined) this.end(outcome)
    else this.work.whenIdle(() => this.end(outcome))
  }

  private giveUp(reason: string, code?: 'too_many'): void {
    this.end({ kind: 'garbled', reason, code })
    this.leave()
  }

  /** @returns whether there is memory for so many more bytes of a message; if not, the response is abandoned */
  private fits(more: number): boolean {
    const bytes = (this.reader?.held ?? this.bytes?.size ?? 0) + this.unread + more
    if (this.incoming.fits(bytes)) return true
    this.giveUp(this.incoming.reason(bytes), 'too_many')
    return false
  }

  start(socket: PooledSocket): HttpRequest['body'] | undefined {
    const { body } = this
    this.body = undefined
    if (this.over) this.giveBack()
    else this.socket = socket
    return body
  }

  written(): void {
    if (!this.over) this.sink.written?.()
  }

  received(reader: ResponseReader, body: Buffer | undefined, unread: number): void {
    this.unread = unread
    // A complete response needs no flow control, and its socket may serve the next request already.
    this.complete = reader.complete
    if (reader.complete) this.giveBack()
    if (this.status === 0 && reader.status > 0) this.begin(reader)
    if (body !== undefined) this.take(body)
    else if (unread > 0 && !this.over) this.fits(0)
    if (reader.complete) this.ended()
  }

  private begin(reader: ResponseReader): void {
    const { status, challenge, contentEncoding = 'identity', contentType = '', sessionId } = reader
    this.status = status
    this.challenge = challenge
    if (status > 299 || this.statusOnly) return
    // The request asked for identity. Compressed content could be a decompression bomb.
    if (contentEncoding !== 'identity') return this.giveUp('it is compressed although identity was asked for')
    const type = contentType.split(';', 1)[0]?.trim().toLowerCase()
    this.json = type === 'application/json'
    const streamed = type === 'text/event-stream'
    this.sink.begin?.(sessionId, streamed)
    if (streamed) this.reader = new SseReader(this.maxBytes, this.sink, (values) => this.incoming.reserveValues(values))
  }

  pause(): void {
    if (!this.complete) this.socket?.pause()
  }

  /** Reads on, unless the request has ended: its socket may serve another request then. */
  resume(): void {
    if (!this.complete) this.socket?.resume()
  }

  destroy({ message }: Error): void {
    this.giveUp(`the gateway could not read it: ${message}`)
  }

  private do(steps: Steps, size: number): void {
    ;(this.work ??= new StepQueue(this, this.owner)).push(steps, size)
  }

  private *readEvents(reader: SseReader, chunk: Buffer): Steps {
    if (!this.fits(chunk.length)) return
    try {
      yield* reader.push(chunk)
      if (!this.over) this.fits(0)
    } catch (error) {
      this.giveUp((error as Error).message)
    }
  }

  private *readBody(bytes: Buffer): Steps {
    let value: unknown
    try {
      value = yield* decodeSteps(bytes, (values) => this.incoming.reserveValues(values))
    } catch (error) {
      return this.end({ kind: 'garbled', reason: `its body ${(error as Error).message}` })
    }
    this.sink.message(value)
  }

  private take(chunk: Buffer): void {
    if (this.over) return
    if (this.reader !== undefined) return this.do(this.readEvents(this.reader, chunk), this.reader.held + chunk.length)
    if (!this.fits(chunk.length)) return
    const bytes = (this.bytes ??= new ByteChunks())
    bytes.add(chunk)
    const refused = this.status > 299
    if (bytes.size <= (refused || this.statusOnly ? maxRefusalBytes : this.maxBytes)) return
    if (refused) this.end(refusal(this.status, this.challenge, undefined))
    else if (this.statusOnly) this.end({ kind: 'answered', status: this.status, streamed: false })
    else return this.giveUp(`it is larger than ${this.maxBytes} bytes`)
    this.leave()
  }

  private ended(): void {
    const { status, bytes, challenge } = this
    if (this.over) return
    if (status > 299) return this.end(refusal(status, challenge, bytes?.take()))
    if (this.reader !== undefined) return this.finish({ kind: 'answered', status, streamed: true })
    if (bytes !== undefined && bytes.size > 0 && status !== 202 && status !== 204 && !this.statusOnly) {
      const reason = 'its Content-Type is neither application/json nor text/event-stream'
      if (!this.json) return this.end({ kind: 'garbled', reason })
      const { size } = bytes
      const steps = this.readBody(bytes.takeAll())
      // Most responses are short and are read at once.
      if (size <= smallSize) finished(steps)
      else this.do(steps, size)
    }
    this.finish({ kind: 'answered', status, streamed: false })
  }

  failed(cause: Error): void {
    const { status } = this
    this.giveBack()
    this.complete = true
    if (this.over) return
    if (this.socket === undefined) return this.end({ kind: 'unsent', cause })
    // Before the status line, a syntax error means that this is no HTTP; later, that the response was cut.
    if (status === 0 && cause instanceof ResponseSyntaxError)
      return this.end({ kind: 'garbled', reason: `it is not HTTP: ${cause.message}` })
    // The response broke after its status line, which says already that the request was refused.
    if (status > 299) return this.end(refusal(status, this.challenge, undefined))
    if (status > 0 && this.statusOnly) return this.end({ kind: 'answered', status, streamed: false })
    this.finish({ kind: 'broken', cause })
  }
}
