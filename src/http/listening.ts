// The stream that a client opens by GET: of its session, or one that it comes back to (2025-11-25 basic/transports "Listening for Messages
// from the Server", "Resumability and Redelivery"). It ends when its caller would no longer be let in.

import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/errors.ts'
import { atLeast } from '../protocol/revisions.ts'
import type { Relay } from '../relay/relay.ts'
import type { LiveSession } from '../session/live.ts'
import type { Session, Sessions } from '../session/sessions.ts'
import type { Attachment, Sink } from '../session/stream.ts'
import type { Streams, StreamWishes } from '../session/streams.ts'
import { ownerOf } from './handshake.ts'
import { eventSink, streamHeaders } from './stream.ts'
import { checkUnread, countUnread } from './unread.ts'
import type { Visit } from './visit.ts'
import { validUntil } from './welcome.ts'
import type { Guest, Welcome } from './welcome.ts'

export interface ListeningOptions {
  readonly relay: Relay
  readonly sessions: Sessions
  readonly streams: Streams
  readonly welcome: Welcome
  readonly clock: { now (): number }
  readonly log: Log
}

/** @returns what answers a GET. It rejects with GatewayError invalid_request, unavailable */
export function createListening ({ relay, sessions, streams, welcome, clock, log }: ListeningOptions): (visit: Visit, session: LiveSession) => Promise<void> {
  return async (visit, session) => {
    const { raw } = visit
    // Gone while we looked: its end was told already, and would not be told again to what is attached below.
    if (raw.destroyed) return
    checkUnread(session)
    countUnread(session, raw, () => raw.writableLength)
    const sink = eventSink(raw, () => tellUnread(visit, log))
    const gone = new AbortController()
    let attachment: Attachment | undefined
    // Before anything is sent: what is kept may take its reader long, and is for nobody but a welcome guest either.
    const quiet = welcome.attend({
      ...visitor(visit, sessions),
      beat () { if (raw.headersSent) sink.comment('keep-alive') },
      onWelcome: () => relay.touch(visit, session),
      onUnwelcome () {
        gone.abort()
        if (raw.headersSent) sink.end()
      }
    })
    const leave = (): void => {
      quiet()
      gone.abort()
      if (attachment === undefined) return
      attachment.detach()
      session.heard()
    }
    raw.once('close', leave)
    attachment = await attach(visit, session, startingWith(welcomeWhileValid(visit, sink), () => {
      raw.writeHead(200, { ...visit.headers, ...streamHeaders })
      // Headers alone can sit in a proxy until the first byte of the body.
      sink.comment('open')
    }), gone.signal)
    // Its end may have been told before there was something to detach.
    if (raw.destroyed) leave()
  }

  /** Connects a GET to a stream: the one that `Last-Event-ID` names, else a new one of the session. @returns undefined where it is answered already */
  async function attach (visit: Visit, session: LiveSession, sink: Sink & { start (): void }, gone: AbortSignal): Promise<Attachment | undefined> {
    const wishes = wishesOf(session.session)
    const lastEventId = visit.incoming.headers['last-event-id']
    if (lastEventId === undefined) {
      sink.start()
      const stream = streams.open(session.key, 'session', wishes)
      const attachment = stream.attach(sink)
      stream.prime()
      session.listen(stream)
      return attachment
    }
    const resumed = await streams.resume(session.key, String(lastEventId), sink, wishes, gone)
    if (resumed.kind === 'stopped') {
      if (visit.raw.headersSent) sink.end()
      else if (!visit.raw.destroyed) {
        // Its own refusal is told to a caller that would not be let in now.
        await visit.recheck()
        throw new GatewayError('session_unknown', 'The session of the client ended. Send a new initialize without a session id.')
      }
      return undefined
    }
    if (resumed.kind === 'unknown') {
      throw new GatewayError('invalid_request', 'The Last-Event-ID is none of this session, or too old to resume from. Open a new stream without it, and repeat requests that were not answered.')
    }
    if (resumed.kind === 'over') {
      // As for an EventSource (HTML, "Server-sent events"): 204 ends the coming back. An empty stream would be come back for, again and again.
      visit.raw.writeHead(204, { ...visit.headers }).end()
      return undefined
    }
    sink.start()
    if (resumed.kind === 'replayed') return undefined
    const { attachment } = resumed
    if (resumed.kind === 'continued') {
      resumed.stream.prime()
      // Gone while the store was asked: it must not take over from a stream that somebody reads.
      if (visit.raw.destroyed) resumed.stream.finish()
      else session.listen(resumed.stream)
    } else if (resumed.of === 'call') {
      const { streamMs } = visit.snapshot.limits
      const late = streamMs > 0 ? setTimeout(() => attachment.pause(), streamMs) : undefined
      visit.raw.once('close', () => clearTimeout(late))
    }
    session.heard()
    return attachment
  }

  /** A stream outlives the check of its token: nothing is sent on it after the token has expired. */
  function welcomeWhileValid (visit: Visit, sink: Sink): Sink {
    const until = validUntil(visit)
    if (until === Infinity) return sink
    return {
      ...sink,
      event (id, data) {
        if (clock.now() < until) return sink.event(id, data)
        sink.end()
        return true
      }
    }
  }
}

/** The caller of a request that named its session by header. */
export function visitor (visit: Visit, sessions: Sessions): Pick<Guest, 'recheck' | 'alive' | 'validUntil'> {
  return {
    recheck: visit.recheck,
    alive: async () => await sessions.load(String(visit.incoming.headers['mcp-session-id']), ownerOf(visit), visit.endpoint.name) !== undefined,
    validUntil: () => validUntil(visit)
  }
}

export function tellUnread ({ tenant, endpoint }: Visit, log: Log): void {
  log.warn({ tenant: tenant.id, endpoint: endpoint.name }, 'a client did not read its stream; closed')
}

/** From 2025-11-25 on, clients can take an event that only tells them where to come back to. */
export const wishesOf = ({ record }: Session): StreamWishes => ({ primes: atLeast(record.revision, '2025-11-25') })

/** The head of the answer goes out with the first event: until then, it can still be a refusal. */
function startingWith (sink: Sink, begin: () => void): Sink & { start (): void } {
  let begun = false
  const start = (): void => {
    if (!begun) begin()
    begun = true
  }
  return {
    start,
    event (id, data) {
      start()
      return sink.event(id, data)
    },
    drained: () => sink.drained(),
    pause (id, retryMs) {
      start()
      sink.pause(id, retryMs)
    },
    end () {
      start()
      sink.end()
    },
    overflow: () => sink.overflow()
  }
}
