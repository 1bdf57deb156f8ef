// How much one caller of 2026-07-28 has open at once. There is no session to count by, so it is the principal; what is kept goes with its
// last answer.

import type { ServerResponse } from 'node:http'
import { GatewayError } from '../protocol/errors.ts'
import { maxUnreadBytes } from './unread.ts'
import type { Visit } from './visit.ts'

export interface Callers {
  /** Counts a request until its answer has left. @throws GatewayError too_many */
  enter (visit: Visit): void
  /** Callers that are counted now. */
  readonly size: number
}

export function createCallers (): Callers {
  const callers = new Map<string, Set<ServerResponse>>()
  return {
    enter ({ tenant, principal: { issuer, subject, clientId }, snapshot: { limits }, raw }) {
      const key = JSON.stringify([tenant.id, issuer, subject, clientId])
      const answers = callers.get(key) ?? new Set()
      if (answers.size >= limits.callsPerSession) {
        throw new GatewayError('too_many', `More than ${limits.callsPerSession} requests of this caller are in flight (limits.callsPerSession). Wait for answers before sending more.`)
      }
      let unread = 0
      for (const answer of answers) unread += answer.writableLength
      if (unread > maxUnreadBytes) throw new GatewayError('too_many', `More than ${maxUnreadBytes / 1024 / 1024} MiB of answers to this caller wait to be read. Read them before asking for more.`)
      callers.set(key, answers.add(raw))
      // Not with the result: until it is read, it is in memory.
      raw.once('close', () => {
        answers.delete(raw)
        if (answers.size === 0) callers.delete(key)
      })
    },
    get size () { return callers.size }
  }
}
