// Both eras on one URL: each request shows which one it belongs to, and nothing is remembered of the one before.

import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError, latestModern } from '../protocol/messages.ts'
import { classifyHttpBody, isModernVersionHeader, type RoutingHeaders } from '../protocol/envelope.ts'
import type { LegacyHttpHandler } from './legacy/legacy.ts'
import type { ModernHttpHandler } from './modern/modern.ts'
import { sendAccepted } from './reply.ts'
import type { RequestContext } from './request-context.ts'

/** Streamable HTTP: POST, GET and DELETE of one endpoint. All reject with GatewayError. */
export interface McpHandler {
  post(context: RequestContext, body: unknown): Promise<void>
  get(context: RequestContext): Promise<void>
  remove(context: RequestContext): Promise<void>
}

export function createMcpHandler(legacy: LegacyHttpHandler, modern: ModernHttpHandler): McpHandler {
  return {
    async post(context, body) {
      const message = classifyHttpBody(routingHeaders(context.incoming.headers), body)
      if (message.kind === 'legacy') return await legacy.post(context, body)
      if (message.kind === 'notification') return sendAccepted(context.raw, context.headers)
      // Not awaited: an async function that waits holds the body, for as long as a stream is open.
      return modern.post(context, message)
    },
    async get(context) {
      refuseModern(context)
      await legacy.get(context)
    },
    async remove(context) {
      refuseModern(context)
      await legacy.remove(context)
    }
  }
}

function routingHeaders(headers: IncomingHttpHeaders): RoutingHeaders {
  return {
    version: text(headers['mcp-protocol-version']),
    method: text(headers['mcp-method']),
    name: text(headers['mcp-name'])
  }
}

/** The guard has refused headers that come twice, so the array is only for the type. */
const text = (value: string | string[] | undefined): string | undefined =>
  Array.isArray(value) ? value.join(', ') : value

/** "Earlier Streamable HTTP Revisions": GET and DELETE are for sessions, of which 2026-07-28 has none. */
function refuseModern({ incoming: { headers } }: RequestContext): void {
  if (headers['mcp-session-id'] !== undefined || !isModernVersionHeader(text(headers['mcp-protocol-version']))) return
  throw new GatewayError(
    'method_not_allowed',
    `Revision ${latestModern} has neither streams by GET nor sessions to DELETE: use POST, and ` +
      'subscriptions/listen for what changes.',
    { headers: { Allow: 'POST' } }
  )
}
