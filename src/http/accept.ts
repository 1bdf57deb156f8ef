// Content-Type of what comes in and Accept for what goes out (2025-11-25 basic/transports "Sending Messages to the
// Server").

import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../protocol/messages.ts'

/**
 * Formats that the caller takes. Leniency is for `*` and for a missing header: clients forget it, and curl sends the
 * first.
 */
export interface Accepts {
  readonly json: boolean
  readonly stream: boolean
}

// Only JSON makes browsers ask first (CORS preflight), and only one charset can mean only one thing.
const jsonType = /^application\/json *(?:; *charset="?utf-8"? *)?$/i

/** @throws GatewayError unsupported_media_type */
export function checkContent(headers: IncomingHttpHeaders): void {
  if (headers['content-encoding'] !== undefined) {
    throw new GatewayError(
      'unsupported_media_type',
      'Compressed bodies are not accepted; send the body without Content-Encoding.'
    )
  }
  if (!jsonType.test(headers['content-type'] ?? '')) {
    throw new GatewayError(
      'unsupported_media_type',
      'The body must be sent with Content-Type: application/json (UTF-8).'
    )
  }
}

/** What the SDKs send, so that nearly every request is spared the reading. */
const usual = 'application/json, text/event-stream'

export function readAccept(header: string | undefined): Accepts {
  if (header === undefined || header === usual || header.trim() === '') return { json: true, stream: true }
  let json = false
  let stream = false
  for (const part of header.split(',')) {
    const [type = '', ...params] = part.split(';').map((text) => text.trim().toLowerCase())
    if (params.some((param) => /^q=0(\.0*)?$/.test(param))) continue
    if (type === '*/*') json = stream = true
    else if (type === 'application/json' || type === 'application/*') json = true
    else if (type === 'text/event-stream' || type === 'text/*') stream = true
  }
  return { json, stream }
}

/** @throws GatewayError not_acceptable where the caller takes neither format */
export function formatsOf({ accept }: IncomingHttpHeaders): Accepts {
  const accepts = readAccept(accept)
  if (accepts.json || accepts.stream) return accepts
  throw new GatewayError('not_acceptable', 'The answer is application/json or text/event-stream; allow both in Accept.')
}

/** @throws GatewayError not_acceptable where the caller of a GET takes no stream */
export function checkTakesStream({ accept }: IncomingHttpHeaders): void {
  if (readAccept(accept).stream) return
  throw new GatewayError('not_acceptable', 'GET opens the stream of a session; it needs Accept: text/event-stream.')
}
