// What clients of both legacy transports post: `initialize`, requests, notifications, responses to server requests, and
// batches of them.

import { noteNotification, noteServerRequest } from '../../observe/call-notes.ts'
import { observe, type CallObservers } from '../../observe/calls.ts'
import {
  errorMessage,
  GatewayError,
  isObject,
  metaOf,
  notificationMessage,
  responseMessage,
  rpcCodes,
  RpcError,
  type JsonObject,
  type Message,
  type RequestId
} from '../../protocol/messages.ts'
import { errorObject } from '../../protocol/translate/error-object.ts'
import type { ErrorCode } from '../../protocol/error-table.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import type { Client } from '../../protocol/seams.ts'
import { shapeNotification } from '../../protocol/translate/revision-shape.ts'
import { relatedTaskKey } from '../../protocol/translate/tasks.ts'
import type { LegacyRelay } from '../../relay/legacy-relay.ts'
import type { CallInFlight, LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { SessionBus } from '../../session/elsewhere/session-bus.ts'
import type { Clock } from '../../time/clock.ts'
import { withScopeChallenge, type CallContext, type RequestContext } from '../admission.ts'
import { cappedAnswer } from '../../relay/call/capped-answer.ts'
import type { Revalidator } from '../revalidation.ts'
import { callRecordOf, refuseCall, type CallsInFlight } from '../calls-in-flight.ts'
import { answerText, isLongBody, letGoOfArguments } from '../request-memory.ts'
import type { Replicas } from './replicas.ts'

export interface LegacyOptions {
  readonly relay: LegacyRelay
  readonly sessions: Sessions
  readonly live: LiveSessions
  readonly revalidator: Revalidator
  /** The time of day. */
  readonly clock: Clock
  readonly observers: CallObservers
  /** Over all sessions. */
  readonly calls: CallsInFlight
  /** The other processes that serve the same sessions. */
  readonly replicas: Replicas
}

/** A request ends with a message, or with silence where its caller cancelled it. */
export function createSessionMessages({ relay, observers, calls, replicas: { sessionBus, homes } }: LegacyOptions) {
  return {
    /**
     * Runs a request. Notifications and server requests go out on the stream of its answer, or on the session's own
     * where it has none.
     * @param push streams a message ahead of the answer; false where it cannot
     * @param streams whether it ever can
     * @param forwarded by another process, which aborts it
     * @returns the text of the message that answers, undefined after a cancellation
     * @throws GatewayError of `toldByStatus`, while nothing of the reply was sent
     */
    async run(
      context: CallContext,
      session: LiveSession,
      message: Message & { kind: 'request' },
      push: (message: JsonObject) => boolean,
      streams: boolean,
      forwarded?: AbortSignal
    ): Promise<JsonText | undefined> {
      const { id, request } = message
      const controller = new AbortController()
      const { signal } = controller
      const { snapshot, tenant, endpoint, principal, requestId } = context
      const { revision, capabilities, clientInfo: software } = session.session.record
      const record = callRecordOf(context, { id, revision, software, session: session.key })
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
      // Made with the first server request, because most calls have none.
      let callEnd: AbortController | undefined
      let ended = false
      let leave: (() => void) | undefined
      let notRunning: (() => void) | undefined
      const client: Client = {
        era: 'legacy',
        capabilities,
        sent: isLongBody(context) ? (keptBytes) => letGoOfArguments(context, request, keptBytes) : undefined,
        notify(notification) {
          noteNotification(record, observers.clock, notification.method)
          push(notificationMessage(shapeNotification(notification, revision)))
        },
        ask(serverRequest, { signal: withdrawn, progress, outlivesCall } = {}) {
          const answered = noteServerRequest(record, observers.clock, serverRequest.method)
          const signals = withdrawn === undefined ? [] : [withdrawn]
          // A task outlives the call that brought its server request (2025-11-25 basic/utilities/tasks). So does a
          // server request that belongs to no call: many servers ask for the roots as soon as they are connected to,
          // which may be while a short call runs.
          if (outlivesCall !== true && metaOf(serverRequest.params)[relatedTaskKey] === undefined) {
            callEnd ??= new AbortController()
            if (ended) callEnd.abort(callOver)
            signals.push(callEnd.signal)
          }
          const options = { signal: AbortSignal.any(signals), ...(progress === undefined ? {} : { progress }) }
          return answered(session.ask(serverRequest, options, push))
        }
      }
      const call = { snapshot, tenant, endpoint, principal, request, record, session, client, signal }
      let refusal: unknown
      // At once: the next message may cancel it, or repeat its id.
      try {
        refuseCall(session.calls.size, snapshot.limits.callsPerSession, 'session')
        leave = calls.enter(context)
        session.calls.add(entry)
        notRunning = calls.running.add({ controller, call })
        // Its sender may have given up already, while the session was looked for.
        if (forwarded?.aborted === true) entry.end(forwarded.reason as Error)
        forwarded?.addEventListener('abort', () => entry.end(forwarded.reason as Error), { once: true })
      } catch (error) {
        refusal = error
      }
      try {
        // The process that runs it writes about it.
        const isElsewhere = refusal === undefined && forwarded === undefined && homes.isElsewhere(session)
        // This process was the home before, and finds out here, if not sooner.
        if (isElsewhere && relay.holds(session.key)) relay.leave(session.key)
        const isBound = isElsewhere && relay.isBound(call)
        const borrowed = isBound ? relay.borrowFor(call) : undefined
        if (isBound && borrowed === undefined) {
          const sent = homes.forward(context, session, message, streams, { notify: push, signal })
          const answer = await sent.catch((error: unknown) => {
            // One that the other process has begun is in its log.
            if (signal.aborted || isToldByStatus(error)) throw error
            refusal = error
            return undefined
          })
          if (answer !== undefined) return answer.text
        }
        return await observe(call, observers, async () => {
          if (refusal !== undefined) throw refusal
          const result = await relay.call(borrowed === undefined ? call : { ...call, borrowed })
          const text = await answerText(context, result, responseMessage(id, result))
          return cappedAnswer(record, request, id, result, text)
        })
      } catch (error) {
        if (cancelled) return undefined
        // While nothing was sent, the status and its headers say it: a client then asks for a token with the scopes
        // (2025-11-25 basic/authorization "Scope Challenge Handling"), or waits.
        if (isToldByStatus(error)) {
          if (canRefuse(context)) throw withScopeChallenge(error, context)
          // The process that the request came to has its HTTP answer.
          if (forwarded !== undefined) throw error
        }
        // Aborted by the gateway, not by the caller: the reason says why.
        if (signal.aborted) return JSON.stringify(errorMessage(id, errorObject(signal.reason, requestId)))
        if (!(error instanceof GatewayError) && !(error instanceof RpcError))
          observers.log.error({ err: error, requestId }, 'a request failed by a fault of the gateway')
        return JSON.stringify(errorMessage(id, errorObject(error, requestId)))
      } finally {
        session.calls.delete(entry)
        notRunning?.()
        leave?.()
        ended = true
        // The client can close its dialog.
        callEnd?.abort(callOver)
      }
    },

    /**
     * A notification, or the response to a server request.
     * @throws GatewayError invalid_request for a response to what was not asked
     */
    async accept(session: LiveSession, message: Exclude<Message, { kind: 'request' }>): Promise<void> {
      if (message.kind !== 'notification') return await sessionBus.settle(session, message)
      const { method, params } = message.notification
      if (method === 'notifications/cancelled') {
        const reason = typeof params?.['reason'] === 'string' ? params['reason'].slice(0, 500) : undefined
        sessionBus.cancel(session, { requestId: params?.['requestId'], reason })
      } else if (method === 'notifications/progress') sessionBus.progress(session, message.notification)
      else if (!sessionBus.notifyHome(session, message.notification)) relay.notify(session, message.notification)
    }
  }
}

const limits: readonly ErrorCode[] = ['rate_limited', 'quota_exceeded', 'too_many']
const toldByStatus: ReadonlySet<ErrorCode> = new Set([...limits, 'insufficient_scope'])

/** Not where a call may have been made: a status such as 429 invites to repeat it. */
const isToldByStatus = (error: unknown): error is GatewayError =>
  error instanceof GatewayError && toldByStatus.has(error.code) && error.data['outcome'] !== 'unknown'

/** Has the request an HTTP answer of its own, of which nothing was sent? */
const canRefuse = (context: CallContext | RequestContext): context is RequestContext =>
  'raw' in context && !context.raw.headersSent

const callOver = 'the call that asked is over'

export const invalidMessage = (reason: string): GatewayError =>
  new GatewayError('invalid_request', `Not a JSON-RPC message: ${reason}.`)

/**
 * A client may answer a server request with something that is no response. The server is told, instead of waiting for
 * one that will not come.
 * @param id of the message, if it has one
 */
export async function settleInvalidResponse(
  sessionBus: SessionBus,
  session: LiveSession,
  message: unknown,
  id: RequestId | undefined
): Promise<void> {
  if (id === undefined || !mayBeResponse(message)) return
  const error = {
    code: rpcCodes.internalError,
    message: 'The client answered with something that is no JSON-RPC response.'
  }
  // The message is refused anyway.
  await sessionBus.settle(session, { kind: 'error', id, error }).catch(() => {})
}

/** @returns whether an invalid message may have been meant as the response to a server request */
export const mayBeResponse = (message: unknown): boolean => isObject(message) && message['method'] === undefined
