// The stream that a client opens by GET: a new one of its session, or one that it comes back to (2025-11-25
// basic/transports "Listening for Messages from the Server", "Resumability and Redelivery"). It ends when its caller
// would no longer be let in.

import type { Log } from '../../observe/log.ts'
import { atLeast, GatewayError } from '../../protocol/messages.ts'
import type { LegacyRelay } from '../../relay/legacy-relay.ts'
import type { LiveSession } from '../../session/live-sessions.ts'
import type { Session, Sessions } from '../../session/sessions.ts'
import type { Attachment, Sink } from '../../session/stream.ts'
import type { StreamFeatures, Streams } from '../../session/streams.ts'
import type { Clock } from '../../time/clock.ts'
import { logSlowReader, refuseOverBacklog, trackBacklog } from '../backpressure.ts'
import type { RequestContext } from '../request-context.ts'
import type { Revalidator } from '../revalidation.ts'
import { createSseWriter, sseHeaders } from '../sse-writer.ts'
import { ownerOf } from './initialize.ts'
import { pauseAfter } from './legacy-reply.ts'

export interface LegacyGetStreamOptions {
  readonly relay: LegacyRelay
  readonly sessions: Sessions
  readonly streams: Streams
  readonly revalidator: Revalidator
  readonly clock: Clock
  readonly log: Log
}

/** @returns what answers a GET. It rejects with GatewayError invalid_request, unavailable, too_many, session_unknown */
export function createGetStream({
  relay,
  sessions,
  streams,
  revalidator,
  clock,
  log
}: LegacyGetStreamOptions): (context: RequestContext, session: LiveSession) => Promise<void> {
  return async (context, session) => {
    const { raw } = context
    // 'close' has been emitted already where the client left during the checks, and would not be emitted again.
    if (raw.destroyed) return
    refuseOverBacklog(session)
    trackBacklog(session, raw, () => raw.writableLength)
    const writer = createSseWriter(raw, () => logSlowReader(log, context))
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
        if (raw.headersSent) writer.end()
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
    const sink = startingSink(endAtExpiry(context, writer), () => {
      raw.writeHead(200, { ...context.headers, ...sseHeaders })
      // Headers alone can sit in a proxy until the first byte of the body.
      writer.comment('open')
    })
    attachment = await attach(context, session, sink, gone.signal)
    // 'close' may have come before there was something to detach.
    if (raw.destroyed) leave()
  }

  /**
   * Connects a GET to a stream: the one that `Last-Event-ID` names, else a new one of the session.
   * @returns undefined where the request is answered already
   */
  async function attach(
    context: RequestContext,
    session: LiveSession,
    sink: StartingSink,
    gone: AbortSignal
  ): Promise<Attachment | undefined> {
    const { raw, headers } = context
    const features = streamFeaturesOf(session.session)
    const lastEventId = context.incoming.headers['last-event-id']
    if (lastEventId === undefined) {
      sink.start()
      const stream = streams.open(session.key, 'session', features)
      const attachment = stream.attach(sink)
      stream.prime()
      session.setStream(stream)
      return attachment
    }
    const resumed = await streams.resume(session.key, String(lastEventId), sink, features, gone)
    switch (resumed.kind) {
      case 'stopped':
        if (raw.headersSent) sink.end()
        else if (!raw.destroyed) {
          // A caller that would not be let in now is refused for that.
          await context.revalidate()
          throw new GatewayError(
            'session_unknown',
            'The session of the client ended. Send a new initialize without a session id.'
          )
        }
        return undefined
      case 'unknown':
        throw new GatewayError(
          'invalid_request',
          'The Last-Event-ID is none of this session, or too old to resume from. Open a new stream without it, and ' +
            'repeat requests that were not answered.'
        )
      case 'over':
        // As for an EventSource (HTML, "Server-sent events"): 204 ends the reconnecting, which an empty stream would
        // not.
        raw.writeHead(204, { ...headers }).end()
        return undefined
      case 'replayed':
        sink.start()
        return undefined
      case 'continued':
        sink.start()
        resumed.stream.prime()
        // A client that left meanwhile must not take over from a stream that somebody reads.
        if (raw.destroyed) resumed.stream.finish()
        else session.setStream(resumed.stream)
        break
      case 'connected':
        sink.start()
        if (resumed.of === 'call') pauseAfter(clock, context.snapshot.limits.streamMs, raw, resumed.attachment)
    }
    session.flushListChanges()
    return resumed.attachment
  }

  /** A stream outlives the check of its token: nothing is sent on it after the token has expired. */
  function endAtExpiry({ validUntil }: RequestContext, sink: Sink): Sink {
    if (validUntil === Infinity) return sink
    return {
      ...sink,
      event(id, data) {
        if (clock.now() < validUntil) return sink.event(id, data)
        sink.end()
        return true
      }
    }
  }
}

/** @returns whether the session that a request names by header still exists. Loading it keeps it alive */
export async function sessionExists(context: RequestContext, sessions: Sessions): Promise<boolean> {
  const id = String(context.incoming.headers['mcp-session-id'])
  return (await sessions.load(id, ownerOf(context), context.endpoint.name)) !== undefined
}

/** From 2025-11-25 on, clients can take an event that only tells them where to come back to. */
export const streamFeaturesOf = ({ record }: Session): StreamFeatures => ({
  primes: atLeast(record.revision, '2025-11-25')
})

interface StartingSink extends Sink {
  start(): void
}

/** The head of the answer goes out with the first event: until then, the answer can still be a refusal. */
function startingSink(sink: Sink, begin: () => void): StartingSink {
  let begun = false
  const start = (): void => {
    if (!begun) begin()
    begun = true
  }
  return {
    ...sink,
    start,
    event(id, data) {
      start()
      return sink.event(id, data)
    },
    pause(id, retryMs) {
      start()
      sink.pause(id, retryMs)
    },
    end() {
      start()
      sink.end()
    }
  }
}
