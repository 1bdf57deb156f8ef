// The calls of a Streamable HTTP session: a POST each, whose stream is resumed where the server made that possible. A
// call is sent again in one case only: a 404 for the session proves that it was not executed.

import { failureError, isRpcError, lostError } from '../rpc/errors.ts'
import type { OpenTable } from '../../limits/open-table.ts'
import { textBytes } from '../../limits/memory.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import { GatewayError, isObject } from '../../protocol/messages.ts'
import { type HttpOutcome, noResponse } from './outcome.ts'
import { type HttpResponseSink, type OpenRequest, sendRequest } from './request.ts'
import type { SocketClaim } from './socket-pool.ts'
import type { Reconnect } from './sessions/reconnects.ts'
import { type HttpTarget, streamHeaders } from './target.ts'
import type { Clock, Timer } from '../../time/clock.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'

/** A session at a server, with the headers that its requests carry. A new handshake makes a new one. */
export interface HttpSession {
  readonly id: string | undefined
  /** The headers of every request, as they are sent. */
  readonly headers: string
  /** The headers of a POST. */
  readonly postHeaders: string
}

/** What all calls of a connection share. */
export interface StreamableCallContext {
  readonly target: HttpTarget
  readonly rpc: RpcClient
  readonly clock: Clock
  readonly open: OpenTable<StreamableCall>
  /** A new session in place of the one that the server forgot. Rejects with the error for this call. */
  renew(forgotten: HttpSession, id: number): Promise<HttpSession>
  /**
   * Called when the server refused the call with this JSON-RPC code. @returns true if only a server of the modern era
   * uses this code; the call has failed then
   */
  upgraded(session: HttpSession, id: number, code: number): boolean
  /** The server refused a request of this session: where the status may be due to the session, that is found out. */
  refused(session: HttpSession, status: number): void
}

/** The time to wait where the server sent no `retry`, in milliseconds. */
const defaultRetryMs = 1_000
/** A server may ask us back at once, but not in a tight loop. */
const minRetryMs = 50
/** 2025-11-25: the client MUST respect `retry`. After this time the call has timed out anyway. */
const maxRetryMs = 24 * 3_600_000
/** How often in a row a stream is resumed without a new event. */
const maxResumes = 5
/** How long the stream may stay open after the response, in milliseconds: then the gateway closes it. */
const lingerMs = 1_000

/** A class, because there is one instance for each call: methods of a class are not made anew each time. */
export class StreamableCall implements HttpResponseSink {
  private readonly connection: StreamableCallContext
  private readonly id: number
  private readonly session: HttpSession
  private readonly claim: SocketClaim
  /** The body, until the server has begun to answer, or has asked something about it. */
  private body: JsonText = ''
  private begun: ((sessionId: string | undefined) => void) | undefined
  private again = false
  private readonly traceHeaders: string
  private request: OpenRequest | undefined
  private timer: Pick<Timer, 'close'> | undefined
  private reconnect: Reconnect | undefined
  private streaming = false
  private answered = false
  private lastEventId: string | undefined
  private retryMs = defaultRetryMs
  private resumes = 0
  private resuming = false

  /** @param traceHeaders the lines of the trace headers of this call, each with its line end */
  constructor(
    connection: StreamableCallContext,
    id: number,
    session: HttpSession,
    claim: SocketClaim,
    traceHeaders = ''
  ) {
    this.connection = connection
    this.traceHeaders = traceHeaders
    this.id = id
    this.session = session
    this.claim = claim
  }

  /** @param begun for the handshake, whose answer carries the session id */
  post(body: JsonText, begun?: (sessionId: string | undefined) => void, again = false): void {
    this.body = body
    this.begun = begun
    this.again = again
    this.send({ method: 'POST', ...this.claim, headers: this.session.postHeaders + this.traceHeaders, body })
  }

  abort(): void {
    this.timer?.close()
    this.request?.abort()
    this.body = ''
  }

  /** What waits for a person does not keep the text meanwhile: nobody may count it any more. */
  asked(): void {
    if (this.request !== undefined) this.body = ''
  }

  begin(sessionId: string | undefined, streamed: boolean): void {
    this.streaming = streamed
    this.body = ''
    this.begun?.(sessionId)
    this.begun = undefined
  }

  /**
   * Reports the request as sent. In a session the text is kept until the server answers: after a 404 it is sent again.
   */
  written(): void {
    if (this.session.id === undefined) this.body = ''
    this.connection.rpc.written(this.id, textBytes(this.body))
  }

