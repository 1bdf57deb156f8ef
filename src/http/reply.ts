// The answer to one POST: a single JSON object while nothing was streamed, a stream from the first message on.

import type { ServerResponse } from 'node:http'
import { errorMessage, isObject, isRequestId } from '../protocol/messages.ts'
import type { RequestId } from '../protocol/messages.ts'
import { GatewayError, errorObject } from '../protocol/errors.ts'
import type { Accepts } from './accept.ts'
import type { ClientStream } from '../session/stream.ts'
import { eventSink, giveUpUnread, streamHeaders } from './stream.ts'
import type { EventSink } from './stream.ts'

export type Headers = Readonly<Record<string, string>>

export interface Reply {
  /** Streams a message ahead of the result. @returns false where the caller takes only JSON, has gone before the stream began, or has its result. Never throws */
  push (message: unknown): boolean
  /** Keeps proxies from cutting a quiet connection. Starts the stream. */
  beat (): void
  /** The last message. */
  end (message: unknown): void
  /** No message at all: the caller cancelled and expects none. */
  endSilently (): void
  /** What its connection still has to take, in bytes (characters count as one). */
  unread (): number
}

export interface ReplyOptions {
  readonly raw: ServerResponse
  readonly accepts: Accepts
  /** Sent with whatever the answer becomes. */
  readonly headers: Headers
  /** The stream that the answer becomes, where it becomes one. It outlives the connection. */
  openStream (): ClientStream
  /** The caller fell too far behind; its connection is gone, its stream is not. */
  readonly onOverflow: () => void
  /** Closes the connection after so long, for a client that can to come back. 0: never. */
  readonly pauseMs: number
}

export function createReply ({ raw, accepts, headers, openStream, onOverflow, pauseMs }: ReplyOptions): Reply {
  let stream: ClientStream | undefined
  let sink: EventSink | undefined
  let ended = false

  const start = (): ClientStream | undefined => {
    if (stream !== undefined || !accepts.stream || raw.headersSent || raw.destroyed) return stream
    raw.writeHead(200, { ...headers, ...streamHeaders })
    stream = openStream()
    sink = eventSink(raw, onOverflow)
    const { detach, pause } = stream.attach(sink)
    stream.prime()
    const late = pauseMs > 0 ? setTimeout(pause, pauseMs) : undefined
    raw.once('close', () => {
      clearTimeout(late)
      detach()
    })
    return stream
  }

  return {
    push (message) {
      if (ended) return false
      const opened = start()
      opened?.send(message)
      return opened !== undefined
    },
    beat () {
      if (ended) return
      start()
      sink?.comment('keep-alive')
    },
    end (message) {
      ended = true
      if (stream === undefined && (raw.destroyed || accepts.json)) return sendJson(raw, 200, message, headers)
      const opened = start()
      opened?.send(message)
      opened?.finish()
    },
    endSilently () {
      ended = true
      // A request is answered by JSON or a stream (2025-11-25 basic/transports), so by an empty stream where there is nothing to say.
      const opened = start()
      if (opened !== undefined) opened.finish()
      else if (!raw.headersSent && !raw.destroyed) raw.writeHead(202, { ...headers, 'Content-Length': 0 }).end()
    },
    unread: () => raw.destroyed ? 0 : raw.writableLength + (stream?.behind ?? 0)
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

/** 2025-11-25 basic/transports: 202 without a body for what this response does not answer. */
export function sendAccepted (raw: ServerResponse, headers: Headers): void {
  raw.writeHead(202, { ...headers, 'Content-Length': 0 }).end()
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

/** The id of what a body asks, for an answer that is none to it. */
export function idOf (body: unknown): RequestId | undefined {
  return isObject(body) && isRequestId(body['id']) && typeof body['method'] === 'string' ? body['id'] : undefined
}
