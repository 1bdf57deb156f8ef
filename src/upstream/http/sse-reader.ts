// Reading of Server-Sent Events that carry JSON-RPC messages (WHATWG HTML 9.2; 2025-11-25 basic/transports). Bounded
// memory.

import { createParser } from 'eventsource-parser'
import { decodeJson } from '../rpc/decode-json.ts'

export interface SseSink {
  message(value: unknown): void
  /** An event id: what `Last-Event-ID` resumes from. */
  eventId?(id: string): void
  /** How long to wait before connecting again, in ms. */
  retry?(ms: number): void
  /** Where to post, on a stream of the oldest transport (2024-11-05 basic/transports "HTTP with SSE"). */
  endpoint?(uri: string): void
  /** Takes an event that cannot be used, and the stream goes on for the others; without this, it is a fault. */
  unusable?(event: UnusableEvent): void
}

export interface UnusableEvent {
  readonly reason: string
  readonly oversized: boolean
  /** How its data begins and ends. */
  readonly head: string
  readonly tail: string
}

export type SseReader = ReturnType<typeof createSseReader>

/** How much of an unusable event is kept to say whose it was. */
const sampleLength = 256
/** A field's name, and some air: the parser itself must not give up on a line that was cut to the limit. */
const lineSlack = 64

export function createSseReader(maxBytes: number, sink: SseSink) {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const cutter = sink.unusable === undefined ? undefined : createCutter(maxBytes + lineSlack / 2)
  let fault: SyntaxError | undefined

  function data(text: string): void {
    const lost = cutter?.lost()
    let reason = `an event is larger than ${maxBytes} bytes`
    if (lost === undefined) {
      try {
        return sink.message(decodeJson(text))
      } catch (error) {
        reason = `an event is ${(error as Error).message}`
      }
    }
    if (sink.unusable === undefined) fault = new SyntaxError(reason)
    else
      sink.unusable({
        reason,
        oversized: lost !== undefined,
        head: text.slice(0, sampleLength),
        tail: `${text.slice(-sampleLength)}${lost ?? ''}`.slice(-sampleLength)
      })
  }

  const parser = createParser({
    maxBufferSize: cutter === undefined ? maxBytes : maxBytes + lineSlack,
    onEvent(event) {
      // The priming event has an id and no data.
      if (fault !== undefined || event.data === '') return
      if (event.event === undefined || event.event === 'message') data(event.data)
      else if (event.event === 'endpoint') sink.endpoint?.(event.data)
    },
    onId: (id) => {
      if (id !== '') sink.eventId?.(id)
    },
    onRetry: (ms) => sink.retry?.(ms),
    onError(error) {
      // Unknown fields and odd retry values are skipped, as the standard says.
      if (error.type === 'max-buffer-size-exceeded')
        fault = new SyntaxError(`an event is larger than ${maxBytes} bytes`)
    }
  })
  return {
    /**
     * @throws SyntaxError invalid UTF-8; an event that is no JSON or above the limit, unless the sink takes it as
     * unusable
     */
    push(chunk: Buffer): void {
      let text: string
      try {
        text = decoder.decode(chunk, { stream: true })
      } catch {
        throw new SyntaxError('not valid UTF-8')
      }
      if (cutter === undefined) parser.feed(text)
      // After a fault, the parser would throw an error of its own.
      else
        cutter.cut(text, (piece) => {
          if (fault === undefined) parser.feed(piece)
        })
      if (fault !== undefined) throw fault
    }
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
    /** How the data ended that was cut last; undefined where none was since. */
    lost(): string | undefined {
      const tail = lost
      lost = undefined
      return tail
    }
  }
}