  message(value: unknown): void {
    const { rpc, clock, open } = this.connection
    this.resumes = 0
    rpc.receive(value, this.id)
    // The timer starts once: a server may send without end after its response.
    if (this.answered || !this.streaming || rpc.isOpen(this.id)) return
    this.answered = true
    if (open.get(this.id) !== this) return
    const timer = clock.timer(lingerMs, () => {
      open.delete(this.id)
      this.abort()
    })
    timer.unref()
    this.timer = timer
  }

  eventId(eventId: string): void {
    this.lastEventId = eventId
    this.resumes = 0
    this.connection.rpc.heard(this.id)
  }

  retry(ms: number): void {
    this.retryMs = Math.max(minRetryMs, Math.min(ms, maxRetryMs))
  }

  end(outcome: HttpOutcome): void {
    const { target, rpc, open } = this.connection
    this.timer?.close()
    open.delete(this.id)
    if (!rpc.isOpen(this.id)) return
    if (this.resuming) {
      if (outcome.kind !== 'refused' && outcome.kind !== 'garbled' && this.resumes < maxResumes) return this.resume()
      return rpc.fail(this.id, lostError(target.name, 'ended before its answer came, and could not be resumed'))
    }
    if (outcome.kind === 'refused') return this.refused(outcome)
    const { kind } = outcome
    if (kind !== 'broken' && kind !== 'answered') return this.fail(outcome)
    if (this.lastEventId !== undefined && this.resumes < maxResumes) return this.resume()
    if (kind === 'broken') return this.fail(outcome)
    if (outcome.streamed) return rpc.fail(this.id, lostError(target.name, 'ended before its answer came'))
    this.fail(noResponse(outcome.status))
  }

  private send(request: Parameters<typeof sendRequest>[1]): void {
    const { target, rpc, open } = this.connection
    this.request = sendRequest(target, request, this)
    // `end` may have been called during `sendRequest`.
    if (rpc.isOpen(this.id)) open.set(this.id, this)
  }

  private fail(outcome: Parameters<typeof failureError>[2]): void {
    const { target, rpc } = this.connection
    rpc.fail(this.id, failureError(target.name, target.origin, outcome))
  }

  private refused(outcome: HttpOutcome & { kind: 'refused' }): void {
    const { id, connection, session } = this
    const { rpc } = connection
    const { status, body } = outcome
    if (status === 404 && session.id !== undefined) return this.forgotten()
    const error = isObject(body) ? body['error'] : undefined
    if (status === 400 && isRpcError(error) && connection.upgraded(session, id, error.code)) return
    if (session.id !== undefined) connection.refused(session, status)
    // The server's own error for this very request says more than the status.
    if (status < 500 && status !== 401 && status !== 403 && isObject(body) && body['id'] === id) rpc.receive(body, id)
    this.fail(outcome)
  }

  private forgotten(): void {
    const { id, connection, session, claim, again, traceHeaders } = this
    const { rpc, target, open } = connection
    if (again || this.body === '') {
      connection.refused(session, 404)
      const when = again ? ' twice in a row' : ' after it had asked something'
      const text = `Upstream ${target.name} forgot its session (HTTP 404)${when}; the request was not executed.`
      const data = { upstream: target.name, status: 404 }
      return rpc.fail(id, new GatewayError('upstream_unavailable', text, { data }))
    }
    // So that a cancellation reaches it, and its text is not kept until there is a session.
    open.set(id, this)
    // What the server asks in the new session is not about this: it is still to be sent there.
    this.request = undefined
    connection.renew(session, id).then(
      (current) => {
        if (!rpc.isOpen(id)) return
        open.delete(id)
        rpc.again(id, 'session')
        new StreamableCall(connection, id, current, claim, traceHeaders).post(this.body, undefined, true)
      },
      (error: unknown) => {
        open.delete(id)
        rpc.fail(id, error as Error)
      }
    )
  }

  /**
   * 2025-11-25 "Resumability and Redelivery": always by GET, on the stream that the event id belongs to. Nothing is
   * executed twice.
   */
  private resume(): void {
    const { target, open, rpc } = this.connection
    this.resuming = true
    this.streaming = false
    this.resumes++
    open.set(this.id, this)
    this.reconnect ??= target.reconnects.stream()
    this.timer = this.reconnect(this.retryMs, () => {
      const { lastEventId } = this
      rpc.again(this.id, 'stream')
      this.send({
        method: 'GET',
        ...this.claim,
        headers: streamHeaders + this.session.headers,
        lastEventId,
        body: null
      })
    })
  }
}
