// The answer to one request of 2026-07-28: a single JSON object while no message comes before it, else a stream.
// Nothing of it can be resumed, so no event has an id, and a broken connection is the end of it.

import type { ServerResponse } from 'node:http'
import type { RequestId } from '../../protocol/messages.ts'
import type { Accepts } from '../accept.ts'
import { sendError, sendJson, type ReplyHeaders } from '../reply.ts'
import { createSseWriter, maxQueuedBytes, sseHeaders, type SseWriter } from '../sse-writer.ts'

export interface ModernReply {
  /**
   * Streams a message ahead of the last one.
   *
   * @returns false where the caller takes only JSON, has gone, has its answer, or does not keep up: it is not sent
   * then. Never throws
   */
  push(message: unknown): boolean
  /** Keeps proxies from cutting a quiet connection. Starts the stream. */
  beat(): void
  /** The last message. @param status of a JSON answer; a stream has had its own already */
  end(message: unknown, status?: number): void
  /** The last message is an error of ours. @param message the same as a message, for a stream */
  refuse(error: unknown, requestId: string, id: RequestId, message: unknown): void
  readonly started: boolean
}

export interface ModernReplyOptions {
  readonly raw: ServerResponse
  readonly accepts: Accepts
  /** Sent with whatever the answer becomes. */
  readonly headers: ReplyHeaders
  /** The reader fell too far behind; its connection is gone. */
  readonly onOverflow: () => void
}

export function createModernReply({ raw, accepts, headers, onOverflow }: ModernReplyOptions): ModernReply {
  let sink: SseWriter | undefined
  let ended = false
  /** What the connection cannot take yet: Node would queue without end. */
  const waiting: string[] = []
  let behind = 0
  let sending = false

  const start = (): SseWriter | undefined => {
    if (sink !== undefined || !accepts.stream || raw.headersSent || raw.destroyed) return sink
    raw.writeHead(200, { ...headers, ...sseHeaders })
    return (sink = createSseWriter(raw, onOverflow))
  }

  function send(to: SseWriter, message: unknown): void {
    const text = JSON.stringify(message)
    if (!sending && !raw.writableNeedDrain) return void to.eventWithoutId('message', text)
    waiting.push(text)
    behind += text.length
    if (!sending) void sendWaiting(to)
  }

  async function sendWaiting(to: SseWriter): Promise<void> {
    sending = true
    while (waiting.length > 0 && to.open) {
      await to.drained()
      const text = waiting.shift() ?? ''
      behind -= text.length
      to.eventWithoutId('message', text)
    }
    sending = false
    if (ended) to.end()
  }

  const end = (message: unknown, status = 200): void => {
    if (ended) return
    ended = true
    if (sink === undefined && (accepts.json || status !== 200)) return sendJson(raw, status, message, headers)
    const to = start()
    if (to === undefined) return
    send(to, message)
    if (!sending) to.end()
  }

  return {
    push(message) {
      if (ended || behind > maxQueuedBytes) return false
      const to = start()
      if (to?.open !== true) return false
      send(to, message)
      return true
    },
    beat() {
      if (!ended) start()?.comment('keep-alive')
    },
    end,
    refuse(error, requestId, id, message) {
      if (sink !== undefined) return end(message)
      ended = true
      sendError(raw, error, requestId, headers, id)
    },
    get started() {
      return sink !== undefined
    }
  }
}
