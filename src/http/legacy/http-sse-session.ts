// The session behind a stream of HTTP+SSE: how a POST finds it, what a POST may carry, and how it is initialized.

import type { ServerResponse } from 'node:http'
import {
  classifyMessage,
  type EndpointName,
  errorMessage,
  errorObject,
  GatewayError,
  type Message,
  responseMessage,
  type SessionId
} from '../../protocol/messages.ts'
import type { LiveSessions } from '../../session/live-sessions.ts'
import { type Owner, sameOwner, type Session, type Sessions } from '../../session/sessions.ts'
import { trackBacklog } from '../backpressure.ts'
import type { Credential, RequestContext } from '../request-context.ts'
import type { HttpSseServerStream } from './http-sse-stream.ts'
import { type InitializeOptions, initializeResult, ownerOf, readInitializeParams } from './initialize.ts'
import {
  checkBatch,
  invalidMessage,
  refuseInitialize,
  type SessionMessagesOptions,
  settleInvalidResponse
} from './session-messages.ts'

/** What the id in the messages URL stands for. */
export interface HttpSseSession {
  readonly owner: Owner
  readonly endpoint: EndpointName
  /**
   * Of the record in the store. No client learns it, so that neither id of a session means anything to the other
   * transport.
   */
  readonly recordId: SessionId
  session: Session
  readonly stream: HttpSseServerStream
  /** The connection of the stream. */
  readonly raw: ServerResponse
  phase: 'new' | 'initializing' | 'ready'
}

/** The session that a POST names by its URL. @throws GatewayError invalid_request, session_unknown, unavailable */
export async function findHttpSseSession(
  entries: ReadonlyMap<string, HttpSseSession>,
  sessions: Sessions,
  context: RequestContext
): Promise<HttpSseSession> {
  const [id, second] = new URLSearchParams(context.incoming.url?.split('?')[1] ?? '').getAll('sessionId')
  if (id === undefined || second !== undefined) {
    throw new GatewayError(
      'invalid_request',
      'Messages are posted to the URL that the "endpoint" event of the stream gave, with its sessionId. Open the ' +
        'stream first.'
    )
  }
  const entry = entries.get(id)
  if (
    entry?.stream.open !== true ||
    !sameOwner(entry.owner, ownerOf(context)) ||
    entry.endpoint !== context.endpoint.name
  )
    throw sessionEnded()
  const session = await sessions.load(entry.recordId, entry.owner, entry.endpoint)
  if (session === undefined) entry.stream.end()
  // The stream may also have ended meanwhile.
  if (session === undefined || !entry.stream.open) throw sessionEnded()
  // A record that was read before `initialize` was answered may come after the one that `initialize` wrote.
  if (session.record.touchedAt >= entry.session.record.touchedAt) entry.session = session
  entry.stream.renew(credentialOf(context))
  return entry
}

/** Answers `initialize` on the stream, also with an error. Never rejects. */
export async function initializeHttpSse(
  { relay, sessions, live, serverInfo, log }: InitializeOptions & SessionMessagesOptions,
  context: RequestContext,
  entry: HttpSseSession,
  { id, request }: Message & { kind: 'request' }
): Promise<void> {
  const { stream } = entry
  try {
    const client = readInitializeParams(request.params)
    const described = await relay.describe(context, { ...entry.session.record, ...client })
    // The configuration may have changed meanwhile: no session begins at an endpoint that is no longer there.
    await context.revalidate()
    const session = await sessions.initialize(entry.session, client)
    if (session === undefined) throw sessionEnded()
    // Nothing that began after the end of the stream would be ended.
    if (!stream.attached) return
    entry.session = session
    entry.phase = 'ready'
    stream.push(responseMessage(id, initializeResult(context, client.revision, described, serverInfo)))
    const current = live.use(session)
    trackBacklog(current, entry.raw, stream.backlogBytes)
    current.setStream(stream)
  } catch (error) {
    entry.phase = 'new'
    if (!(error instanceof GatewayError))
      log.error({ err: error, requestId: context.requestId }, 'initialize failed by a fault of the gateway')
    stream.push(errorMessage(id, errorObject(error, context.requestId)))
  }
}

/**
 * Checks everything before anything is done. A refused body has one effect: an invalid response settles its server
 * request.
 */
export function readHttpSseBody(
  body: unknown,
  { phase, session }: HttpSseSession,
  live: LiveSessions,
  maxMessages: number
): Message[] {
  if (!Array.isArray(body)) return [valid(body, session, live)]
  checkBatch(body, phase === 'ready' ? session.record.revision : undefined, maxMessages)
  const batch = body.map((message: unknown) => valid(message, session, live))
  refuseInitialize(batch)
  return batch
}

function valid(given: unknown, { key }: Session, live: LiveSessions): Message {
  const message = classifyMessage(given)
  if (message.kind !== 'invalid') return message
  const session = live.get(key)
  if (session !== undefined) settleInvalidResponse(session, given, message.id)
  throw invalidMessage(message.reason)
}

/** All that a stream holds of a request that may be long over. */
export const credentialOf = ({ revalidate, validUntil }: RequestContext): Credential => ({ revalidate, validUntil })

const sessionEnded = (): GatewayError =>
  new GatewayError(
    'session_unknown',
    'This session does not exist or has ended. Open a new stream and send a new initialize.'
  )
