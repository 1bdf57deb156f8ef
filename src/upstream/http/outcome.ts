// How one HTTP request to an upstream ended.

import { isObject } from '../../protocol/messages.ts'
import { finished } from '../../protocol/json-steps.ts'
import { decodeSteps, printable } from '../rpc/decode-json.ts'
import type { HttpFailure } from '../rpc/errors.ts'

/** The bytes that are read of the body of a response other than 2xx: enough for its error message. */
export const maxRefusalBytes = 65_536

export type HttpOutcome =
  /** 2xx, read to its end. */
  { readonly kind: 'answered'; readonly status: number; readonly streamed: boolean } | HttpFailure

/** A 2xx answer without the response to the request. */
export const noResponse = (status: number): HttpOutcome & { kind: 'garbled' } => ({
  kind: 'garbled',
  reason: `it holds no response to the request (HTTP ${status})`
})

/** The outcome of a response other than 2xx. @param bytes its body; undefined: it was not read */
export function refusal(status: number, challenge: string | undefined, bytes: Buffer | undefined): HttpOutcome {
  let body: unknown
  try {
    if (bytes !== undefined) body = finished(decodeSteps(bytes))
  } catch {
    // The body is no JSON, perhaps an HTML page: only the status explains the refusal.
  }
  const error = isObject(body) ? body['error'] : undefined
  const message = isObject(error) ? error['message'] : undefined
  const detail = typeof message === 'string' ? printable(message, 200) : ''
  return { kind: 'refused', status, body, detail, challenge }
}
