// The answer to one POST: a single JSON object while nothing was streamed, a stream from the first message on.

import type { ServerResponse } from 'node:http'
import { errorMessage } from '../protocol/messages.ts'
import type { RequestId } from '../protocol/messages.ts'
import { GatewayError, errorObject } from '../protocol/errors.ts'
import type { Accepts } from './accept.ts'
import { eventStream, streamHeaders } from './stream.ts'
import type { EventStream } from './stream.ts'

export type Headers = Readonly<Record<string, string>>

export interface Reply {
  /** Streams a message ahead of the result; without effect where the caller takes only JSON. Never throws. */
  push (message: unknown): void
  /** Keeps proxies from cutting a quiet connection. Starts the stream. */
  beat (): void
  /** The last message. */
  end (message: unknown): void
  /** No message at all: the caller cancelled and expects none. */
  endSilently (): void
  readonly streaming: boolean
}

/** @param headers sent with whatever the answer becomes */
export function createReply (raw: ServerResponse, accepts: Accepts, headers: Headers): Reply {
  let stream: EventStream | undefined
  const start = (): EventStream | undefined => {
    if (stream === undefined && accepts.stream && !raw.headersSent && !raw.destroyed) {
      raw.writeHead(200, { ...headers, ...streamHeaders })
      stream = eventStream(raw, () => {})
    }
    return stream
  }
  return {
    push: (message) => start()?.send(message),
    beat: () => start()?.comment('keep-alive'),
    end (message) {
      if (raw.destroyed || raw.writableEnded) return
      if (stream === undefined && accepts.json) return sendJson(raw, 200, message, headers)
      start()?.send(message)
      stream?.end()
      giveUpUnread(raw)
    },
    endSilently () {
      // A request is answered by JSON or a stream (2025-11-25 basic/transports), so by an empty stream where there is nothing to say.
      if (start() !== undefined) stream?.end()
      else if (!raw.headersSent && !raw.destroyed) raw.writeHead(202, { ...headers, 'Content-Length': 0 }).end()
    },
    get streaming () { return stream !== undefined }
  }
}

export function sendJson (raw: ServerResponse, status: number, body: unknown, headers: Headers = {}): void {
  if (raw.destroyed || raw.headersSent) return
  const text = JSON.stringify(body)
  raw.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff'
  })
  raw.end(text)
  giveUpUnread(raw)
}

const unreadBytes = 65_536
// Node sees progress where what is queued is not what it was when it was written, so the first of these may pass in vain.
const unreadMs = 15_000

/** A caller that asks for large answers and does not read them would keep them in memory for as long as it likes. */
function giveUpUnread (raw: ServerResponse): void {
  // The time begins again with every bit of progress.
  if (raw.writableLength > unreadBytes) raw.setTimeout(unreadMs, () => raw.destroy())
}

/**
 * A refusal of the whole HTTP request: status and headers of the error's row, an error object as body. Without a readable id the body
 * has none (2025-11-25 schema: `id` is left out), and the status says what an ordinary answer could not.
 */
export function sendError (raw: ServerResponse, error: unknown, requestId: string, headers: Headers, id?: RequestId): void {
  const ours = error instanceof GatewayError
  const status = ours ? error.row.status : 500
  const retry: Record<string, string> = ours && error.row.retry && status >= 429 ? { 'Retry-After': '1' } : {}
  sendJson(raw, status === 200 && id === undefined ? 400 : status, errorMessage(id, errorObject(error, requestId)), { ...headers, ...retry, ...(ours ? error.headers : {}) })
}
