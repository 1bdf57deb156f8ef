// Server-sent events out. A reader that does not read costs at most `maxQueuedBytes`, then its connection is closed:
// Node would queue without end.

import type { ServerResponse } from 'node:http'
import type { Sink } from '../session/stream.ts'
import { closeIfStalled, stalledMs } from './backpressure.ts'

export const sseHeaders: Readonly<Record<string, string>> = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no', // nginx would hold progress back until the result is there
  'X-Content-Type-Options': 'nosniff'
}

export const maxQueuedBytes = 1024 * 1024

/** How long a client waits before it comes back for a stream that was cut, in milliseconds. */
const usualRetryMs = 1_000

export interface SseWriter extends Sink {
  /** An event from which nothing can be resumed. `data` has no line breaks. @returns as `event` */
  eventWithoutId(name: string, data: string): boolean
  /** Keeps proxies from cutting a quiet connection. */
  beat(): void
  comment(text: string): void
  readonly open: boolean
}

/** @param onOverflow the reader fell too far behind; the connection is gone */
export function createSseWriter(raw: ServerResponse, onOverflow: () => void): SseWriter {
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
    write(
      data === undefined ? `id: ${id}\nretry: ${retryMs}\ndata:\n\n` : `event: message\nid: ${id}\ndata: ${data}\n\n`
    )
  const comment = (text: string): void => {
    // A backlog keeps the connection alive as well.
    if (!raw.writableNeedDrain) write(`: ${text}\n\n`)
  }
  const end = (): void => {
    if (!open()) return
    raw.end()
    closeIfStalled(raw)
  }
  return {
    event: (id, data) => event(id, data),
    drained: () =>
      new Promise((resolve) => {
        if (!open() || !raw.writableNeedDrain) return resolve()
        const done = (): void => {
          raw.off('drain', done).off('close', done).off('timeout', overflow)
          raw.setTimeout(0)
          resolve()
        }
        raw.once('drain', done).once('close', done).once('timeout', overflow)
        raw.setTimeout(stalledMs)
      }),
    overflow,
    eventWithoutId: (name, data) => write(`event: ${name}\ndata: ${data}\n\n`),
    comment,
    beat: () => comment('keep-alive'),
    pause(id, retryMs) {
      event(id, undefined, retryMs)
      end()
    },
    end,
    get open() {
      return open()
    }
  }
}
