// Calls of 2026-07-28 over HTTP: a POST each, whose response is all there is to it. Nothing is resumed and nothing is
// sent again; closing the response is how a request is cancelled (basic/transports/streamable-http).

import { isObject, isSpecifiedCode } from '../../protocol/messages.ts'
import { foreignStatuses } from './discover-http.ts'
import { type HttpOutcome, type HttpResponseSink, noResponse, type OpenRequest, sendRequest } from './request.ts'
import { boundedError, failureError, isRpcError, lostError, NotExecutedError } from '../rpc/errors.ts'
import type { Clock, Timer } from '../../time/clock.ts'
import type { LimitedWarnings } from '../rpc/notifications.ts'
import type { RpcClient } from '../rpc/rpc-client.ts'
import type { HttpTarget } from './target.ts'

export interface ModernCallsOptions {
  readonly target: HttpTarget
  readonly rpc: RpcClient
  readonly clock: Clock
  readonly warnings: LimitedWarnings
  /** A request was refused in a way that a server of this era does not have: is it still one? */
  checkEra(): void
}

export interface ModernHttpCalls {
  send(id: number, body: string, headers: string[]): void
  drop(id: number): void
}

/** A server closes the stream after its answer; one that does not is not waited for. */
const lingerMs = 1_000

interface Connection extends ModernCallsOptions {
  readonly open: Map<number, ModernHttpCall>
}

export function createModernHttpCalls(options: ModernCallsOptions): ModernHttpCalls {
  const open = new Map<number, ModernHttpCall>()
  const connection: Connection = { ...options, open }
  return {
    send(id, body, headers) {
      new ModernHttpCall(connection, id).post(headers, body)
    },
    drop(id) {
      open.get(id)?.abort()
      open.delete(id)
    }
  }
}

/** A class, because there is one for each call: its methods are not made anew. */
class ModernHttpCall implements HttpResponseSink {
  private readonly connection: Connection
  private readonly id: number
  private request: OpenRequest | undefined
  private timer: Timer | undefined
  private streaming = false

  constructor(connection: Connection, id: number) {
    this.connection = connection
    this.id = id
  }

  post(headers: string[], body: string): void {
    const { target, rpc, open } = this.connection
    this.request = sendRequest(target, { method: 'POST', headers, body }, this)
    // It may have ended before we got here.
    if (rpc.isOpen(this.id)) open.set(this.id, this)
  }

  abort(): void {
    this.timer?.close()
    this.request?.abort()
  }

  begin(_sessionId: string | undefined, streamed: boolean): void {
    this.streaming = streamed
  }

  message(value: unknown): void {
    const { id, connection } = this
    const { rpc, warnings, clock, open } = connection
    if (isObject(value)) {
      const { method, params } = value
      // Each request has a response of its own: what another one is told is not for this one to say.
      if (typeof method !== 'string' && value['id'] !== id) {
        return warnings.warn({}, 'left out an answer of the upstream that came to another request than its own')
      }
      if (method === 'notifications/progress' && (!isObject(params) || params['progressToken'] !== id)) {
        return warnings.warn({}, 'left out progress of the upstream that came on the stream of another request')
      }
    }
    rpc.receive(value, id)
    if (this.timer !== undefined || !this.streaming || rpc.isOpen(id) || open.get(id) !== this) return
    this.timer = clock.timer(lingerMs, () => {
      open.delete(id)
      this.abort()
    })
    this.timer.unref()
  }

  end(outcome: HttpOutcome): void {
    const { id, connection } = this
    const { target, rpc, open } = connection
    this.timer?.close()
    open.delete(id)
    if (!rpc.isOpen(id)) return
    if (outcome.kind === 'refused') return this.refused(outcome)
    if (outcome.kind === 'answered' && outcome.streamed) {
      return rpc.fail(id, lostError(target.name, 'ended before its answer came'))
    }
    const failure = outcome.kind === 'answered' ? noResponse(outcome.status) : outcome
    rpc.fail(id, failureError(target.name, target.origin, failure))
  }

  private refused(outcome: HttpOutcome & { kind: 'refused' }): void {
    const { id, connection } = this
    const { target, rpc } = connection
    const { status, body } = outcome
    const error = isObject(body) && isObject(body['error']) ? body['error'] : undefined
    if (foreignStatuses.has(status) && !isSpecifiedCode(error?.['code'])) connection.checkEra()
    // The response is about this request even where the server could not read its id.
    const own = isObject(body) && (body['id'] === id || body['id'] === undefined || body['id'] === null)
    // Nothing came for this request before: a server answers 200 where it sends anything ahead of its answer.
    if (isRpcError(error) && own && status === 400) return rpc.fail(id, new NotExecutedError(boundedError(error)))
    if (error !== undefined && own && status >= 400 && status < 500 && status !== 401 && status !== 403) {
      rpc.receive({ ...body, id }, id)
    }
    rpc.fail(id, failureError(target.name, target.origin, outcome))
  }
}
