// Server-sent events out. A reader that does not read costs at most the cap, then its stream is closed: Node would queue without end.

import type { ServerResponse } from 'node:http'

export const streamHeaders: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no', // nginx would hold progress back until the result is there
  'X-Content-Type-Options': 'nosniff'
}

export const maxQueuedBytes = 1024 * 1024

export interface EventStream {
  /** One message as one event. JSON.stringify escapes every line break, so the text is always one `data:` line. */
  send (message: unknown): void
  comment (text: string): void
  end (): void
  readonly open: boolean
}

/** @param onOverflow the reader fell too far behind; the connection is gone */
export function eventStream (raw: ServerResponse, onOverflow: () => void): EventStream {
  const write = (text: string): void => {
    if (raw.destroyed || raw.writableEnded) return
    // One message may be larger than the cap; what must not happen is that messages pile up behind it.
    if (raw.writableLength > maxQueuedBytes) {
      raw.destroy()
      onOverflow()
      return
    }
    raw.write(text)
  }
  return {
    send: (message) => write(`event: message\ndata: ${JSON.stringify(message)}\n\n`),
    comment: (text) => write(`: ${text}\n\n`),
    end () {
      if (!raw.destroyed && !raw.writableEnded) raw.end()
    },
    get open () { return !raw.destroyed && !raw.writableEnded }
  }
}

export interface KeepAlive {
  /** Calls `beat` about every interval. Returns how to stop. */
  add (beat: () => void): () => void
  close (): void
}

/** One timer for all streams, not one each. */
export function createKeepAlive (intervalMs: number): KeepAlive {
  const beats = new Set<() => void>()
  const timer = setInterval(() => {
    for (const beat of beats) beat()
  }, intervalMs)
  timer.unref()
  return {
    add (beat) {
      beats.add(beat)
      return () => { beats.delete(beat) }
    },
    close () {
      clearInterval(timer)
      beats.clear()
    }
  }
}
