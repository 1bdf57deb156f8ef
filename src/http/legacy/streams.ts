// What a session over Streamable HTTP is sent: the answer to a POST, and the stream that a GET opens or comes back to
// (2025-11-25 basic/transports "Listening for Messages from the Server", "Resumability and Redelivery").

import type { ServerResponse } from 'node:http'
import { atLeast, GatewayError, type JsonObject } from '../../protocol/messages.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Attachment, ClientStream, Sink } from '../../session/stream.ts'
import type { Streams } from '../../session/streams.ts'
import type { Clock } from '../../time/clock.ts'
import { type RequestContext } from '../admission.ts'
import { noLongerAccepted } from '../revalidation.ts'
import { refuseOverBacklog, smallBacklogBytes, trackBacklog } from '../backlog.ts'
import type { Accepts } from '../headers.ts'
import { createSseWriter, sendAccepted, sendText, sseHeaders, type SseWriter } from '../reply.ts'
import { countUnread } from '../request-memory.ts'
import type { LegacyOptions } from './messages.ts'

export interface StreamableOptions extends LegacyOptions {
  readonly streams: Streams
}

/** How long a call may be silent before it answers by a stream. */
const quietMs = 1_000

/**
 * Answers a POST: by a single JSON object while nothing was streamed, by a stream from the first message on. A caller
 * whose token is no longer good gets no answer.
 * @param produce resolves with the text of the last message, undefined where the caller cancelled and expects none;
 * never rejects. Its `push` returns false where the caller takes only JSON, has gone before the stream began, or has
 * its result
 */
export async function answerPost(
  { sessions, streams, revalidator, clock, log }: StreamableOptions,
  context: RequestContext,
  session: LiveSession,
  accepts: Accepts,
  produce: (push: (message: JsonObject) => boolean) => Promise<JsonText | undefined>
): Promise<void> {
  refuseOverBacklog(session)
  const { raw, headers, snapshot } = context
  // From this revision on, clients can take an event that only tells them where to come back to.
  const primes = atLeast(session.session.record.revision, '2025-11-25')
  let stream: ClientStream | undefined
  let writer: SseWriter | undefined
  let ended = false

  const start = (): ClientStream | undefined => {
    if (stream !== undefined || !accepts.stream || raw.headersSent || raw.destroyed) return stream
    raw.writeHead(200, { ...headers, ...sseHeaders })
    stream = streams.open(session.key, 'call', { primes, memory: context.memory.share })
    writer = createSseWriter(context, log)
    const attachment = stream.attach(writer)
    stream.prime()
    pauseAfter(clock, snapshot.limits.streamMs, raw, attachment)
    raw.once('close', () => attachment.detach())
    return stream
  }
  const push = (message: unknown): boolean => {
    if (ended) return false
    const opened = start()
    opened?.send(message)
    return opened !== undefined
  }
  const beat = (): void => {
    start()
    writer?.beat()
  }

  let beats = 0
  const stop = revalidator.watch({
    credential: context,
    sessionExists: () => sessionExists(context, sessions),
    beat() {
      if (beats++ > 0) beat()
    },
    onInvalid() {
      // An expired token does not end a call whose connection is gone: its client comes back with a newer token. A
      // connection that another one has taken over from is ended, not destroyed.
      if ((raw.destroyed || raw.writableEnded) && clock.now() >= context.validUntil) return
      for (const call of session.calls) if (call.push === push) call.end(noLongerAccepted())
    }
  })
  // A call that takes long starts its stream, so that messages can precede its answer, and the client learns where to
  // come back to if the connection breaks.
  const early = primes ? clock.timer(quietMs, beat) : undefined
  let final: JsonText | undefined
  try {
    final = await produce(push)
  } finally {
    stop()
    early?.close()
  }
  ended = true
  if (final !== undefined && stream === undefined && (raw.destroyed || accepts.json)) sendText(raw, 200, final, headers)
  else {
    // A request is answered by JSON or a stream (2025-11-25 basic/transports), so by an empty stream where there is
    // no message.
    const opened = start()
    if (final !== undefined) opened?.answer(final)
    if (opened !== undefined) opened.finish()
    else if (!raw.headersSent && !raw.destroyed) sendAccepted(raw, headers)
  }
  const backlogBytes = (): number => (raw.destroyed ? 0 : raw.writableLength + (stream?.pendingChars ?? 0))
  if (backlogBytes() > smallBacklogBytes) trackBacklog(session, raw, backlogBytes)
}

/**
 * Answers a GET by a stream, which ends when its caller would no longer be let in.
 * @throws GatewayError invalid_request, unavailable, too_many, session_unknown
 */
export async function answerGet(
  options: StreamableOptions,
  context: RequestContext,
  session: LiveSession
): Promise<void> {
  const { relay, sessions, revalidator, clock, log } = options
  const { raw } = context
  // 'close' has been emitted already where the client left during the checks, and would not be emitted again.
  if (raw.destroyed) return
  refuseOverBacklog(session)
  trackBacklog(session, raw, () => raw.writableLength)
  const writer = createSseWriter(context, log)
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
    onValid: () => relay.touch(context, session),
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
  attachment = await attach(options, context, session, sink, start, gone.signal)
  // 'close' may have come before there was something to detach.
  if (raw.destroyed) leave()
}

/**
 * Connects a GET to a stream: the one that `Last-Event-ID` names, else a new one of the session.
 * @returns undefined where the request is answered already
 */
async function attach(
  { streams, clock }: StreamableOptions,
  context: RequestContext,
  session: LiveSession,
  sink: Sink,
  start: () => void,
  gone: AbortSignal
): Promise<Attachment | undefined> {
  const { raw, headers } = context
  const features = {
    primes: atLeast(session.session.record.revision, '2025-11-25'),
    memory: context.memory.share
  }
  const lastEventId = context.incoming.headers['last-event-id']
  if (lastEventId === undefined) {
    start()
    const stream = streams.open(session.key, 'session', features)
    const attachment = stream.attach(sink)
    stream.prime()
    session.setStream(stream)
    return attachment
  }
  const resumed = await streams.resume(session.key, String(lastEventId), sink, features, gone)
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
  if (resumed.kind === 'continued') {
    resumed.stream.prime()
    // A client that left meanwhile must not take over from a stream that somebody reads.
    if (raw.destroyed) resumed.stream.finish()
    else session.setStream(resumed.stream)
  } else if (resumed.of === 'call') pauseAfter(clock, context.snapshot.limits.streamMs, raw, resumed.attachment)
  session.flushListChanges()
  return resumed.attachment
}

/** Closes the connection of a stream after so long, for a client that can to come back. 0: never. */
function pauseAfter(clock: Clock, ms: number, raw: ServerResponse, attachment: Attachment): void {
  if (ms === 0) return
  const timer = clock.timer(ms, () => attachment.pause())
  raw.once('close', () => timer.close())
}

/** @returns whether the session that a request names by header still exists. Loading it keeps it alive */
export async function sessionExists({ incoming, principal, endpoint }: RequestContext, sessions: Sessions) {
  return (await sessions.load(String(incoming.headers['mcp-session-id']), principal, endpoint.name)) !== undefined
}
