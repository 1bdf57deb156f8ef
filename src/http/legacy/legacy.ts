// Handles the handshake revisions over Streamable HTTP: POST, GET and DELETE of one endpoint (2025-11-25
// basic/transports).

import { arrayOf } from '../../protocol/json-text.ts'
import { classifyMessage, errorMessage, GatewayError, rpcCodes, type Message } from '../../protocol/messages.ts'
import { errorObject } from '../../protocol/translate/error-object.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { Session, Sessions } from '../../session/sessions.ts'
import type { RequestContext } from '../admission.ts'
import { batchedContext, refuseIdsInFlight } from '../calls-in-flight.ts'
import { checkRevision, checkTakesStream, formatsOf, readAccept, type Accepts } from '../headers.ts'
import { sendAccepted, sendText, sseHeaders } from '../reply.ts'
import { checkBatch, refuseInitialize } from './batches.ts'
import { initializeResult, measureSession, observeHandshake, ownerOf, readInitializeParams } from './initialize.ts'
import { createSessionMessages, invalidMessage, mayBeResponse, settleInvalidResponse } from './messages.ts'
import { answerGet } from './get-stream.ts'
import { answerPost, sessionExists, type StreamableOptions } from './streams.ts'

export type LegacyHandler = ReturnType<typeof createLegacyHandler>

// 256 bits in base64url. An id of another shape belongs to some other server; its client had better replace it.
const ownId = /^[A-Za-z0-9_-]{43}$/
const plausibleId = /^[A-Za-z0-9_-]{1,128}$/

