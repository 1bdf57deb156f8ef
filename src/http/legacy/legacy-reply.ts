// The answer to one POST of a session: a single JSON object while nothing was streamed, a stream from the first message
// on.

import type { ServerResponse } from 'node:http'
import type { Attachment, ClientStream } from '../../session/stream.ts'
import type { Clock } from '../../time/clock.ts'
import type { Accepts } from '../accept.ts'
import { sendJson, type ReplyHeaders } from '../reply.ts'
import { createSseWriter, sseHeaders, type SseWriter } from '../sse-writer.ts'

export interface LegacyReply {
  /**
   * Streams a message ahead of the result. Never throws.
   * @returns false where the caller takes only JSON, has gone before the stream began, or has its result
   */
  push(message: unknown): boolean
  /** Keeps proxies from cutting a quiet connection. Starts the stream. */
  beat(): void
  /** The last message. */
  end(message: unknown): void
  /** No message at all: the caller cancelled and expects none. */
  endSilently(): void
  /** What the caller has not read yet, in bytes (characters count as one). */
  backlogBytes(): number
}

export interface LegacyReplyOptions {
  readonly raw: ServerResponse
  readonly accepts: Accepts
  /** Sent with whatever the answer becomes. */
  readonly headers: ReplyHeaders
  /** Opens the stream that the answer becomes, where it becomes one. It outlives the connection. */
  openStream(): ClientStream
  /** The caller fell too far behind; its connection is gone, its stream is not. */
  readonly onOverflow: () => void
  /** See `pauseAfter`. */
  readonly pauseMs: number
  readonly clock: Clock
}

export function createLegacyReply(options: LegacyReplyOptions): LegacyReply {
  const { raw, accepts, headers } = options
  let stream: ClientStream | undefined
  let writer: SseWriter | undefined
  let ended = false

  const start = (): ClientStream | undefined => {
    if (stream !== undefined || !accepts.stream || raw.headersSent || raw.destroyed) return stream
    raw.writeHead(200, { ...headers, ...sseHeaders })
    stream = options.openStream()
    writer = createSseWriter(raw, options.onOverflow)
    const attachment = stream.attach(writer)
    stream.prime()
    pauseAfter(options.clock, options.pauseMs, raw, attachment)
    raw.once('close', () => attachment.detach())
    return stream
  }

  return {
    push(message) {
      if (ended) return false
      const opened = start()
      opened?.send(message)
      return opened !== undefined
    },
    beat() {
      if (ended) return
      start()
      writer?.beat()
    },
    end(message) {
      ended = true
      if (stream === undefined && (raw.destroyed || accepts.json)) return sendJson(raw, 200, message, headers)
      const opened = start()
      opened?.send(message)
      opened?.finish()
    },
    endSilently() {
      ended = true
      // A request is answered by JSON or a stream (2025-11-25 basic/transports), so by an empty stream where there is
      // no message.
      const opened = start()
      if (opened !== undefined) opened.finish()
      else if (!raw.headersSent && !raw.destroyed) raw.writeHead(202, { ...headers, 'Content-Length': 0 }).end()
    },
    backlogBytes: () => (raw.destroyed ? 0 : raw.writableLength + (stream?.pendingChars ?? 0))
  }
}

/** Closes the connection of a stream after so long, for a client that can to come back. 0: never. */
export function pauseAfter(clock: Clock, ms: number, raw: ServerResponse, attachment: Attachment): void {
  if (ms === 0) return
  const timer = clock.timer(ms, () => attachment.pause())
  raw.once('close', () => timer.close())
}
