// One request of 2026-07-28 while it runs. It ends with its result, with an error, or with its connection: closing that
// is how a client cancels (basic/patterns/cancellation), and nothing more is sent then. Its caller is revalidated for
// as long as it takes.

import {
  errorMessage,
  errorObject,
  GatewayError,
  type Implementation,
  type Notification,
  notificationMessage,
  type RequestId,
  responseMessage,
  type Result,
  rpcCodes,
  RpcError
} from '../../protocol/messages.ts'
import type { Log } from '../../observe/log.ts'
import { type ModernRequest, withServerInfo } from '../../protocol/envelope.ts'
import { errorTable } from '../../protocol/error-table.ts'
import { type Client, type LogLevel, passesLogLevel } from '../../protocol/seams.ts'
import type { ModernCall } from '../../relay/call/call.ts'
import type { Clock } from '../../time/clock.ts'
import type { Accepts } from '../accept.ts'
import { logSlowReader } from '../backpressure.ts'
import type { RequestContext } from '../request-context.ts'
import { noLongerAccepted, type Revalidator } from '../revalidation.ts'
import { createModernReply, type ModernReply } from './modern-reply.ts'

export interface ModernRequestOptions {
  readonly revalidator: Revalidator
  readonly clock: Clock
  readonly log: Log
  readonly serverInfo: Implementation
  /** Calls in flight, for the drain. */
  readonly calls: Set<AbortController>
}

/** Performs one call and answers with its result or its error. Never rejects. */
export type RunModernRequest = (
  context: RequestContext,
  request: ModernRequest,
  accepts: Accepts,
  perform: (call: ModernCall) => Promise<Result>
) => Promise<void>

export function createRunModernRequest({
  revalidator,
  clock,
  log,
  serverInfo,
  calls
}: ModernRequestOptions): RunModernRequest {
  // A third of the longest silence afterwards: until then the status can still say what went wrong.
  const quietMs = revalidator.intervalMs / 3

  return async (context, { id, request, envelope }, accepts, perform) => {
    const { raw, headers, snapshot, tenant, endpoint, principal } = context
    if (raw.destroyed) return
    const controller = new AbortController()
    const { signal } = controller
    let over = false
    const reply = createModernReply({ raw, accepts, headers, onOverflow: () => logSlowReader(log, context) })
    raw.once('close', () => {
      if (!over) controller.abort(new GatewayError('cancelled', 'The caller closed the connection.'))
    })
    calls.add(controller)
    const unwatch = revalidator.watch({
      credential: context,
      beat() {
        if (reply.started) reply.beat()
      },
      onInvalid: () => controller.abort(noLongerAccepted())
    })
    const quiet = clock.timer(quietMs, () => reply.beat())
    const client: Client = {
      era: 'modern',
      capabilities: envelope.capabilities,
      logLevel: envelope.logLevel,
      notify(notification) {
        // Only progress and log messages are left out here, never the result.
        if (isWanted(notification, envelope.logLevel)) reply.push(notificationMessage(notification))
      },
      ask: refuseServerRequest
    }
    try {
      const result = await perform({ snapshot, tenant, endpoint, principal, request, record: {}, client, signal })
      // A caller that is no longer let in gets no result, however near it was.
      if (signal.aborted) throw signal.reason
      over = true
      reply.end(responseMessage(id, withServerInfo(result, serverInfo)))
    } catch (error) {
      over = true
      if (!raw.destroyed) fail(reply, id, signal, error, context.requestId)
    } finally {
      quiet.close()
      unwatch()
      calls.delete(controller)
    }
  }

  function fail(reply: ModernReply, id: RequestId, signal: AbortSignal, error: unknown, requestId: string): void {
    // Aborted by the gateway: the reason says why. An ordinary answer, because a status such as 503 invites to repeat
    // what may have been done.
    if (signal.aborted) return reply.end(errorMessage(id, errorObject(signal.reason, requestId)))
    const message = errorMessage(id, errorObject(error, requestId))
    if (error instanceof RpcError) {
      // The one error of an upstream that has a status of its own (2026-07-28 basic/index "Error Codes").
      const { status } = errorTable.missing_capability
      return reply.end(message, error.error.code === rpcCodes.missingCapability ? status : 200)
    }
    if (!(error instanceof GatewayError))
      log.error({ err: error, requestId }, 'a request failed by a fault of the gateway')
    else if (error.row.status === 200) return reply.end(message)
    reply.refuse(error, requestId, id, message)
  }
}

/** basic/transports/streamable-http "Receiving Messages": no requests to the client, on this stream or any other. */
const refuseServerRequest: Client['ask'] = ({ method }) =>
  Promise.reject(
    new RpcError({
      code: rpcCodes.methodNotFound,
      message: `The client speaks 2026-07-28 and takes no requests; ${method.slice(0, 64)} cannot be asked of it here.`
    })
  )

/**
 * "Receiving Messages": notifications on the stream of an answer are about its request; log messages are only for
 * clients that ask for them (server/utilities/logging).
 */
function isWanted({ method, params }: Notification, level: LogLevel | undefined): boolean {
  if (method === 'notifications/message') return level !== undefined && passesLogLevel(params?.['level'], level)
  return method === 'notifications/progress'
}
