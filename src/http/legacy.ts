// The door for the handshake revisions over Streamable HTTP: POST, GET and DELETE of one endpoint (2025-11-25 basic/transports).

import { GatewayError, errorObject } from '../protocol/errors.ts'
import { classifyMessage, errorMessage } from '../protocol/messages.ts'
import { atLeast } from '../protocol/revisions.ts'
import type { LiveSession } from '../session/live.ts'
import type { Session } from '../session/sessions.ts'
import type { Streams } from '../session/streams.ts'
import { readAccept } from './accept.ts'
import { botchedAnswer, createAnswerer, settleBotched } from './answer.ts'
import type { AnswererOptions } from './answer.ts'
import { checkRevision, createHandshake } from './handshake.ts'
import type { HandshakeOptions } from './handshake.ts'
import { createListening, tellUnread, visitor, wishesOf } from './listening.ts'
import { createReply, sendAccepted } from './reply.ts'
import type { Reply } from './reply.ts'
import type { KeepAlive } from './stream.ts'
import { checkUnread, countUnread, unreadBytes } from './unread.ts'
import type { Visit } from './visit.ts'
import { createWelcome, noLongerWelcome, validUntil } from './welcome.ts'

export interface DoorOptions extends HandshakeOptions, AnswererOptions {
  readonly keepAlive: KeepAlive
  readonly clock: { now (): number }
  readonly streams: Streams
}

export interface LegacyDoor {
  post (visit: Visit, body: unknown): Promise<void>
  get (visit: Visit): Promise<void>
  remove (visit: Visit): Promise<void>
  /** The configuration changed: ends calls and streams of those who would not be let in any more. */
  recheckAll (): void
}

/** How long a call may be silent before it answers by a stream. */
const quietMs = 1_000

