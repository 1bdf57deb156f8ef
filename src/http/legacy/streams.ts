// The answer to a POST of a session over Streamable HTTP: JSON or a stream (2025-11-25 basic/transports).

import type { Audit } from '../../audit/audit.ts'
import { atLeast, type JsonObject, type RequestId } from '../../protocol/messages.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Attachment, ClientStream } from '../../session/stream.ts'
import type { Streams } from '../../session/streams.ts'
import type { Clock } from '../../time/clock.ts'
import { type RequestContext } from '../admission.ts'
import { noLongerAccepted } from '../revalidation.ts'
import { refuseOverBacklog, smallBacklogBytes, trackBacklog } from '../backlog.ts'
import type { Accepts } from '../headers.ts'
import { type ClientReply, createSseWriter, sendAccepted, sendText, sseHeaders, type SseWriter } from '../reply.ts'
import type { LegacyOptions } from './messages.ts'

export interface StreamableOptions extends LegacyOptions {
  readonly streams: Streams
  readonly audit: Audit | undefined
}

/** How long a call may be silent before it answers by a stream. */
const quietMs = 1_000

/**
 * Answers a POST: by a single JSON object while nothing was streamed, by a stream from the first message on. A caller
 * whose token is no longer good gets no answer.
 * @param id of the request; undefined for a batch
 * @param produce resolves with the text of the last message, undefined where the caller cancelled and expects none;
 * rejects only while nothing was sent. Its `push` returns false where the caller takes only JSON, has gone before the
 * stream began, or has its result
 */
export async function answerPost(
  { sessions, streams, revalidator, clock, observers: { log } }: StreamableOptions,
  context: RequestContext,
  session: LiveSession,
  accepts: Accepts,
  id: RequestId | undefined,
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
    const request = id === undefined ? {} : { request: id }
    stream = streams.open(session.key, 'call', { primes, memory: context.memory.share, ...request })
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
  const backlogBytes = (): number => (raw.destroyed ? 0 : raw.writableLength + (stream?.pendingChars() ?? 0))
  if (backlogBytes() > smallBacklogBytes) trackBacklog(session, raw, backlogBytes)
}

/** @returns whether the session that a request names by header still exists. Loading it keeps it alive */
export async function sessionExists({ incoming, principal, endpoint }: RequestContext, sessions: Sessions) {
  return (await sessions.load(String(incoming.headers['mcp-session-id']), principal, endpoint.name)) !== undefined
}

/** Closes the connection of a stream after so long, for a client that can to come back. 0: never. */
export function pauseAfter(clock: Clock, ms: number, raw: ClientReply, attachment: Attachment): void {
  if (ms === 0) return
  const timer = clock.timer(ms, () => attachment.pause())
  raw.once('close', () => timer.close())
}
