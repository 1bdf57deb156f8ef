// Whole replies: a JSON body, an acceptance without a body, a refusal.

import type { ServerResponse } from 'node:http'
import { errorMessage, errorObject, GatewayError, isObject, isRequestId, type RequestId } from '../protocol/messages.ts'
import { closeIfStalled } from './backpressure.ts'

export type ReplyHeaders = Readonly<Record<string, string>>

export function sendJson(raw: ServerResponse, status: number, body: unknown, headers: ReplyHeaders = {}): void {
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
  closeIfStalled(raw)
}

/** 2025-11-25 basic/transports: 202 without a body for what this response does not answer. */
export function sendAccepted(raw: ServerResponse, headers: ReplyHeaders): void {
  raw.writeHead(202, { ...headers, 'Content-Length': 0 }).end()
}

/**
 * A refusal of the whole HTTP request: status and headers of the error's row, an error object as body. Without a
 * readable id the body has none (2025-11-25 schema: `id` is left out), and the status says what an ordinary answer
 * could not.
 */
export function sendError(
  raw: ServerResponse,
  error: unknown,
  requestId: string,
  headers: ReplyHeaders,
  id: RequestId | undefined
): void {
  const ours = error instanceof GatewayError
  const status = ours ? error.row.status : 500
  const retry: Record<string, string> = ours && error.row.retry && status >= 429 ? { 'Retry-After': '1' } : {}
  sendJson(raw, status === 200 && id === undefined ? 400 : status, errorMessage(id, errorObject(error, requestId)), {
    ...headers,
    ...retry,
    ...(ours ? error.headers : {})
  })
}

/** The id of the request in a body, if it is one. */
export function idOf(body: unknown): RequestId | undefined {
  return isObject(body) && isRequestId(body['id']) && typeof body['method'] === 'string' ? body['id'] : undefined
}

/** For requests that come while the gateway stops. */
export const stopping = (): GatewayError =>
  new GatewayError('shutting_down', 'The gateway is stopping. Retry: another process will answer.', {
    headers: { Connection: 'close' }
  })
