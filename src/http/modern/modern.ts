// Handles 2026-07-28: one POST, one request, one answer (basic/transports/streamable-http). A classified request goes
// on to the relay when its method exists and its headers repeat its arguments.

import type { ModernRequest } from '../../protocol/envelope.ts'
import { GatewayError, latestModern, type Result } from '../../protocol/messages.ts'
import type { ModernCall } from '../../relay/call/call.ts'
import { modernClientRequests } from '../../protocol/methods.ts'
import type { ModernRelay } from '../../relay/modern-relay.ts'
import { formatsOf } from '../accept.ts'
import type { RequestContext } from '../request-context.ts'
import { createCallerLimits } from './caller-limits.ts'
import { createParamHeaderCheck } from './check-param-headers.ts'
import { createModernListen } from './modern-listen.ts'
import { createRunModernRequest, type ModernRequestOptions } from './modern-request.ts'

export interface ModernHandlerOptions extends ModernRequestOptions {
  readonly relay: ModernRelay
}

export interface ModernHttpHandler {
  /**
   * Rejects with what is refused before the request runs: GatewayError unknown_method, not_acceptable, too_many, and
   * what `listen` is refused with.
   */
  post(context: RequestContext, request: ModernRequest): Promise<void>
  /** The gateway stops: ends every listen stream, and says so on it. Calls go on. */
  endStreams(): void
}

export function createModernHandler(options: ModernHandlerOptions): ModernHttpHandler {
  const { relay, log } = options
  const run = createRunModernRequest(options)
  const { listen, endStreams } = createModernListen(options)
  const callers = createCallerLimits()
  const checkParamHeaders = createParamHeaderCheck(relay)

  async function callTool(context: RequestContext, call: ModernCall): Promise<Result> {
    await checkParamHeaders(context.incoming.rawHeaders, call).catch((error: unknown) => {
      const { tenant, endpoint } = context
      if (error instanceof GatewayError)
        log[error.row.level](
          { reason: error.code, tenant: tenant.id, endpoint: endpoint.name, method: call.request.method },
          'refused'
        )
      throw error
    })
    // The check may have waited for a listing.
    if (call.signal.aborted) throw call.signal.reason
    return await relay.call(call)
  }

  return {
    async post(context, message) {
      const { method } = message.request
      if (!modernClientRequests.has(method))
        throw new GatewayError(
          'unknown_method',
          `Revision ${latestModern} has no method ${JSON.stringify(method.slice(0, 64))}, or this gateway does not ` +
            'serve it.'
        )
      // Not awaited: an async function that waits holds the body, for as long as a stream is open.
      if (method === 'subscriptions/listen') return listen(context, message.id, message.request, message.envelope)
      const accepts = formatsOf(context.incoming.headers)
      if (context.raw.destroyed) return
      callers.admit(context)
      await run(context, message, accepts, method === 'tools/call' ? (call) => callTool(context, call) : relay.call)
    },
    endStreams
  }
}
