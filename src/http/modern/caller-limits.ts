// How much one caller of 2026-07-28 has open at once. There are no sessions to count by, so requests are counted by
// principal; the count of a caller goes with its last answer.

import type { ServerResponse } from 'node:http'
import { refuseBacklog, refuseCall } from '../backpressure.ts'
import type { RequestContext } from '../request-context.ts'

export interface CallerLimits {
  /** Counts a request until its answer has left. @throws GatewayError too_many */
  admit(context: RequestContext): void
}

export function createCallerLimits(): CallerLimits {
  const answersOf = new Map<string, Set<ServerResponse>>()
  return {
    admit({ tenant, principal: { issuer, subject, clientId }, snapshot: { limits }, raw }) {
      const key = JSON.stringify([tenant.id, issuer, subject, clientId])
      const answers = answersOf.get(key) ?? new Set()
      refuseCall(answers.size, limits.callsPerSession, 'caller')
      let backlogBytes = 0
      for (const answer of answers) backlogBytes += answer.writableLength
      refuseBacklog(backlogBytes, 'caller')
      answersOf.set(key, answers.add(raw))
      // Until an answer is read, it is in memory: the result alone does not end the count.
      raw.once('close', () => {
        answers.delete(raw)
        if (answers.size === 0) answersOf.delete(key)
      })
    }
  }
}
