// The id of a session, and what a call is told where there is no new session in place of a forgotten one (2025-11-25
// basic/transports "Session Management").

import { GatewayError } from '../../../protocol/messages.ts'
import { upstreamError } from '../../rpc/errors.ts'
import type { UpstreamDefinition } from '../../../config/snapshot.ts'

/** 2025-11-25 "Session Management" 1. */
export const isSessionId = (id: string | undefined): id is string =>
  id !== undefined && /^[\x21-\x7e]{1,4096}$/.test(id)

/** @throws GatewayError upstream_protocol */
export function checkId(name: UpstreamDefinition['name'], id: string | undefined): void {
  if (id === undefined || isSessionId(id)) return
  throw upstreamError(name, 'upstream_protocol', `Upstream ${name} issued a session id that is not visible ASCII.`)
}

/** The 404 proves that whatever waits for the new session was not executed, however the handshake ended. */
export function notBegunAgain(name: UpstreamDefinition['name'], late: string, cause: unknown): GatewayError {
  const why = `it did not start a new one${late === '' ? reasonIn(cause) : late}`
  const text = `Upstream ${name} forgot its session (HTTP 404), and ${why}; the request was not executed.`
  return upstreamError(name, 'upstream_unavailable', text, cause)
}

/** The server knows the session where another process calls it, or nobody has one there any more. */
export function notKnownHere(name: UpstreamDefinition['name'], cause: unknown): GatewayError {
  const text = `Upstream ${name} does not know the session of this request here (HTTP 404); it was not executed. Retry.`
  return upstreamError(name, 'upstream_unavailable', text, cause)
}

/** Of a refused handshake. One that broke says that its own outcome is unknown, which is not that of the call. */
const reasonIn = (cause: unknown): string =>
  cause instanceof GatewayError && cause.data['outcome'] === undefined ? ` (${cause.message.replace(/\.$/, '')})` : ''
