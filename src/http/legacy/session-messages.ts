// Runs the requests of a session and takes what else its client posts. Nothing here rejects: a request ends with a
// message, or with silence where its caller cancelled it.

import type { Log } from '../../observe/log.ts'
import {
  errorMessage,
  errorObject,
  GatewayError,
  isObject,
  type JsonObject,
  type Message,
  metaOf,
  notificationMessage,
  type RequestId,
  responseMessage,
  type Revision,
  rpcCodes,
  RpcError
} from '../../protocol/messages.ts'
import type { Client } from '../../protocol/seams.ts'
import { shapeNotification } from '../../protocol/translate/revision-shape.ts'
import { relatedTaskKey } from '../../protocol/translate/tasks.ts'
import type { LegacyRelay } from '../../relay/legacy-relay.ts'
import type { CallInFlight, LiveSession } from '../../session/live-sessions.ts'
import { refuseCall } from '../backpressure.ts'
import type { RequestContext } from '../request-context.ts'

export interface SessionMessagesOptions {
  readonly relay: LegacyRelay
  readonly log: Log
  /** Calls in flight over all sessions, for the drain. */
  readonly calls: Set<AbortController>
}

export interface SessionMessages {
  /**
   * @param push streams a message ahead of the answer; false where it cannot
   * @returns the message that answers, undefined after a cancellation
   */
  run(
    context: RequestContext,
    session: LiveSession,
    message: Message & { kind: 'request' },
    push: (message: JsonObject) => boolean
  ): Promise<JsonObject | undefined>
  /** A notification, or the response to a server request. */
  accept(context: RequestContext, session: LiveSession, message: Exclude<Message, { kind: 'request' }>): void
}

export function createSessionMessages({ relay, log, calls }: SessionMessagesOptions): SessionMessages {
  return {
    async run(context, session, { id, request }, push) {
      const controller = new AbortController()
      const { signal } = controller
      const { snapshot, tenant, endpoint, principal, requestId } = context
      let cancelled = false
      const entry: CallInFlight = {
        id,
        cancel(reason) {
          cancelled = true
          controller.abort(new GatewayError('cancelled', reason ?? 'The caller cancelled the request.'))
        },
        end: (reason) => controller.abort(reason),
        push
      }
      const { client, endServerRequests } = createSessionClient(session, push)
      try {
        refuseCall(session.calls.size, snapshot.limits.callsPerSession, 'session')
        session.calls.add(entry)
        calls.add(controller)
        const call = { snapshot, tenant, endpoint, principal, request, record: {}, session, client, signal }
        const result = await relay.call(call)
        return responseMessage(id, result)
      } catch (error) {
        if (cancelled) return undefined
        // Aborted by the gateway, not by the caller: the reason says why.
        if (signal.aborted) return errorMessage(id, errorObject(signal.reason, requestId))
        if (!(error instanceof GatewayError) && !(error instanceof RpcError))
          log.error({ err: error, requestId }, 'a request failed by a fault of the gateway')
        return errorMessage(id, errorObject(error, requestId))
      } finally {
        session.calls.delete(entry)
        calls.delete(controller)
        endServerRequests()
      }
    },

    accept(context, session, message) {
      if (message.kind !== 'notification') {
        if (!session.serverRequests.settle(message))
          log.debug({ tenant: context.tenant.id }, 'a response of a client to no open server request')
        return
      }
      const { method, params } = message.notification
      if (method === 'notifications/cancelled') {
        const reason = typeof params?.['reason'] === 'string' ? params['reason'].slice(0, 500) : undefined
        for (const call of session.calls) if (call.id === params?.['requestId']) call.cancel(reason)
      } else if (method === 'notifications/progress') session.serverRequests.progress(message.notification)
      else relay.notify(session, message.notification)
    }
  }
}

/**
 * The client of one call: notifications and server requests go out on the stream of its answer, or on the session's own
 * where it has none.
 */
function createSessionClient(session: LiveSession, push: (message: JsonObject) => boolean) {
  const { revision, capabilities } = session.session.record
  // Made with the first server request, because most calls have none.
  let callEnd: AbortController | undefined
  let ended = false
  const endServerRequests = (): void => {
    ended = true
    // The client can close its dialog.
    callEnd?.abort('the call that asked is over')
  }
  const client: Client = {
    era: 'legacy',
    capabilities,
    notify(notification) {
      push(notificationMessage(shapeNotification(notification, revision)))
    },
    ask(request, { signal, progress, outlivesCall } = {}) {
      const signals = signal === undefined ? [] : [signal]
      // A task outlives the call that brought its server request (2025-11-25 basic/utilities/tasks). So does a server
      // request that belongs to no call: many servers ask for the roots as soon as they are connected to, which may be
      // while a short call runs.
      if (outlivesCall !== true && metaOf(request.params)[relatedTaskKey] === undefined) {
        callEnd ??= new AbortController()
        if (ended) endServerRequests()
        signals.push(callEnd.signal)
      }
      const options = { signal: AbortSignal.any(signals), ...(progress === undefined ? {} : { progress }) }
      return session.ask(request, options, push)
    }
  }
  return { client, endServerRequests }
}

export const invalidMessage = (reason: string): GatewayError =>
  new GatewayError('invalid_request', `Not a JSON-RPC message: ${reason}.`)

/**
 * A client may answer a server request with something that is no response. The server is told, instead of waiting for
 * one that will not come.
 * @param id of the message, if it has one
 */
export function settleInvalidResponse(session: LiveSession, message: unknown, id: RequestId | undefined): void {
  if (id === undefined || !mayBeResponse(message)) return
  const error = {
    code: rpcCodes.internalError,
    message: 'The client answered with something that is no JSON-RPC response.'
  }
  session.serverRequests.settle({ kind: 'error', id, error })
}

/** @returns whether an invalid message may have been meant as the response to a server request */
export const mayBeResponse = (message: unknown): boolean => isObject(message) && message['method'] === undefined

/**
 * Batches came with 2025-03-26 and went with 2025-06-18.
 * @param revision undefined before it is negotiated
 * @throws GatewayError invalid_request
 */
export function checkBatch(batch: readonly unknown[], revision: Revision | undefined, maxMessages: number): void {
  if (revision !== '2025-03-26')
    throw new GatewayError(
      'invalid_request',
      'This session does not speak revision 2025-03-26, the only one with batches; send one message per request.'
    )
  if (batch.length === 0 || batch.length > maxMessages)
    throw new GatewayError('invalid_request', `A batch has 1 to ${maxMessages} messages.`)
}

type Classified = Message | { readonly kind: 'invalid' }

/** @throws GatewayError invalid_request */
export function refuseInitialize(batch: readonly Classified[]): void {
  if (batch.some((message) => isRequest(message, 'initialize')))
    throw new GatewayError('invalid_request', 'initialize must not be part of a batch.')
}

export const isRequest = (message: Classified, method: string): message is Message & { kind: 'request' } =>
  message.kind === 'request' && message.request.method === method
