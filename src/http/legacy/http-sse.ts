// Handles the transport of 2024-11-05, HTTP+SSE: a client opens a stream, is told where to post, and gets every message
// on the stream (2024-11-05 basic/transports). Stream and session are one: neither outlives the other.

import type { Audit } from '../../audit/audit.ts'
import { GatewayError, type Message } from '../../protocol/messages.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { NegotiatedClient } from '../../session/session-record.ts'
import type { Session } from '../../session/sessions.ts'
import { pathOf, type RequestContext } from '../admission.ts'
import { refuseOverBacklog } from '../backlog.ts'
import { batchedContext, refuseIdsInFlight } from '../calls-in-flight.ts'
import { checkRevision, checkTakesStream } from '../headers.ts'
import { sendAccepted, stopping } from '../reply.ts'
import { holdRequest } from '../request-memory.ts'
import {
  findHttpSseSession,
  openHttpSseStream,
  readHttpSseBody,
  sessionEnded,
  type HttpSsePost,
  type HttpSseSession
} from './http-sse-session.ts'
import { answerEarly, initializeHttpSse } from './http-sse-handshake.ts'
import { forwardHttpSsePosts, httpSseIdOf } from './http-sse-forward.ts'
import { measureSession, ownerOf } from './initialize.ts'
import { isRequest } from './batches.ts'
import { createSessionMessages, type LegacyOptions } from './messages.ts'

export interface HttpSseOptions extends LegacyOptions {
  readonly randomBytes: (size: number) => Buffer
  readonly audit: Audit | undefined
}

export type HttpSseHandler = ReturnType<typeof createHttpSseHandler>

/** Until `initialize` says who the client is. */
const unknownClient: NegotiatedClient = { revision: '2024-11-05', clientInfo: undefined, capabilities: {} }

const recordStays = 'the store is away: an ended session is taken out of it when it is back'

