// Carries requests of 2026-07-28 over HTTP: a POST each, whose response is all there is to it. Nothing is resumed and nothing is sent
// again; closing the response is how a request is cancelled (basic/transports/streamable-http).

import { isObject } from '../../protocol/messages.ts'
import { deliver } from '../delivery.ts'
import { boundedError, isRpcError, Refusal } from '../endings.ts'
import { failureError, lostError } from '../refusals.ts'
import type { Dispatcher } from 'undici'
import type { UpstreamName } from '../../protocol/ids.ts'
import type { Clock } from '../clock.ts'
import type { Complaints } from '../complaints.ts'
import type { Abort, Outcome } from '../delivery.ts'
import type { Exchange } from '../exchange.ts'

export interface PostOptions {
  readonly name: UpstreamName
  readonly dispatcher: Dispatcher
  readonly path: string
  /** Origin, for messages. */
  readonly place: string
  readonly maxBytes: number
  readonly clock: Clock
  readonly complaints: Complaints
  exchange (): Exchange
  /** A request was refused in a way that a server of this era does not have: is it still one? */
  doubt (): void
}

export interface Post {
  carry (id: number, body: string, headers: string[]): void
  drop (id: number): void
}

/** A server closes the stream after its answer; one that does not is not waited for. */
const lingerMs = 1_000
/** Statuses that a server without this era answers with. */
const foreign: ReadonlySet<number> = new Set([400, 404, 405])
/** Where its own errors come from: JSON-RPC and the range of the specification (basic/index "Error Codes"). */
const isProper = (code: unknown): boolean => typeof code === 'number' && ((code <= -32020 && code >= -32099) || (code <= -32600 && code >= -32603) || code === -32700)

export function createPost (options: PostOptions): Post {
  const { name, dispatcher, path, place, maxBytes, clock, complaints } = options
  const open = new Map<number, Abort>()

  function drop (id: number): void {
    open.get(id)?.()
    open.delete(id)
  }

  function linger (id: number): void {
    const abort = open.get(id)
    if (abort === undefined) return
    const timer = clock.timer(lingerMs, () => {
      if (open.get(id) === abort) drop(id)
    })
    timer.unref()
  }

  function refused (id: number, outcome: Outcome & { kind: 'refused' }): void {
    const exchange = options.exchange()
    const { status, body } = outcome
    const error = isObject(body) && isObject(body['error']) ? body['error'] : undefined
    if (foreign.has(status) && !isProper(error?.['code'])) options.doubt()
    // The response is about this request even where the server could not read its id.
    const own = isObject(body) && (body['id'] === id || body['id'] === undefined || body['id'] === null)
    // Nothing was heard of this request before: whatever else comes ahead of an answer comes on its own stream, with status 200.
    if (isRpcError(error) && own && status === 400) return exchange.fail(id, new Refusal(boundedError(error)))
    if (error !== undefined && own && status >= 400 && status < 500 && status !== 401 && status !== 403) exchange.receive({ ...body, id }, id)
    exchange.fail(id, failureError(name, place, outcome))
  }

  function ended (id: number, outcome: Outcome): void {
    if (outcome.kind === 'refused') return refused(id, outcome)
    if (outcome.kind !== 'answered') return options.exchange().fail(id, failureError(name, place, outcome))
    options.exchange().fail(id, outcome.streamed
      ? lostError(name, 'ended before its answer came')
      : failureError(name, place, { kind: 'garbled', reason: `it holds no response to the request (HTTP ${outcome.status})` }))
  }

  function carry (id: number, body: string, headers: string[]): void {
    const exchange = options.exchange()
    let streaming = false
    let lingering = false
    const abort = deliver({ dispatcher, path, method: 'POST', headers, body, maxBytes }, {
      begin (_sessionId, streamed) { streaming = streamed },
      message (value) {
        // Each request has a response of its own: what another one is told is not for this one to say.
        if (isObject(value) && typeof value['method'] !== 'string' && value['id'] !== id) return complaints.warn({}, 'left out an answer of the upstream that came to another request than its own')
        if (isObject(value) && value['method'] === 'notifications/progress' && (!isObject(value['params']) || value['params']['progressToken'] !== id)) return complaints.warn({}, 'left out progress of the upstream that came on the stream of another request')
        exchange.receive(value, id)
        if (lingering || !streaming || exchange.waiting(id)) return
        lingering = true
        linger(id)
      },
      id () {},
      retry () {},
      end (outcome) {
        open.delete(id)
        if (exchange.waiting(id)) ended(id, outcome)
      }
    })
    // It may have ended before we got here.
    if (exchange.waiting(id)) open.set(id, abort)
  }

  return { carry, drop }
}
