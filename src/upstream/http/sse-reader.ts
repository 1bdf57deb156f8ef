// Reading of Server-Sent Events that carry JSON-RPC messages (WHATWG HTML 9.2; 2025-11-25 basic/transports), in steps.
// Bounded memory, and no end of patience with what is no message.

import { createParser, type EventSourceParser } from 'eventsource-parser'
import type { JsonLimits } from '../../protocol/json-scan.ts'
import { ownPart } from '../../protocol/own-text.ts'
import type { Steps } from '../../time/turns.ts'
import { decodeSteps } from '../rpc/decode-json.ts'

export interface SseSink {
  message(value: unknown): void
  /** An event id: what `Last-Event-ID` resumes from. */
  eventId?(id: string): void
  /** The time to wait before connecting again, in milliseconds. */
  retry?(ms: number): void
  /** The URI to post to, on a stream of the oldest transport (2024-11-05 basic/transports "HTTP with SSE"). */
  endpoint?(uri: string): void
  /** Takes an event that cannot be used, and the stream goes on for the others; without this, it is a fault. */
  unusable?(event: UnusableEvent): void
}

export interface UnusableEvent {
  readonly reason: string
  readonly oversized: boolean
  /** The beginning of its data, and its end. */
  readonly head: string
  readonly tail: string
}

/** The characters of an unusable event that are kept to find whose it was. */
const sampleLength = 256
/** A field's name, and some air: the parser itself must not give up on a line that was cut to the limit. */
const lineSlack = 64
/** Characters that the parser gets at once: it makes an Error, with its stack, of every line that it does not know. */
const feedLength = 1_024
/** Lines that are no field, and events that are no messages, beyond ten for each message. */
const maxUnusable = 1_000
const unusablePerMessage = 10
/** Lines without an empty one among them. The parser keeps a string of its own for each line of an event's data. */
const maxEventLines = 100_000
/** The longest event id, in characters: it goes back in a header, and few servers take longer ones. */
const maxIdLength = 8_192
/** Empty lines begin with the last of these. */
const emptyLines = ['\n\n', '\n\r', '\r\r']
const emptyLineBytes = emptyLines.map((line) => Buffer.from(line))

/** Where the last event ends that is whole; 0: none is. */
function eventsEnd(bytes: Buffer): number {
  const last = Math.max(...emptyLineBytes.map((line) => bytes.lastIndexOf(line)))
  return last === -1 ? 0 : last + 2
}

/** An event with data, as the parser found it. */
interface FoundEvent {
  readonly text: string
  /** The end of its data, where that was cut. */
  readonly lost: string | undefined
}

/**
 * One stream of events. A class, because there is one for each answer: of a generator function that is made anew, V8
 * makes a hidden class, which is old from the first and holds all that the function refers to.
 */
export class SseReader {
  /** Characters since the last empty line: of what was before it, nothing is kept. */
  held = 0
  private readonly maxBytes: number
  private readonly sink: SseSink
  private readonly reserve: JsonLimits['reserve']
  private readonly decoder = new TextDecoder('utf-8', { fatal: true })
  private readonly cutter: ReturnType<typeof createCutter> | undefined
  private readonly parser: EventSourceParser
  private fault: SyntaxError | undefined
  private unusable = 0
  private eventLines = 0
  /** The end of the text before: an empty line may be cut in two. */
  private end = ''
  /** Events that are to be read before the parser gets more. */
  private found: FoundEvent[] = []

  /** @param reserve see `JsonLimits` */
  constructor(maxBytes: number, sink: SseSink, reserve?: JsonLimits['reserve']) {
    this.maxBytes = maxBytes
    this.sink = sink
    this.reserve = reserve
    this.cutter = sink.unusable === undefined ? undefined : createCutter(maxBytes + lineSlack / 2)
    this.parser = createParser({
      maxBufferSize: this.cutter === undefined ? maxBytes : maxBytes + lineSlack,
      onEvent: ({ event, data }) => this.find(event, data),
      onId: (id) => {
        if (id.length > maxIdLength)
          this.fault ??= new SyntaxError(`the id of an event is longer than ${maxIdLength} characters`)
        // Whoever takes the id may keep it for long, but nothing of the text that it was cut from.
        else if (id !== '') sink.eventId?.(ownPart(id, 0, id.length))
      },
      onRetry: (ms) => sink.retry?.(ms),
      onError: (error) => {
        if (error.type === 'max-buffer-size-exceeded')
          this.fault ??= new SyntaxError(`an event is larger than ${maxBytes} bytes`)
        // Unknown fields and odd retry values are skipped, as the standard says.
        else this.countUnusable('lines that belong to no event')
      }
    })
  }

