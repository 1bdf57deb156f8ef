// The calls that run in this process: so many for one session, one person and one tenant, and each id once in a
// session.

import { createQuota } from '../limits/limits.ts'
import { GatewayError, type Message, type RequestId } from '../protocol/messages.ts'
import type { LiveSession } from '../session/live-sessions.ts'
import type { CallContext } from './admission.ts'

export type CallsInFlight = ReturnType<typeof createCallsInFlight>

export function createCallsInFlight() {
  const quota = createQuota()
  return {
    /** For the drain. */
    running: new Set<AbortController>(),
    /**
     * Counts one more.
     * @returns ends it; idempotent
     * @throws GatewayError too_many
     */
    enter({ tenant, person, snapshot: { limits } }: CallContext): () => void {
      const { callsPerPrincipal, callsPerTenant } = limits
      const leave = quota.take(1, [
        [person, callsPerPrincipal],
        [`tenant ${tenant.id}`, callsPerTenant]
      ])
      if (leave !== undefined) return leave
      throw new GatewayError(
        'too_many',
        `${callsPerPrincipal} requests of this caller (limits.callsPerPrincipal) or ${callsPerTenant} of its tenant ` +
          '(limits.callsPerTenant) are in flight, which is the limit. Wait for answers before sending more.'
      )
    }
  }
}

/** @throws GatewayError too_many */
export function refuseCall(callsInFlight: number, maxCalls: number, whose: 'session' | 'caller'): void {
  if (callsInFlight < maxCalls) return
  throw new GatewayError(
    'too_many',
    `More than ${maxCalls} requests of this ${whose} are in flight (limits.callsPerSession). ` +
      'Wait for answers before sending more.'
  )
}

/**
 * JSON-RPC tells answers apart by their ids alone: with two of one id in flight, one gets the answer, or the
 * cancellation, of the other (2025-11-25 basic "Requests": an id MUST NOT have been used before in the session).
 * @throws GatewayError invalid_request
 */
export function refuseIdsInFlight(
  { calls }: LiveSession,
  messages: ReadonlyArray<Message | { readonly kind: 'invalid' }>
): void {
  const ids = new Set<RequestId>()
  for (const { id } of calls) ids.add(id)
  for (const message of messages) {
    if (message.kind !== 'request') continue
    if (ids.has(message.id))
      throw new GatewayError(
        'invalid_request',
        'A request with this id is in flight in this session. Wait for its answer, or send another id.'
      )
    ids.add(message.id)
  }
}
