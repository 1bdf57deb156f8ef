// Reading of Server-Sent Events that carry JSON-RPC messages (WHATWG HTML 9.2; 2025-11-25 basic/transports). Bounded memory.

import { createParser } from 'eventsource-parser'
import { decodeJsonText } from './decode.ts'

export interface EventSink {
  /** One decoded JSON value. */
  message (value: unknown): void
  /** An event id: what `Last-Event-ID` resumes from. */
  id (id: string): void
  /** How long to wait before connecting again, in ms. */
  retry (ms: number): void
}

export interface EventReader {
  /** @throws SyntaxError invalid UTF-8, an event that is no JSON, or one above the limit */
  push (chunk: Buffer): void
}

export function createEventReader (maxBytes: number, sink: EventSink): EventReader {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let fault: SyntaxError | undefined
  const parser = createParser({
    maxBufferSize: maxBytes,
    onEvent ({ event, data }) {
      // The priming event has an id and no data. Other event types are not ours (`endpoint` is the oldest transport's).
      if (fault !== undefined || data === '' || (event !== undefined && event !== 'message')) return
      try {
        sink.message(decodeJsonText(data))
      } catch (error) {
        fault = new SyntaxError(`an event is ${(error as Error).message}`)
      }
    },
    onId: (id) => { if (id !== '') sink.id(id) },
    onRetry: sink.retry,
    onError (error) {
      // Unknown fields and odd retry values are skipped, as the standard says.
      if (error.type === 'max-buffer-size-exceeded') fault = new SyntaxError(`an event is larger than ${maxBytes} bytes`)
    }
  })
  return {
    push (chunk) {
      let text: string
      try {
        text = decoder.decode(chunk, { stream: true })
      } catch {
        throw new SyntaxError('not valid UTF-8')
      }
      parser.feed(text)
      if (fault !== undefined) throw fault
    }
  }
}