  /**
   * @throws SyntaxError invalid UTF-8; an event that is no JSON or above the limit, unless the sink takes it as
   * unusable; too many of these, or of lines that belong to no event; an id that could not be sent back
   */
  *push(chunk: Buffer): Steps {
    const end = this.held + chunk.length <= feedLength ? 0 : eventsEnd(chunk)
    // The beginning of the next event becomes a text of its own. The parser keeps slices of it, and a slice keeps all
    // of its text: here that of other events, and the long line that the parser has joined it to.
    const parts = end === 0 || end === chunk.length ? [chunk] : [chunk.subarray(0, end), chunk.subarray(end)]
    for (const [at, bytes] of parts.entries()) {
      const text = this.decoded(bytes)
      for (let from = 0; from < text.length; from += feedLength) {
        if (at + from > 0) yield
        const part = text.slice(from, from + feedLength)
        this.held += part.length
        if (this.cutter === undefined) this.feed(part)
        else this.cutter.cut(part, (line) => this.feed(line))
        if (this.found.length === 0) this.countLines(part)
        const events = this.found
        this.found = []
        for (const event of events) {
          yield* this.read(event)
          // The message may have been the last that was wanted.
          yield
        }
        if (this.fault !== undefined) throw this.fault
      }
    }
  }

  private decoded(bytes: Buffer): string {
    try {
      return this.decoder.decode(bytes, { stream: true })
    } catch {
      throw new SyntaxError('not valid UTF-8')
    }
  }

  private find(event: string | undefined, data: string): void {
    this.eventLines = 0
    this.held = 0
    const lost = this.cutter?.lost()
    // The priming event has an id and no data.
    if (data === '') return
    if (event === undefined || event === 'message') this.found.push({ text: data, lost })
    else if (event === 'endpoint') this.sink.endpoint?.(data)
  }

  private countUnusable(what: string): void {
    if (++this.unusable > maxUnusable) this.fault ??= new SyntaxError(`it holds more than ${maxUnusable} ${what}`)
  }

  private countLines(part: string): void {
    const text = this.end + part
    this.end = text.slice(-2)
    if (!part.includes('\n') && !part.includes('\r')) return
    const empty = Math.max(...emptyLines.map((line) => text.lastIndexOf(line)))
    if (empty === -1) this.eventLines += part.match(/\r\n?|\n/g)?.length ?? 0
    else {
      this.eventLines = 0
      this.held = text.length - empty
    }
    if (this.eventLines > maxEventLines) this.fault ??= new SyntaxError(`an event has more than ${maxEventLines} lines`)
  }

  private feed(text: string): void {
    // After a fault, the parser would throw an error of its own.
    if (this.fault === undefined) this.parser.feed(text)
  }

  private *read({ text, lost }: FoundEvent): Steps {
    const { sink } = this
    let reason = lost === undefined ? undefined : `an event is larger than ${this.maxBytes} bytes`
    let message: unknown
    if (reason === undefined) {
      try {
        message = yield* decodeSteps(text, this.reserve)
      } catch (error) {
        reason = `an event ${(error as Error).message}`
      }
    }
    if (reason === undefined) {
      this.unusable = Math.max(0, this.unusable - unusablePerMessage)
      return sink.message(message)
    }
    if (sink.unusable === undefined) throw new SyntaxError(reason)
    this.countUnusable('events that are no messages')
    sink.unusable({
      reason,
      oversized: lost !== undefined,
      head: text.slice(0, sampleLength),
      tail: `${text.slice(-sampleLength)}${lost ?? ''}`.slice(-sampleLength)
    })
  }
}

function createCutter(maxLength: number) {
  let length = 0
  let isData = false
  let lost: string | undefined

  return {
    /** Passes the text on, without what goes beyond the limit in a line. */
    cut(text: string, feed: (text: string) => void): void {
      if (length + text.length <= maxLength) {
        const lineStart = text.lastIndexOf('\n') + 1
        if (lineStart > 0) length = 0
        if (length === 0) isData = text[lineStart] === 'd'
        length += text.length - lineStart
        return feed(text)
      }
      for (let from = 0; from < text.length;) {
        const newline = text.indexOf('\n', from)
        const end = newline === -1 ? text.length : newline
        const room = Math.max(0, maxLength - length)
        if (length === 0) isData = text[from] === 'd'
        // A comment may be as long as it likes: nobody reads it.
        if (isData && end - from > room)
          lost = `${lost ?? ''}${text.slice(Math.max(from + room, end - sampleLength), end)}`.slice(-sampleLength)
        length += end - from
        feed(text.slice(from, Math.min(end, from + room)))
        if (newline === -1) return
        feed('\n')
        length = 0
        from = newline + 1
      }
    },
    /** Returns the end of the data that was cut last; undefined where none was since. */
    lost(): string | undefined {
      const tail = lost
      lost = undefined
      return tail
    }
  }
}
