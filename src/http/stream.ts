// Server-sent events out. A reader that does not read costs at most the cap, then its stream is closed: Node would queue without end.

import type { ServerResponse } from 'node:http'
import type { Sink } from '../session/stream.ts'
import { unreadBytes } from './unread.ts'

export const streamHeaders: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no', // nginx would hold progress back until the result is there
  'X-Content-Type-Options': 'nosniff'
}

export const maxQueuedBytes = 1024 * 1024

/** How long a client waits before it comes back for a stream that was cut, in milliseconds. */
const usualRetryMs = 1_000

export interface EventSink extends Sink {
  /** An event without an id: nothing can be resumed from it. `data` has no line breaks. @returns as `event` */
  plain (name: string, data: string): boolean
  comment (text: string): void
  readonly open: boolean
}

/** @param onOverflow the reader fell too far behind; the connection is gone */
export function eventSink (raw: ServerResponse, onOverflow: () => void): EventSink {
  const open = (): boolean => !raw.destroyed && !raw.writableEnded
  const write = (text: string): boolean => {
    if (!open()) return true
    // One message may be larger than the cap; what must not happen is that messages pile up behind it.
    if (raw.writableLength > maxQueuedBytes) {
      overflow()
      return true
    }
    return raw.write(text)
  }
  const overflow = (): void => {
    if (raw.destroyed) return
    raw.destroy()
    onOverflow()
  }
  // JSON.stringify escapes every line break, so a message is always one `data:` line.
  const event = (id: string, data: string | undefined, retryMs = usualRetryMs): boolean =>
    write(data === undefined ? `id: ${id}\nretry: ${retryMs}\ndata:\n\n` : `event: message\nid: ${id}\ndata: ${data}\n\n`)
  const end = (): void => {
    if (!open()) return
    raw.end()
    giveUpUnread(raw)
  }
  return {
    event: (id, data) => event(id, data),
    drained: () => new Promise((resolve) => {
      if (!open() || !raw.writableNeedDrain) return resolve()
      const done = (): void => {
        raw.off('drain', done).off('close', done).off('timeout', overflow)
        raw.setTimeout(0)
        resolve()
      }
      raw.once('drain', done).once('close', done).once('timeout', overflow)
      // The time begins again with every bit of progress.
      raw.setTimeout(unreadMs)
    }),
    overflow,
    plain: (name, data) => write(`event: ${name}\ndata: ${data}\n\n`),
    comment (text) {
      // What waits to be read keeps the connection alive as well.
      if (!raw.writableNeedDrain) write(`: ${text}\n\n`)
    },
    pause (id, retryMs) {
      event(id, undefined, retryMs)
      end()
    },
    end,
    get open () { return open() }
  }
}

// Node sees progress where what is queued is not what it was when it was written, so the first of these may pass in vain.
const unreadMs = 15_000

/** A caller that asks for large answers and does not read them would keep them in memory for as long as it likes. */
export function giveUpUnread (raw: ServerResponse): void {
  // The time begins again with every bit of progress.
  if (raw.writableLength > unreadBytes) raw.setTimeout(unreadMs, () => raw.destroy())
}

export interface KeepAlive {
  readonly intervalMs: number
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
    intervalMs,
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
