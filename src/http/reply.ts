// What goes out on a response: whole replies and server-sent events.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { nodeHttp } from '../limits/node-http.ts'
import type { Log } from '../observe/log.ts'
import { type JsonText, stringOf } from '../protocol/json-text.ts'
import { errorMessage, GatewayError, isObject, isRequestId, type RequestId } from '../protocol/messages.ts'
import { errorObject } from '../protocol/translate/error-object.ts'
import type { Sink } from '../session/stream.ts'
import { closeIfSlow, closeIfStalled, stalledMs } from './backlog.ts'

export type ReplyHeaders = Readonly<Record<string, string>>

/**
 * The header of every answer with the id of the request: a report of a failure can name the line of the log that
 * explains it.
 */
export const requestIdHeader = 'X-Request-Id'

/** A request as its handlers see it: Node's, or one that was read from its socket (direct/). Its body comes apart. */
export type ClientRequest = Readonly<
  Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'socket' | 'httpVersionMajor' | 'complete' | 'errored'>
> & { readonly rawHeaders: readonly string[] }

type ReplyEvent = 'close' | 'drain' | 'finish' | 'timeout'

/** The reply to a request: as much of Node's response as handlers use. */
export interface ClientReply {
  readonly req: ClientRequest
  readonly headersSent: boolean
  readonly statusCode: number
  readonly destroyed: boolean
  readonly writableEnded: boolean
  /** Bytes that were written and that the system has not taken. */
  readonly writableLength: number
  readonly writableNeedDrain: boolean
  shouldKeepAlive: boolean
  /** The process that has the session of the request, where that is another one: the connection may go there. */
  home?: string | undefined
  writeHead(status: number, headers: Readonly<Record<string, string | number>>): { end(text?: string): unknown }
  /** @returns false where more should wait for `drain` */
  write(data: string | Uint8Array): boolean
  /** Holds what is written until `uncork`, so that it is sent together. */
  cork(): void
  uncork(): void
  end(text?: string): unknown
  setTimeout(ms: number, onTimeout?: () => void): unknown
  destroy(): unknown
  once(event: ReplyEvent, listener: () => void): ClientReply
  off(event: ReplyEvent, listener: () => void): ClientReply
}

export function sendJson(raw: ClientReply, status: number, body: unknown, headers: ReplyHeaders = {}): void {
  sendText(raw, status, JSON.stringify(body), headers)
}

/** @param text of JSON */
export function sendText(raw: ClientReply, status: number, text: JsonText, headers: ReplyHeaders = {}): void {
  if (raw.destroyed || raw.headersSent) return
  raw.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json',
    'Content-Length': typeof text === 'string' ? Buffer.byteLength(text) : text.length,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff'
  })
  // 413: what still comes is too much.
  if (
    headers['Connection'] === 'close' &&
    status !== 413 &&
    raw instanceof nodeHttp.ServerResponse &&
    !raw.req.complete
  )
    return endAfterRequest(raw, stringOf(text))
  if (typeof text === 'string') raw.end(text)
  else {
    // One system call.
    raw.cork()
    for (const part of text.parts) raw.write(part)
    raw.end()
    raw.uncork()
  }
  closeIfStalled(raw)
}

/** The longest pause of a refused client in what it still sends. */
const refusedBodyMs = 2_000
/** The most bytes of it that are read. */
const maxRefusedBytes = 4 * 1024 * 1024

/**
 * The answer goes out at once, but the connection is closed only when the request was read, and thrown away: one that
 * is closed over unread input is reset, and its client may never see the answer (RFC 9112 section 9.6).
 */
function endAfterRequest(raw: ServerResponse, text: string): void {
  const { req } = raw
  const end = (): void => {
    raw.end()
  }
  raw.write(text)
  raw.setTimeout(refusedBodyMs, () => raw.destroy())
  let bytes = 0
  req.once('end', end).once('close', end)
  req.on('data', (chunk: Buffer) => {
    if ((bytes += chunk.length) > maxRefusedBytes) raw.destroy()
  })
}

/** 2025-11-25 basic/transports: 202 without a body for what this response does not answer. */
export function sendAccepted(raw: ClientReply, headers: ReplyHeaders): void {
  raw.writeHead(202, { ...headers, 'Content-Length': 0 }).end()
}

/** Null: the body was not parsed. Undefined: it is no request. */
export type ReadId = RequestId | null | undefined

