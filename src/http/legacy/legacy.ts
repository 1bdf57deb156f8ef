// Handles the handshake revisions over Streamable HTTP: POST, GET and DELETE of one endpoint (2025-11-25
// basic/transports).

import { atLeast, classifyMessage, errorMessage, errorObject, GatewayError, rpcCodes } from '../../protocol/messages.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { Streams } from '../../session/streams.ts'
import type { Clock } from '../../time/clock.ts'
import { type Accepts, checkTakesStream, formatsOf } from '../accept.ts'
import { logSlowReader, refuseOverBacklog, smallBacklogBytes, trackBacklog } from '../backpressure.ts'
import { sendAccepted } from '../reply.ts'
import type { RequestContext } from '../request-context.ts'
import { noLongerAccepted, type Revalidator } from '../revalidation.ts'
import { createGetStream, sessionExists, streamFeaturesOf } from './get-stream.ts'
import { checkRevision, createLegacyHandshake, type InitializeOptions } from './initialize.ts'
import { createLegacyReply, type LegacyReply } from './legacy-reply.ts'
import {
  checkBatch,
  createSessionMessages,
  invalidMessage,
  mayBeResponse,
  refuseInitialize,
  type SessionMessagesOptions,
  settleInvalidResponse
} from './session-messages.ts'

export interface LegacyHandlerOptions extends InitializeOptions, SessionMessagesOptions {
  readonly streams: Streams
  readonly revalidator: Revalidator
  /** The time of day. */
  readonly clock: Clock
}

/** Each rejects with GatewayError where the request is refused as a whole. */
export interface LegacyHttpHandler {
  post(context: RequestContext, body: unknown): Promise<void>
  get(context: RequestContext): Promise<void>
  remove(context: RequestContext): Promise<void>
}

/** How long a call may be silent before it answers by a stream. */
const quietMs = 1_000

export function createLegacyHandler(options: LegacyHandlerOptions): LegacyHttpHandler {
  const { sessions, live, streams, revalidator, clock, log } = options
  const { initialize, resolveSession } = createLegacyHandshake(options)
  const messages = createSessionMessages(options)
  const getStream = createGetStream(options)

  return {
    async post(context, body) {
      const revisionHeader = checkRevision(context)
      const accepts = formatsOf(context.incoming.headers)
      if (Array.isArray(body)) {
        const stored = await resolveSession(context)
        checkBatch(body, stored.record.revision, context.snapshot.limits.batchMessages)
        return await postBatch(context, live.use(stored), body, accepts)
      }
      const message = classifyMessage(body)
      if (message.kind === 'invalid') {
        if (message.id !== undefined && mayBeResponse(body))
          settleInvalidResponse(live.use(await resolveSession(context)), body, message.id)
        throw invalidMessage(message.reason)
      }
      if (message.kind === 'request' && message.request.method === 'initialize')
        return await initialize(context, message.id, message.request.params)
      const stored = await resolveSession(context)
      if (revisionHeader !== undefined && revisionHeader !== stored.record.revision) {
        log.debug(
          { header: revisionHeader, negotiated: stored.record.revision },
          'the MCP-Protocol-Version header is not the negotiated one; answers follow the negotiated one'
        )
      }
      const session = live.use(stored)
      if (message.kind !== 'request') {
        messages.accept(context, session, message)
        return sendAccepted(context.raw, context.headers)
      }
      const { id } = message
      await reply(context, session, accepts, async (answer) => {
        const final = await messages.run(context, session, message, answer.push)
        if (final !== undefined || accepts.stream) return final
        // A cancelled request has no answer, but its HTTP request needs one; 202 would say that it was no request.
        const cancelled = new GatewayError('cancelled', 'The request was cancelled by its caller.')
        return errorMessage(id, errorObject(cancelled, context.requestId))
      })
    },

    async get(context) {
      checkRevision(context)
      checkTakesStream(context.incoming.headers)
      await getStream(context, live.use(await resolveSession(context)))
    },

    async remove(context) {
      checkRevision(context)
      await sessions.end(await resolveSession(context))
      context.raw.writeHead(204, { ...context.headers }).end()
    }
  }

  async function postBatch(
    context: RequestContext,
    session: LiveSession,
    body: readonly unknown[],
    accepts: Accepts
  ): Promise<void> {
    const batch = body.map(classifyMessage)
    refuseInitialize(batch)
    if (batch.every((message) => message.kind !== 'request' && message.kind !== 'invalid')) {
      for (const message of batch) messages.accept(context, session, message)
      return sendAccepted(context.raw, context.headers)
    }
    await reply(context, session, accepts, async ({ push }) => {
      const answers = await Promise.all(
        batch.map(async (message, at) => {
          if (message.kind === 'request') return await messages.run(context, session, message, push)
          if (message.kind === 'invalid') {
            settleInvalidResponse(session, body[at], message.id)
            const { message: text } = invalidMessage(message.reason)
            return errorMessage(message.id, { code: rpcCodes.invalidRequest, message: text })
          }
          messages.accept(context, session, message)
          return undefined
        })
      )
      const given = answers.filter((message) => message !== undefined)
      return given.length === 0 ? undefined : given
    })
  }

  /** @param answer resolves with the last message, or undefined where there is none. It never rejects */
  async function reply(
    context: RequestContext,
    session: LiveSession,
    accepts: Accepts,
    answer: (reply: LegacyReply) => Promise<unknown>
  ): Promise<void> {
    refuseOverBacklog(session)
    const { raw, headers, snapshot } = context
    const stored = session.session
    const opened = createLegacyReply({
      raw,
      accepts,
      headers,
      openStream: () => streams.open(session.key, 'call', streamFeaturesOf(stored)),
      onOverflow: () => logSlowReader(log, context),
      pauseMs: snapshot.limits.streamMs,
      clock
    })
    const stop = watchCall(context, session, opened)
    let final: unknown
    try {
      final = await answer(opened)
    } finally {
      stop()
    }
    if (final === undefined) opened.endSilently()
    else opened.end(final)
    if (opened.backlogBytes() > smallBacklogBytes) trackBacklog(session, raw, opened.backlogBytes)
  }

  /**
   * A call that takes long starts its stream, so that messages can precede its answer, and so that from 2025-11-25 on
   * the client learns where to come back to if the connection breaks. A caller whose token is no longer good gets no
   * answer.
   */
  function watchCall(context: RequestContext, session: LiveSession, reply: LegacyReply): () => void {
    let beats = 0
    const stop = revalidator.watch({
      credential: context,
      sessionExists: () => sessionExists(context, sessions),
      beat() {
        if (beats++ > 0) reply.beat()
      },
      onInvalid() {
        // An expired token does not end a call whose connection is gone: its client comes back with a newer token. A
        // connection that another one has taken over from is ended, not destroyed.
        const { raw } = context
        if ((raw.destroyed || raw.writableEnded) && clock.now() >= context.validUntil) return
        for (const call of session.calls) if (call.push === reply.push) call.end(noLongerAccepted())
      }
    })
    if (!atLeast(session.session.record.revision, '2025-11-25')) return stop
    const early = clock.timer(quietMs, () => reply.beat())
    return () => {
      stop()
      early.close()
    }
  }
}
