// Both eras on one URL: each request shows which one it belongs to, and nothing is remembered of the one before.

import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../protocol/errors.ts'
import { climb, namesModern } from '../protocol/ladder.ts'
import type { RoutingHeaders } from '../protocol/ladder.ts'
import { latestModern } from '../protocol/revisions.ts'
import type { LegacyDoor } from './legacy.ts'
import type { ModernDoor } from './modern.ts'
import { sendAccepted } from './reply.ts'
import type { Visit } from './visit.ts'

/** Streamable HTTP: POST, GET and DELETE of one endpoint. All reject with GatewayError. */
export interface McpDoor {
  post (visit: Visit, body: unknown): Promise<void>
  get (visit: Visit): Promise<void>
  remove (visit: Visit): Promise<void>
}

export function createMcpDoor (legacy: LegacyDoor, modern: ModernDoor): McpDoor {
  return {
    async post (visit, body) {
      const rung = climb(routingHeaders(visit.incoming.headers), body)
      if (rung.kind === 'legacy') return await legacy.post(visit, body)
      if (rung.kind === 'notification') return sendAccepted(visit.raw, visit.headers)
      // Not awaited here: whoever waits holds the body, for as long as a stream is open.
      return modern.post(visit, rung)
    },
    async get (visit) {
      refuseModern(visit)
      await legacy.get(visit)
    },
    async remove (visit) {
      refuseModern(visit)
      await legacy.remove(visit)
    }
  }
}

function routingHeaders (headers: IncomingHttpHeaders): RoutingHeaders {
  // Strings all of them: the guard has refused those that come twice.
  return { version: text(headers['mcp-protocol-version']), method: text(headers['mcp-method']), name: text(headers['mcp-name']) }
}

const text = (value: string | string[] | undefined): string | undefined => Array.isArray(value) ? value.join(', ') : value

/** "Earlier Streamable HTTP Revisions": GET and DELETE are of sessions, which a client of 2026-07-28 has none of. */
function refuseModern ({ incoming: { headers } }: Visit): void {
  if (headers['mcp-session-id'] !== undefined || !namesModern(text(headers['mcp-protocol-version']))) return
  throw new GatewayError('method_not_allowed', `Revision ${latestModern} has neither streams by GET nor sessions to DELETE: use POST, and subscriptions/listen for what changes.`, { headers: { Allow: 'POST' } })
}