export function createHttpSseHandler(options: HttpSseOptions) {
  const { relay, sessions, live, revalidator, clock, calls, randomBytes, replicas, audit, observers } = options
  const messages = createSessionMessages(options)
  const entries = new Map<string, HttpSseSession>()
  const endings = new Set<Promise<void>>()
  const forwardPost = forwardHttpSsePosts(replicas, entries, take)
  let closed = false

  async function endSession(session: Session): Promise<void> {
    // First in this process, at once: calls and upstream connections end even while the store cannot be reached.
    live.drop(session.key)
    await sessions.end(session).catch((err: unknown) => observers.log.warn({ err }, recordStays))
  }

  function handle(
    context: HttpSsePost,
    session: LiveSession,
    stream: HttpSseSession['stream'],
    message: Message & { kind: 'request' }
  ): void {
    const release = stream.hold()
    // Its POST is answered already.
    const done = context.hold()
    // `run` never rejects.
    void messages.run(context, session, message, stream.send, true).then((final) => {
      // What waits to be read counts for the stream.
      done()
      if (final !== undefined) stream.answer(final)
      release()
    })
  }

  /**
   * A POST for a stream of this process: requests are answered on the stream.
   * @param accepted called before anything is run
   * @throws GatewayError invalid_request, session_unknown, unavailable
   */
  async function take(context: HttpSsePost, id: string, body: unknown, accepted: () => void): Promise<void> {
    const entry = await findHttpSseSession(entries, sessions, context, id)
    const { stream } = entry
    const given = readHttpSseBody(body, entry, options, context.snapshot.limits.batchMessages)
    if (!stream.isOpen() && given.some(({ kind }) => kind === 'request')) throw sessionEnded()
    if (entry.phase === 'ready') {
      if (given.some((message) => isRequest(message, 'initialize')))
        throw new GatewayError(
          'invalid_request',
          'This session is initialized already. Open another stream for another session.'
        )
      const session = live.use(entry.session, context.memory.share)
      if (given.some(({ kind }) => kind === 'request')) refuseOverBacklog(session)
      refuseIdsInFlight(session, given)
      const others = given.filter(isNoRequest)
      await Promise.all(others.map((message) => messages.accept(session, message)))
      accepted()
      given.forEach((message, at) => {
        const own = Array.isArray(body) ? batchedContext(context, at) : context
        if (message.kind === 'request') handle(own, session, stream, message)
      })
      return
    }
    const [first] = given
    if (entry.phase === 'new' && first !== undefined && isRequest(first, 'initialize')) {
      entry.phase = 'initializing'
      // It waits for lists of upstreams, with all that the client has sent.
      const held = [stream.hold(), context.hold()]
      accepted()
      return await initializeHttpSse(options, context, entry, first).finally(() => held.forEach((release) => release()))
    }
    // Clients of 2026-07-28 send server/discover first. After an error on the stream they try initialize; a refused
    // POST they take for a broken connection.
    const mayBeEarly = first !== undefined && (isRequest(first, 'ping') || isRequest(first, 'server/discover'))
    if (!mayBeEarly || (entry.phase !== 'new' && !isRequest(first, 'ping')))
      throw new GatewayError(
        'invalid_request',
        'This session is not initialized. Send initialize, once, and wait for its answer.'
      )
    accepted()
    await answerEarly(options, context, entry, first)
  }

  return {
    streams: entries as { readonly size: number },
    /** GET: opens session and stream. @throws GatewayError not_acceptable, too_many, unavailable, shutting_down */
    async open(context: RequestContext): Promise<void> {
      checkTakesStream(context.incoming.headers)
      const { raw, endpoint } = context
      const owner = ownerOf(context)
      calls.listen(context)
      // Before `initialize`: a stream costs something, so it counts for limits.sessionsPerPrincipal.
      const { id: recordId, session } = await sessions.open(owner, endpoint.name, unknownClient)
      context.sessionKey = session.key
      if (closed || raw.destroyed) {
        await endSession(session)
        if (raw.destroyed) return
        throw stopping()
      }
      // A POST that comes to another process is sent on to this one.
      const id = `${replicas.bus.node}-${randomBytes(32).toString('base64url')}`
      const ending = Promise.withResolvers<void>()
      endings.add(ending.promise)
      const messagesPath = `${pathOf(endpoint, 'messages')}?sessionId=${id}`
      const stream = openHttpSseStream(context, messagesPath, clock, observers.log, () => {
        stop()
        entries.delete(id)
        audit?.session('ended', context, entry.session.record)
        if (entry.phase === 'ready') measureSession(options, entry.session.record)
        void endSession(entry.session).then(() => {
          endings.delete(ending.promise)
          ending.resolve()
        })
      })
      const entry: HttpSseSession = { recordId, session, stream, phase: 'new' }
      entries.set(id, entry)
      audit?.session('opened', context, session.record)
      const stop = revalidator.watch({
        get credential() {
          return stream.credential
        },
        sessionExists: async () => (await sessions.load(recordId, owner, endpoint.name)) !== undefined,
        beat: stream.beat,
        onValid() {
          const current = live.get(session.key)
          if (current !== undefined) relay.touch(context, current)
        },
        onInvalid: stream.end
      })
    },

    /**
     * POST: requests are answered on the stream, which may be one of another process.
     * @throws GatewayError invalid_request, unsupported_version, session_unknown, unavailable
     */
    async post(context: RequestContext, body: unknown): Promise<void> {
      checkRevision(context.incoming.headers)
      const id = httpSseIdOf(context)
      if (await forwardPost(context, id, body)) return sendAccepted(context.raw, context.headers)
      const hold = (): (() => void) => holdRequest(context)
      await take({ ...context, hold }, id, body, () => sendAccepted(context.raw, context.headers))
    },

    /** Ends every stream as soon as its calls in flight are answered. Resolves when the last one has ended. */
    async close(): Promise<void> {
      closed = true
      for (const { stream } of entries.values()) stream.finish()
      await Promise.all(endings)
    }
  }
}

const isNoRequest = (message: Message): message is Exclude<Message, { kind: 'request' }> => message.kind !== 'request'
