// The stream that a session opens by GET, or comes back to (2025-11-25 basic/transports "Listening for Messages from
// the Server", "Resumability and Redelivery").

import { atLeast, GatewayError } from '../../protocol/messages.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { Attachment, Sink } from '../../session/stream.ts'
import { type RequestContext } from '../admission.ts'
import { refuseOverBacklog, trackBacklog } from '../backlog.ts'
import { createSseWriter, sseHeaders } from '../reply.ts'
import { countUnread } from '../request-memory.ts'
import { pauseAfter, sessionExists, type StreamableOptions } from './streams.ts'

/**
 * Answers a GET by a stream, which ends when its caller would no longer be let in.
 * @throws GatewayError invalid_request, unavailable, too_many, session_unknown
 */
export async function answerGet(
  options: StreamableOptions,
  context: RequestContext,
  session: LiveSession
): Promise<void> {
  const { relay, sessions, revalidator, clock, calls, observers, replicas } = options
  const { sessionBus } = replicas
  const { raw } = context
  // 'close' has been emitted already where the client left during the checks, and would not be emitted again.
  if (raw.destroyed) return
  refuseOverBacklog(session)
  calls.listen(context)
  trackBacklog(session, raw, () => raw.writableLength)
  const writer = createSseWriter(context, observers.log)
  const end = (): void => {
    writer.end()
    countUnread(context)
  }
  const gone = new AbortController()
  let attachment: Attachment | undefined
  // Watched before anything is sent: replaying what is held may take long, and is for valid callers only.
  const stop = revalidator.watch({
    credential: context,
    sessionExists: () => sessionExists(context, sessions),
    beat() {
      if (raw.headersSent) writer.beat()
    },
    onValid() {
      relay.touch(context, session)
      void sessionBus.announce(session, false)
    },
    onInvalid() {
      gone.abort()
      if (raw.headersSent) end()
    }
  })
  const leave = (): void => {
    stop()
    gone.abort()
    if (attachment === undefined) return
    attachment.detach()
    session.flushListChanges()
    void sessionBus.announce(session, false)
  }
  raw.once('close', leave)
  // The head goes out with the first event: until then, the answer can still be a refusal.
  const start = (): void => {
    if (raw.headersSent) return
    raw.writeHead(200, { ...context.headers, ...sseHeaders })
    // Headers alone can sit in a proxy until the first byte of the body.
    writer.comment('open')
  }
  const sink: Sink = {
    ...writer,
    event(id, data) {
      start()
      if (attachment === undefined && data !== undefined && context.replayed !== undefined) context.replayed++
      // A stream outlives the check of its token: nothing is sent on it after the token has expired.
      if (clock.now() < context.validUntil) return writer.event(id, data)
      end()
      return true
    },
    pause(id, retryMs) {
      start()
      writer.pause(id, retryMs)
      countUnread(context)
    },
    end() {
      start()
      end()
    }
  }
  try {
    attachment = await attach(options, context, session, sink, start, gone.signal)
  } catch (err) {
    if (!raw.headersSent) throw err
    leave()
    end()
    const { tenant, endpoint, requestId } = context
    const place = { tenant: tenant.id, endpoint: endpoint.name, requestId }
    observers.log.warn({ err, ...place }, 'what a stream had missed could not be sent; closed, its client comes back')
  }
  // 'close' may have come before there was something to detach.
  if (raw.destroyed) leave()
}

/**
 * Connects a GET to a stream: the one that `Last-Event-ID` names, else a new one of the session.
 * @returns undefined where the request is answered already
 */
async function attach(
  { streams, clock, replicas: { sessionBus } }: StreamableOptions,
  context: RequestContext,
  session: LiveSession,
  sink: Sink,
  start: () => void,
  gone: AbortSignal
): Promise<Attachment | undefined> {
  const { raw, headers } = context
  const features = {
    primes: atLeast(session.session.record.revision, '2025-11-25'),
    memory: context.memory.share,
    requestId: context.requestId
  }
  const lastEventId = context.incoming.headers['last-event-id']
  if (lastEventId === undefined) {
    const stream = streams.open(session.key, 'session', features)
    stream.prime()
    session.setStream(stream)
    // A client that sees its stream may count on it: what it asks for then must not be told on the one before.
    await sessionBus.announce(session, true, true)
    start()
    const attachment = stream.resume(sink, features.primes ? 0 : -1)
    session.flushListChanges()
    return attachment
  }
  context.replayed = 0
  const resumed = await streams.resume(session.key, String(lastEventId), sink, features, gone, async (stream) => {
    // A client that left meanwhile must not take over from a stream that somebody reads.
    if (raw.destroyed) return stream.finish()
    session.setStream(stream)
    await sessionBus.announce(session, true, true)
  })
  if (resumed.kind === 'stopped') {
    if (raw.headersSent) sink.end()
    if (raw.headersSent || raw.destroyed) return undefined
    // A caller that would not be let in now is refused for that.
    await context.revalidate()
    throw new GatewayError(
      'session_unknown',
      'The session of the client ended. Send a new initialize without a session id.'
    )
  }
  if (resumed.kind === 'unknown')
    throw new GatewayError(
      'invalid_request',
      'The Last-Event-ID is none of this session, or too old to resume from. Open a new stream without it, and ' +
        'repeat requests that were not answered.'
    )
  // As for an EventSource (HTML, "Server-sent events"): 204 ends the reconnecting, which an empty stream would not.
  if (resumed.kind === 'over') return void raw.writeHead(204, { ...headers }).end()
  start()
  if (resumed.kind === 'replayed') return undefined
  if (resumed.kind === 'connected' && resumed.of === 'call')
    pauseAfter(clock, context.snapshot.limits.streamMs, raw, resumed.attachment)
  session.flushListChanges()
  void sessionBus.announce(session, resumed.kind === 'connected')
  return resumed.attachment
}
