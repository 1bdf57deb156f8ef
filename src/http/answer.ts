// Runs one request of a session on behalf of a door, and takes what else the client posts. Nothing here rejects: a request ends with a
// message, or with silence where its caller cancelled it.

import type { Log } from '../observe/log.ts'
import { GatewayError, RpcError, errorObject } from '../protocol/errors.ts'
import { errorMessage, isObject, metaOf, notificationMessage, responseMessage } from '../protocol/messages.ts'
import type { JsonObject, Message, RequestId } from '../protocol/messages.ts'
import { shapeNotification } from '../protocol/shape.ts'
import { relatedTask } from '../protocol/tasks.ts'
import type { Client } from '../protocol/seams.ts'
import type { Place } from '../relay/call.ts'
import type { Relay } from '../relay/relay.ts'
import type { Principal } from '../auth/principal.ts'
import type { CallInFlight, LiveSession } from '../session/live.ts'

/** Who sent a message, where, and by which HTTP request. */
export interface Caller extends Place {
  readonly principal: Principal
  readonly requestId: string
}

export interface AnswererOptions {
  readonly relay: Relay
  readonly log: Log
  /** Calls in flight over all sessions, for the drain. */
  readonly calls: Set<AbortController>
}

export interface Answerer {
  /** @param push streams a message ahead of the answer; false where it cannot. @returns the message that answers, undefined after a cancellation */
  answer (caller: Caller, session: LiveSession, message: Message & { kind: 'request' }, push: (message: JsonObject) => boolean): Promise<JsonObject | undefined>
  /** A notification, or the answer to a question of ours. */
  take (caller: Caller, session: LiveSession, message: Exclude<Message, { kind: 'request' }>): void
}

export function createAnswerer ({ relay, log, calls }: AnswererOptions): Answerer {
  return {
    async answer (caller, session, message, push) {
      const controller = new AbortController()
      const over = new AbortController()
      let cancelled = false
      const entry: CallInFlight = {
        id: message.id,
        cancel (reason) {
          cancelled = true
          controller.abort(new GatewayError('cancelled', reason ?? 'The caller cancelled the request.'))
        },
        end (reason) {
          controller.abort(reason)
        },
        push
      }
      const { callsPerSession } = caller.snapshot.limits
      try {
        if (session.calls.size >= callsPerSession) {
          throw new GatewayError('too_many', `More than ${callsPerSession} requests of this session are in flight (limits.callsPerSession). Wait for answers before sending more.`)
        }
        session.calls.add(entry)
        calls.add(controller)
        const { snapshot, tenant, endpoint, principal } = caller
        const client = clientFor(session, push, over.signal)
        return responseMessage(message.id, await relay.call({ snapshot, tenant, endpoint, principal, request: message.request, live: session, client, signal: controller.signal }))
      } catch (error) {
        if (cancelled) return undefined
        // Aborted by us, not by the caller: the reason says why.
        if (controller.signal.aborted) return errorMessage(message.id, errorObject(controller.signal.reason, caller.requestId))
        if (!(error instanceof GatewayError) && !(error instanceof RpcError)) log.error({ err: error, requestId: caller.requestId }, 'a request failed by a fault of the gateway')
        return errorMessage(message.id, errorObject(error, caller.requestId))
      } finally {
        session.calls.delete(entry)
        calls.delete(controller)
        // What was asked on behalf of the call is of no use any more: the client can close its dialog.
        over.abort('the call that asked is over')
      }
    },

    take (caller, session, message) {
      if (message.kind !== 'notification') {
        if (!session.asks.settle(message)) log.debug({ tenant: caller.tenant.id }, 'an answer of a client that nobody waits for')
        return
      }
      const { method, params } = message.notification
      if (method === 'notifications/cancelled') {
        const reason = typeof params?.['reason'] === 'string' ? params['reason'].slice(0, 500) : undefined
        for (const call of session.calls) if (call.id === params?.['requestId']) call.cancel(reason)
      } else if (method === 'notifications/progress') session.asks.progress(message.notification)
      else relay.notify(caller, session, message.notification)
    }
  }
}

/** The id of a message that is none, where it may have been meant to answer a question. */
export const botchedAnswer = (message: unknown, id: RequestId | undefined): RequestId | undefined =>
  isObject(message) && message['method'] === undefined ? id : undefined

/** The client answered a question with what is no answer: whoever asked is told, instead of waiting for another one that will not come. */
export function settleBotched (session: LiveSession, id: RequestId): void {
  session.asks.settle({ kind: 'error', id, error: { code: -32603, message: 'The client answered with something that is no JSON-RPC response.' } })
}

/** The caller of one request: told and asked on the stream of its answer, asked on the session's own stream where it takes none. */
function clientFor (session: LiveSession, push: (message: JsonObject) => boolean, over: AbortSignal): Client {
  const { revision, capabilities } = session.session.record
  return {
    era: 'legacy',
    capabilities,
    notify (notification) {
      push(notificationMessage(shapeNotification(notification, revision)))
    },
    ask (request, { signal, progress, outlives } = {}) {
      // A task goes on when the call has ended that brought its question (2025-11-25 basic/utilities/tasks); so does what no stream names: many
      // servers ask for the roots as soon as they are connected to, which may be while a short call runs.
      const ends = outlives === true || metaOf(request.params)[relatedTask] !== undefined ? [] : [over]
      const signals = signal === undefined ? ends : [signal, ...ends]
      return session.ask(request, { signal: AbortSignal.any(signals), ...(progress === undefined ? {} : { progress }) }, push)
    }
  }
}
