// What clients of both legacy transports post: `initialize`, requests, notifications, responses to server requests, and
// batches of them.

import type { Log } from '../../observe/log.ts'
import {
  atLeast,
  errorMessage,
  errorObject,
  GatewayError,
  isLegacyRevision,
  isObject,
  latestLegacy,
  metaOf,
  notificationMessage,
  responseMessage,
  rpcCodes,
  RpcError,
  type Implementation,
  type JsonObject,
  type Message,
  type RequestId,
  type Revision
} from '../../protocol/messages.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import { capabilitiesFit, maxCapabilitiesBytes } from '../../protocol/envelope.ts'
import type { Client } from '../../protocol/seams.ts'
import { shapeCapabilities, shapeNotification } from '../../protocol/translate/revision-shape.ts'
import { relatedTaskKey } from '../../protocol/translate/tasks.ts'
import type { LegacyRelay } from '../../relay/legacy-relay.ts'
import type { CallInFlight, LiveSession, LiveSessions } from '../../session/live-sessions.ts'
import type { NegotiatedClient, Owner, Sessions } from '../../session/sessions.ts'
import type { Clock } from '../../time/clock.ts'
import type { RequestContext } from '../admission.ts'
import type { Revalidator } from '../revalidation.ts'
import { refuseCall, type CallsInFlight } from '../calls-in-flight.ts'
import { answerText } from '../request-memory.ts'

export interface LegacyOptions {
  readonly relay: LegacyRelay
  readonly sessions: Sessions
  readonly live: LiveSessions
  readonly revalidator: Revalidator
  /** The time of day. */
  readonly clock: Clock
  readonly log: Log
  readonly serverInfo: Implementation
  /** Over all sessions. */
  readonly calls: CallsInFlight
}

/** Nothing here rejects: a request ends with a message, or with silence where its caller cancelled it. */
export function createSessionMessages({ relay, log, calls }: LegacyOptions) {
  return {
    /**
     * Runs a request. Notifications and server requests go out on the stream of its answer, or on the session's own
     * where it has none.
     * @param push streams a message ahead of the answer; false where it cannot
     * @returns the text of the message that answers, undefined after a cancellation
     */
    async run(
      context: RequestContext,
      session: LiveSession,
      { id, request }: Message & { kind: 'request' },
      push: (message: JsonObject) => boolean
    ): Promise<JsonText | undefined> {
      const controller = new AbortController()
      const { signal } = controller
      const { snapshot, tenant, endpoint, principal, requestId } = context
      const { revision, capabilities } = session.session.record
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
      const client: Client = {
        era: 'legacy',
        capabilities,
        notify(notification) {
          push(notificationMessage(shapeNotification(notification, revision)))
        },
        ask(serverRequest, { signal: withdrawn, progress, outlivesCall } = {}) {
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
          return session.ask(serverRequest, options, push)
        }
      }
      try {
        refuseCall(session.calls.size, snapshot.limits.callsPerSession, 'session')
        leave = calls.enter(context)
        session.calls.add(entry)
        calls.running.add(controller)
        const call = { snapshot, tenant, endpoint, principal, request, record: {}, session, client, signal }
        const result = await relay.call(call)
        return await answerText(context, result, responseMessage(id, result))
      } catch (error) {
        if (cancelled) return undefined
        // Aborted by the gateway, not by the caller: the reason says why.
        if (signal.aborted) return JSON.stringify(errorMessage(id, errorObject(signal.reason, requestId)))
        if (!(error instanceof GatewayError) && !(error instanceof RpcError))
          log.error({ err: error, requestId }, 'a request failed by a fault of the gateway')
        return JSON.stringify(errorMessage(id, errorObject(error, requestId)))
      } finally {
        session.calls.delete(entry)
        calls.running.delete(controller)
        leave?.()
        ended = true
        // The client can close its dialog.
        callEnd?.abort(callOver)
      }
    },

    /** A notification, or the response to a server request. */
    accept(context: RequestContext, session: LiveSession, message: Exclude<Message, { kind: 'request' }>): void {
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

const callOver = 'the call that asked is over'

/** What a client says of itself in `initialize`. @throws GatewayError invalid_params */
export function readInitializeParams(params: JsonObject | undefined): NegotiatedClient {
  const { protocolVersion, clientInfo, capabilities } = params ?? {}
  if (typeof protocolVersion !== 'string')
    throw new GatewayError('invalid_params', '"protocolVersion" of initialize must be a string.')
  // They stay in the store as long as the session.
  if (isObject(capabilities) && !capabilitiesFit(capabilities))
    throw new GatewayError(
      'invalid_params',
      `"capabilities" of initialize takes more than ${maxCapabilitiesBytes} bytes as JSON. Leave out what the ` +
        'server need not know.'
    )
  return {
    // basic/lifecycle "Version Negotiation".
    revision: isLegacyRevision(protocolVersion) ? protocolVersion : latestLegacy,
    clientInfo:
      isObject(clientInfo) && typeof clientInfo['name'] === 'string'
        ? {
            name: clientInfo['name'].slice(0, 200),
            version: typeof clientInfo['version'] === 'string' ? clientInfo['version'].slice(0, 100) : 'unknown'
          }
        : undefined,
    capabilities: isObject(capabilities) ? capabilities : {}
  }
}

export function initializeResult(
  { tenant, endpoint }: RequestContext,
  revision: Revision,
  { capabilities, instructions }: Awaited<ReturnType<LegacyRelay['describe']>>,
  serverInfo: Implementation
): JsonObject {
  return {
    protocolVersion: revision,
    capabilities: shapeCapabilities(capabilities, revision),
    serverInfo: atLeast(revision, '2025-06-18')
      ? { ...serverInfo, title: `Gatehouse: ${tenant.id}/${endpoint.name}` }
      : serverInfo,
    ...(instructions === undefined ? {} : { instructions })
  }
}

export const ownerOf = ({ principal: { tenant, issuer, subject, clientId } }: RequestContext): Owner => ({
  tenant,
  issuer,
  subject,
  clientId
})

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
