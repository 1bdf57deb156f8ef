// Checks session ids, and makes the error of a call whose session the server forgot while no new one could be begun
// (2025-11-25 basic/transports "Session Management").

import { GatewayError } from '../../../protocol/messages.ts'
import { upstreamError } from '../../rpc/errors.ts'
import type { UpstreamDefinition } from '../../../config/snapshot.ts'

/** Visible ASCII only (2025-11-25 basic/transports "Session Management" 1). */
export const isSessionId = (id: string | undefined): id is string =>
  id !== undefined && /^[\x21-\x7e]{1,4096}$/.test(id)

/** @throws GatewayError upstream_protocol */
export function checkId(name: UpstreamDefinition['name'], id: string | undefined): void {
  if (id === undefined || isSessionId(id)) return
  throw upstreamError(name, 'upstream_protocol', `Upstream ${name} issued a session id that is not visible ASCII.`)
}

/** The error of a call that waits for the new session: the 404 proves that the call was not executed. */
export function notBegunAgain(name: UpstreamDefinition['name'], late: string, cause: unknown): GatewayError {
  const why = `it did not start a new one${late === '' ? reasonIn(cause) : late}`
  const text = `Upstream ${name} forgot its session (HTTP 404), and ${why}; the request was not executed.`
  return upstreamError(name, 'upstream_unavailable', text, cause)
}

/** The error of a call that the server refused from this process, or for which no gateway process has a session. */
export function notKnownHere(name: UpstreamDefinition['name'], cause: unknown): GatewayError {
  const text = `Upstream ${name} refused the session of this request (HTTP 404); the request was not executed. Retry.`
  return upstreamError(name, 'upstream_unavailable', text, cause)
}

/** Why the handshake failed, without "outcome unknown": that concerns the handshake and not the call. */
const reasonIn = (cause: unknown): string =>
  cause instanceof GatewayError && cause.data['outcome'] === undefined ? ` (${cause.message.replace(/\.$/, '')})` : ''
