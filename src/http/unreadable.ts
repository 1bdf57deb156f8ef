// What Node could not read as a request of HTTP/1.1, or Fastify as one of its routes: what is said of it.

import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { errorMessage, errorObject, GatewayError, isObject } from '../protocol/messages.ts'
import { notJson } from './headers.ts'

/** On the bare socket: there is no response to write to. */
export function sendUnreadable(socket: Socket, error: NodeJS.ErrnoException, maxHeaderBytes: number): void {
  // Reset by the client: nobody is there to read.
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const refusal = unreadable(error.code, maxHeaderBytes)
  const { status } = refusal.row
  const text = JSON.stringify(errorMessage(null, errorObject(refusal, '')))
  if (socket.writable)
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`
    )
  // The answer to a request before it may still be held back, to go out with more.
  while (socket.writableCorked > 0) socket.uncork()
  socket.destroy(error)
}

function unreadable(code: string | undefined, maxHeaderBytes: number): GatewayError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new GatewayError(
      'headers_too_large',
      `The headers of the request are larger than ${maxHeaderBytes / 1024} KiB together. Send fewer or shorter ones.`
    )
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new GatewayError('request_timeout', 'The request did not arrive in time. Send it again, at once and whole.')
  return new GatewayError('invalid_request', 'What was sent is not a request of HTTP/1.1. Correct the client.')
}

/** Fastify's own errors in our words; any other error as it is. */
export function translateFastifyError(error: unknown): unknown {
  switch (isObject(error) ? error['code'] : undefined) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new GatewayError('too_large', 'The body is larger than limits.bodyBytes allows.', {
        headers: { Connection: 'close' }
      })
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return notJson()
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return new GatewayError('invalid_request', 'The body does not have the length that Content-Length says.')
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new GatewayError('not_found', 'The path of the URL cannot be read.')
    default:
      return error
  }
}
