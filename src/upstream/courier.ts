// Carries calls over Streamable HTTP: a POST each, its answer as JSON or as a stream, a stream that ends early resumed where the
// server made that possible. A call is sent again in one case only: a 404 for the session proves that it was not executed.

import { deliver } from './delivery.ts'
import { isRpcError } from './endings.ts'
import { failureError, lostError } from './refusals.ts'
import { GatewayError } from '../protocol/errors.ts'
import { isObject } from '../protocol/messages.ts'
import type { Dispatcher } from 'undici'
import type { UpstreamName } from '../protocol/ids.ts'
import type { Clock } from './clock.ts'
import type { Abort, DeliverySink, Outcome } from './delivery.ts'
import type { Exchange } from './exchange.ts'

/** An upstream session, as the requests of it carry it. A new handshake makes a new one. */
export interface HttpSession {
  readonly id: string | undefined
  /** Headers of every request, names and values in turn. */
  readonly common: readonly string[]
  /** Headers of a POST. */
  readonly post: string[]
}

export interface CourierOptions {
  readonly name: UpstreamName
  readonly dispatcher: Dispatcher
  readonly path: string
  /** Origin, for messages. */
  readonly place: string
  readonly maxBytes: number
  readonly clock: Clock
  exchange (): Exchange
  /** The session that requests go out with now. */
  session (): HttpSession
  /** Makes a new session unless somebody has done so since. Rejects with what this call is to be told. */
  heal (dead: HttpSession, id: number): Promise<void>
  /** The server refused the call as servers of a newer era do. @returns whether that is so, and the call has been told */
  upgraded (session: HttpSession, id: number, code: number): boolean
  /** The server refused something of this session as a bad request: does it still know the session? */
  doubt (session: HttpSession): void
}

export interface Courier {
  /** `begun`: of the handshake, whose answer carries the session id. */
  carry (id: number, body: string, session: HttpSession, begun?: (sessionId: string | undefined) => void): void
  drop (id: number): void
}

/** Without `retry` from the server. */
const defaultRetryMs = 1_000
/** 2025-11-25: the client MUST respect `retry`. Longer than this, the call's own time has run out anyway. */
const longestRetryMs = 24 * 3_600_000
/** Attempts in a row that bring nothing new. */
const maxResumes = 5
/** A server closes the stream after its answer; one that does not is not waited for. */
const lingerMs = 1_000

interface Stream {
  lastEventId: string | undefined
  retryMs: number
  resumes: number
}

export function createCourier (options: CourierOptions): Courier {
  const { name, dispatcher, path, place, maxBytes, clock } = options
  const open = new Map<number, Abort>()

  /** What reading an answer does to the call, whichever request brings it. */
  function sinkFor (id: number, stream: Stream, begun: ((sessionId: string | undefined) => void) | undefined, end: (outcome: Outcome) => void): DeliverySink {
    const exchange = options.exchange()
    let streaming = false
    let lingering = false
    return {
      begin (sessionId, streamed) {
        streaming = streamed
        begun?.(sessionId)
      },
      message (value) {
        stream.resumes = 0
        exchange.receive(value, id)
        // Once: a server may send without end after its answer.
        if (lingering || !streaming || exchange.waiting(id)) return
        lingering = true
        linger(id)
      },
      id (eventId) {
        stream.lastEventId = eventId
        stream.resumes = 0
        exchange.heard(id)
      },
      retry (ms) { stream.retryMs = Math.min(ms, longestRetryMs) },
      end (outcome) {
        open.delete(id)
        if (exchange.waiting(id)) end(outcome)
      }
    }
  }

  function linger (id: number): void {
    const abort = open.get(id)
    if (abort === undefined) return
    const timer = clock.timer(lingerMs, () => {
      if (open.get(id) === abort) drop(id)
    })
    timer.unref()
  }

  function track (id: number, abort: Abort): void {
    // It may have ended before we got here.
    if (options.exchange().waiting(id)) open.set(id, abort)
  }

  function drop (id: number): void {
    open.get(id)?.()
    open.delete(id)
  }

  function carry (id: number, body: string, session: HttpSession, begun?: (sessionId: string | undefined) => void, again = false): void {
    const stream: Stream = { lastEventId: undefined, retryMs: defaultRetryMs, resumes: 0 }
    /** Until the server has begun to answer. */
    const kept = { body }
    const accepted = (sessionId: string | undefined): void => {
      kept.body = ''
      begun?.(sessionId)
    }
    track(id, deliver({ dispatcher, path, method: 'POST', headers: session.post, body, maxBytes }, sinkFor(id, stream, accepted, (outcome) => {
      // Which is what no 2xx becomes, however it ends.
      if (outcome.kind === 'refused') return refused(id, kept.body, session, outcome, again)
      if (outcome.kind === 'broken' || outcome.kind === 'answered') return brokenOff(id, session, stream, outcome)
      options.exchange().fail(id, failureError(name, place, outcome))
    })))
  }

  function refused (id: number, body: string, session: HttpSession, outcome: Outcome & { kind: 'refused' }, again: boolean): void {
    const exchange = options.exchange()
    const { status } = outcome
    if (status === 404 && session.id !== undefined) {
      if (again) {
        return exchange.fail(id, new GatewayError('upstream_unavailable', `Upstream ${name} forgot its session (HTTP 404) twice in a row; the request was not executed.`, { data: { upstream: name, status } }))
      }
      options.heal(session, id).then(
        () => { if (exchange.waiting(id)) carry(id, body, options.session(), undefined, true) },
        (error: unknown) => exchange.fail(id, error as Error)
      )
      return
    }
    const error = isObject(outcome.body) ? outcome.body['error'] : undefined
    if (status === 400 && isRpcError(error) && options.upgraded(session, id, error.code)) return
    if (status === 400 && session.id !== undefined) options.doubt(session)
    // The server's own error for this very request says more than the status.
    if (status < 500 && status !== 401 && status !== 403 && isObject(outcome.body) && outcome.body['id'] === id) exchange.receive(outcome.body, id)
    exchange.fail(id, failureError(name, place, outcome))
  }

  function brokenOff (id: number, session: HttpSession, stream: Stream, outcome: Outcome & { kind: 'broken' | 'answered' }): void {
    if (stream.lastEventId !== undefined && stream.resumes < maxResumes) return resume(id, session, stream)
    const error = outcome.kind === 'broken'
      ? failureError(name, place, outcome)
      : outcome.streamed
        ? lostError(name, 'ended before its answer came')
        : failureError(name, place, { kind: 'garbled', reason: `it holds no response to the request (HTTP ${outcome.status})` })
    options.exchange().fail(id, error)
  }

  /** 2025-11-25 "Resumability and Redelivery": always by GET, on the stream that the event id belongs to. Nothing is executed twice. */
  function resume (id: number, session: HttpSession, stream: Stream): void {
    stream.resumes++
    const timer = clock.timer(stream.retryMs, () => {
      const headers = ['accept', 'text/event-stream', 'last-event-id', stream.lastEventId ?? '', ...session.common]
      track(id, deliver({ dispatcher, path, method: 'GET', headers, body: null, maxBytes }, sinkFor(id, stream, undefined, (outcome) => {
        if (outcome.kind !== 'refused' && outcome.kind !== 'garbled' && stream.resumes < maxResumes) return resume(id, session, stream)
        options.exchange().fail(id, lostError(name, 'ended before its answer came, and could not be resumed'))
      })))
    })
    open.set(id, () => { timer.close() })
  }

  return { carry, drop }
}