export function createLegacyHandler(options: StreamableOptions) {
  const { relay, sessions, live, observers, replicas, audit } = options
  const { log } = observers
  const { sessionBus, homes } = replicas
  const messages = createSessionMessages(options)
  // Only its home knows when it was used last.
  live.onDrop((_key, left) => left && measureSession(options, left.record, left.usedAt))
  homes.serve((context, session, message, push, signal) => messages.run(context, session, message, push, true, signal))

  /**
   * Opens a session and answers with its id.
   * @throws GatewayError invalid_request, invalid_params, too_many, unavailable
   */
  async function initialize(context: RequestContext, message: Message & { kind: 'request' }): Promise<void> {
    const { raw, incoming, endpoint } = context
    if (ownId.test(String(incoming.headers['mcp-session-id'])) && (await sessionExists(context, sessions)))
      throw new GatewayError(
        'invalid_request',
        'This session is initialized already. Send initialize without Mcp-Session-Id to open another one.'
      )
    const client = readInitializeParams(message.request.params)
    const opened = await sessions.open(ownerOf(context), endpoint.name, client)
    let text: string
    try {
      // After the store: while that is away, nobody waits for upstreams only to be refused.
      text = await observeHandshake(observers, context, client, opened.session.key, message, async () =>
        initializeResult(context, client.revision, await relay.describe(context, opened.session.record))
      )
      // The configuration may have changed meanwhile: no session begins at an endpoint that is no longer there.
      await context.revalidate()
      live.use(opened.session, context.memory.share)
    } catch (error) {
      await sessions.end(opened.session)
      throw error
    }
    audit?.session('opened', context, opened.session.record)
    const headers = { ...context.headers, 'Mcp-Session-Id': opened.id }
    if (readAccept(incoming.headers).json) return sendText(raw, 200, text, headers)
    raw.writeHead(200, { ...headers, ...sseHeaders }).end(`event: message\ndata: ${text}\n\n`)
  }

  async function postBatch(
    context: RequestContext,
    session: LiveSession,
    body: readonly unknown[],
    accepts: Accepts
  ): Promise<void> {
    const batch = body.map(classifyMessage)
    refuseInitialize(batch)
    refuseIdsInFlight(session, batch)
    if (batch.every((message) => message.kind !== 'request' && message.kind !== 'invalid')) {
      await Promise.all(batch.map((message) => messages.accept(session, message)))
      return sendAccepted(context.raw, context.headers)
    }
    await answerPost(options, context, session, accepts, undefined, async (push) => {
      const answers = await Promise.all(
        batch.map(async (message, at) => {
          if (message.kind === 'request')
            return await messages
              .run(batchedContext(context, at), session, message, push, accepts.stream)
              // The others of the batch are answered.
              .catch((error: unknown) =>
                JSON.stringify(errorMessage(message.id, errorObject(error, context.requestId)))
              )
          if (message.kind === 'invalid') {
            await settleInvalidResponse(sessionBus, session, body[at], message.id)
            const { message: text } = invalidMessage(message.reason)
            return JSON.stringify(errorMessage(message.id, { code: rpcCodes.invalidRequest, message: text }))
          }
          // One that answers what nobody asked leaves the others of its batch alone.
          await messages.accept(session, message).catch((err: unknown) => log.debug({ err }, 'refused in a batch'))
          return undefined
        })
      )
      const given = answers.filter((text) => text !== undefined)
      return given.length === 0 ? undefined : arrayOf(given)
    })
  }

  return {
    async post(context: RequestContext, body: unknown): Promise<void> {
      const revisionHeader = checkRevision(context.incoming.headers)
      const accepts = formatsOf(context.incoming.headers)
      if (Array.isArray(body)) {
        const stored = await resolveSession(context, sessions)
        checkBatch(body, stored.record.revision, context.snapshot.limits.batchMessages)
        return await postBatch(context, live.use(stored, context.memory.share), body, accepts)
      }
      const message = classifyMessage(body)
      if (message.kind === 'invalid') {
        if (message.id !== undefined && mayBeResponse(body))
          await settleInvalidResponse(
            sessionBus,
            live.use(await resolveSession(context, sessions), context.memory.share),
            body,
            message.id
          )
        throw invalidMessage(message.reason)
      }
      if (message.kind === 'request' && message.request.method === 'initialize')
        return await initialize(context, message)
      const found = resolveSession(context, sessions)
      const stored = found instanceof Promise ? await found : found
      if (revisionHeader !== undefined && revisionHeader !== stored.record.revision) {
        log.debug(
          { header: revisionHeader, negotiated: stored.record.revision },
          'the MCP-Protocol-Version header is not the negotiated one; answers follow the negotiated one'
        )
      }
      const session = live.use(stored, context.memory.share)
      if (message.kind !== 'request') {
        await messages.accept(session, message)
        homes.tell(context, session)
        return sendAccepted(context.raw, context.headers)
      }
      refuseIdsInFlight(session, [message])
      const { id } = message
      await answerPost(options, context, session, accepts, id, async (push) => {
        const final = await messages.run(context, session, message, push, accepts.stream)
        homes.tell(context, session)
        if (final !== undefined || accepts.stream) return final
        // A cancelled request has no answer, but its HTTP request needs one; 202 would say that it was no request.
        const cancelled = new GatewayError('cancelled', 'The request was cancelled by its caller.')
        return JSON.stringify(errorMessage(id, errorObject(cancelled, context.requestId)))
      })
    },

    async get(context: RequestContext): Promise<void> {
      checkRevision(context.incoming.headers)
      checkTakesStream(context.incoming.headers)
      await answerGet(options, context, live.use(await resolveSession(context, sessions), context.memory.share))
    },

    async remove(context: RequestContext): Promise<void> {
      checkRevision(context.incoming.headers)
      const session = await resolveSession(context, sessions)
      await sessions.end(session)
      audit?.session('ended', context, session.record)
      measureSession(options, session.record)
      context.raw.writeHead(204, { ...context.headers }).end()
    }
  }
}

/** @throws GatewayError session_required, invalid_request, session_unknown, unavailable */
function resolveSession(context: RequestContext, sessions: Sessions): Session | Promise<Session> {
  const { principal, endpoint } = context
  const { headers, socket } = context.incoming
  const id = headers['mcp-session-id']
  if (id === undefined)
    throw new GatewayError(
      'session_required',
      'The request needs the Mcp-Session-Id that initialize answered with. Send initialize first.'
    )
  if (typeof id !== 'string' || !plausibleId.test(id))
    throw new GatewayError('invalid_request', 'The Mcp-Session-Id header is not a session id of this gateway.')
  const session = ownId.test(id) ? sessions.load(id, principal, endpoint.name, socket) : undefined
  return session instanceof Promise ? session.then((loaded) => known(context, loaded)) : known(context, session)
}

function known(context: RequestContext, session: Session | undefined): Session {
  if (session !== undefined) {
    context.sessionKey = session.key
    return session
  }
  throw new GatewayError(
    'session_unknown',
    'This session does not exist or has ended. Send a new initialize without Mcp-Session-Id.'
  )
}