export function createLegacyDoor (options: DoorOptions): LegacyDoor {
  const { sessions, live, streams, clock, log } = options
  const welcome = createWelcome(options)
  const { initialize, sessionOf } = createHandshake(options)
  const { answer, take } = createAnswerer(options)
  const listen = createListening({ ...options, welcome })

  function replyTo (visit: Visit, session: Session): Reply {
    return createReply({
      raw: visit.raw,
      accepts: readAccept(visit.incoming.headers.accept),
      headers: visit.headers,
      openStream: () => streams.open(session.key, 'call', wishesOf(session)),
      onOverflow: () => tellUnread(visit, log),
      pauseMs: visit.snapshot.limits.streamMs
    })
  }

  /**
   * A call that takes long starts its stream: something can be said while it runs, and from 2025-11-25 on the client learns where to
   * come back to if the connection breaks. Whose token is no longer good gets no answer.
   */
  function whileRunning (visit: Visit, session: LiveSession, reply: Reply): () => void {
    let beats = 0
    const stop = welcome.attend({
      ...visitor(visit, sessions),
      beat () { if (beats++ > 0) reply.beat() },
      onWelcome () {},
      onUnwelcome () {
        // Whoever comes back for it shows a newer token. What was taken away is not for anybody to come back for.
        // Its own connection is ended, not destroyed, where somebody came back before its end was noticed.
        if ((visit.raw.destroyed || visit.raw.writableEnded) && clock.now() >= validUntil(visit)) return
        for (const call of session.calls) if (call.push === reply.push) call.end(noLongerWelcome())
      }
    })
    const early = atLeast(session.session.record.revision, '2025-11-25') ? setTimeout(() => reply.beat(), quietMs) : undefined
    return () => {
      stop()
      clearTimeout(early)
    }
  }

  return {
    async post (visit, body) {
      const revisionHeader = checkRevision(visit)
      const accepts = readAccept(visit.incoming.headers.accept)
      if (!accepts.json && !accepts.stream) {
        throw new GatewayError('not_acceptable', 'The answer is application/json or text/event-stream; allow both in Accept.')
      }
      if (Array.isArray(body)) {
        const session = await sessionOf(visit)
        // Batches came with 2025-03-26 and went with 2025-06-18.
        if (session.record.revision !== '2025-03-26') throw new GatewayError('invalid_request', 'This session does not speak revision 2025-03-26, the only one with batches; send one message per request.')
        return await postBatch(visit, live.use(session), body)
      }
      const message = classifyMessage(body)
      if (message.kind === 'invalid') {
        const id = botchedAnswer(body, message.id)
        if (id !== undefined) settleBotched(live.use(await sessionOf(visit)), id)
        throw new GatewayError('invalid_request', `Not a JSON-RPC message: ${message.reason}.`)
      }
      if (message.kind === 'request' && message.request.method === 'initialize') return await initialize(visit, message.id, message.request.params)
      const session = await sessionOf(visit)
      if (revisionHeader !== undefined && revisionHeader !== session.record.revision) {
        log.debug({ header: revisionHeader, negotiated: session.record.revision }, 'the MCP-Protocol-Version header is not the negotiated one; answers follow the negotiated one')
      }
      const current = live.use(session)
      if (message.kind !== 'request') {
        take(visit, current, message)
        return sendAccepted(visit.raw, visit.headers)
      }
      checkUnread(current)
      const reply = replyTo(visit, session)
      const quiet = whileRunning(visit, current, reply)
      const final = await answer(visit, current, message, reply.push)
      quiet()
      if (final !== undefined) reply.end(final)
      else if (accepts.stream) reply.endSilently()
      // A cancelled request is not answered, but its HTTP request is; 202 would say that it was none.
      else reply.end(errorMessage(message.id, errorObject(new GatewayError('cancelled', 'The request was cancelled by its caller.'), visit.requestId)))
      if (reply.unread() > unreadBytes) countUnread(current, visit.raw, reply.unread)
    },

    async get (visit) {
      checkRevision(visit)
      if (!readAccept(visit.incoming.headers.accept).stream) throw new GatewayError('not_acceptable', 'GET opens the stream of a session; it needs Accept: text/event-stream.')
      await listen(visit, live.use(await sessionOf(visit)))
    },

    async remove (visit) {
      checkRevision(visit)
      const session = await sessionOf(visit)
      await sessions.end(session)
      visit.raw.writeHead(204, { ...visit.headers }).end()
    },

    recheckAll: welcome.recheckAll
  }

  async function postBatch (visit: Visit, session: LiveSession, body: readonly unknown[]): Promise<void> {
    const { batchMessages } = visit.snapshot.limits
    if (body.length === 0 || body.length > batchMessages) throw new GatewayError('invalid_request', `A batch has 1 to ${batchMessages} messages.`)
    const messages = body.map(classifyMessage)
    if (messages.some((message) => message.kind === 'request' && message.request.method === 'initialize')) {
      throw new GatewayError('invalid_request', 'initialize must not be part of a batch.')
    }
    if (messages.every((message) => message.kind !== 'request' && message.kind !== 'invalid')) {
      for (const message of messages) take(visit, session, message)
      return sendAccepted(visit.raw, visit.headers)
    }
    checkUnread(session)
    const reply = replyTo(visit, session.session)
    const quiet = whileRunning(visit, session, reply)
    const answers = await Promise.all(messages.map(async (message, at) => {
      if (message.kind === 'request') return await answer(visit, session, message, reply.push)
      if (message.kind === 'invalid') {
        const id = botchedAnswer(body[at], message.id)
        if (id !== undefined) settleBotched(session, id)
        return errorMessage(message.id, { code: -32600, message: `Not a JSON-RPC message: ${message.reason}.` })
      }
      take(visit, session, message)
      return undefined
    })).finally(quiet)
    const final = answers.filter((message) => message !== undefined)
    if (final.length === 0) reply.endSilently()
    else reply.end(final)
    if (reply.unread() > unreadBytes) countUnread(session, visit.raw, reply.unread)
  }
}