/** A refusal of the whole HTTP request. Without a readable id, the status says what an ordinary answer could not. */
export function sendError(
  raw: ClientReply,
  error: unknown,
  requestId: string,
  headers: ReplyHeaders,
  id: ReadId
): void {
  const ours = error instanceof GatewayError
  const status = ours ? error.row.status : 500
  const retry: Record<string, string> = ours && error.row.retry && status >= 429 ? { 'Retry-After': '1' } : {}
  const isAnswer = typeof id === 'string' || typeof id === 'number'
  sendJson(raw, status === 200 && !isAnswer ? 400 : status, errorMessage(id, errorObject(error, requestId)), {
    ...headers,
    ...(requestId === '' ? {} : { [requestIdHeader]: requestId }),
    ...retry,
    ...(ours ? error.headers : {})
  })
}

/** Answers a request of which nobody has looked at more than the head. */
export type RefuseUnbegun = (reply: ClientReply, error: GatewayError) => void

/** The id of the request in a body, if it is one. */
export function idOf(body: unknown): RequestId | undefined {
  return isObject(body) && isRequestId(body['id']) && typeof body['method'] === 'string' ? body['id'] : undefined
}

/** Makes the error for requests that come while the gateway stops. */
export const stopping = (): GatewayError =>
  new GatewayError('shutting_down', 'The gateway is stopping. Retry: another process will answer.', {
    headers: { Connection: 'close' }
  })

export const sseHeaders: ReplyHeaders = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  'X-Accel-Buffering': 'no', // nginx would hold progress back until the result is there
  'X-Content-Type-Options': 'nosniff'
}

/** Beyond so much in Node's queue, which has no end of its own, a connection is closed. */
export const maxQueuedBytes = 1024 * 1024

/** The time after which a client comes back for a stream that was cut, in milliseconds. */
const usualRetryMs = 1_000

export type SseWriter = ReturnType<typeof createSseWriter>

export function createSseWriter(
  { raw, tenant, endpoint }: { raw: ClientReply; tenant: { id: string }; endpoint: { name: string } },
  log: Pick<Log, 'warn'>
) {
  const open = (): boolean => !raw.destroyed && !raw.writableEnded
  const write = (head: string, data: JsonText = ''): boolean => {
    if (!open()) return true
    // One message may be larger than the cap; what must not happen is that messages pile up behind it.
    if (raw.writableLength > maxQueuedBytes) {
      overflow()
      return true
    }
    if (typeof data === 'string') return raw.write(`${head}${data}\n\n`)
    raw.cork()
    raw.write(head)
    for (const part of data.parts) raw.write(part)
    const isFree = raw.write('\n\n')
    raw.uncork()
    return isFree
  }
  const overflow = (): void => {
    if (raw.destroyed) return
    raw.destroy()
    log.warn({ tenant: tenant.id, endpoint: endpoint.name }, 'a client did not read its stream; closed')
  }
  const event = (id: string, data: JsonText | undefined, retryMs = usualRetryMs): boolean =>
    data === undefined ? write(`id: ${id}\nretry: ${retryMs}\ndata:`) : write(`event: message\nid: ${id}\ndata: `, data)
  const comment = (text: string): void => {
    // A backlog keeps the connection alive as well.
    if (!raw.writableNeedDrain) write(`: ${text}`)
  }
  const end = (): void => {
    if (!open()) return
    raw.end()
    closeIfStalled(raw)
  }
  return {
    // JSON.stringify escapes every line break, so a message is always one `data:` line.
    event: (id, data) => event(id, data),
    drained: () =>
      new Promise((resolve) => {
        if (!open() || !raw.writableNeedDrain) return resolve()
        const done = (): void => {
          raw.off('drain', done).off('close', done).off('timeout', overflow)
          raw.setTimeout(0)
          inTime()
          resolve()
        }
        const inTime = closeIfSlow(raw, overflow)
        raw.once('drain', done).once('close', done).once('timeout', overflow)
        raw.setTimeout(stalledMs)
      }),
    overflow,
    /** A message, or another event, from which nothing can be resumed. @returns as `event` */
    eventWithoutId: (data: JsonText, name = 'message') => write(`event: ${name}\ndata: `, data),
    comment,
    /** Keeps proxies from cutting a quiet connection. */
    beat: () => comment('keep-alive'),
    pause(id, retryMs) {
      event(id, undefined, retryMs)
      end()
    },
    end,
    isOpen: open
  } satisfies Sink & Record<string, unknown>
}
