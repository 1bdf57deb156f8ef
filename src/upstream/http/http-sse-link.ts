// MCP over HTTP+SSE as a client (2024-11-05 basic/transports "HTTP with SSE"): one stream brings everything, messages
// are posted where its first event says. The stream is the session: when it ends, so does the connection, and nothing
// is sent again.

import type { JsonText } from '../../protocol/json-text.ts'
import { GatewayError, isObject, type Request } from '../../protocol/messages.ts'
import { type Timer, deadline, noReason } from '../../time/clock.ts'
import { idIn } from '../rpc/decode-json.ts'
import { closedError, failureError, lostError } from '../rpc/errors.ts'
import { createHttpSseStream } from './http-sse-stream.ts'
import type { HttpOutcome } from './outcome.ts'
import { type OpenRequest, sendRequest } from './request.ts'
import { type Egress, socketClaimOf } from './socket-pool.ts'
import { type HttpRequest, openTarget, postHeaders, revisionHeader } from './target.ts'
import { type Client, noClient } from '../../protocol/seams.ts'
import { type HandshakeResult, initialize, type Link } from '../rpc/link.ts'
import { createRpcClient } from '../rpc/rpc-client.ts'
import { createPostQueue, sendForStatus } from './post-queue.ts'
import type { UnusableEvent } from './sse-reader.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { LinkContext } from '../rpc/transport.ts'

export interface HttpSseLink extends Link {
  /**
   * Opens the stream and waits for its first event. Once.
   * @returns undefined once the `endpoint` event has come; else why there is no HTTP+SSE at this URL
   * @throws GatewayError if the server cannot be reached, or names an endpoint at another origin
   */
  openStream(signal: AbortSignal): Promise<GatewayError | undefined>
}

/** How long a POST may stay unanswered after its result came on the stream, in milliseconds. */
const lingerMs = 1_000

export function openHttpSse(definition: HttpDefinition, egress: Egress, link: LinkContext): HttpSseLink {
  const { name, connectMs } = definition
  const { events, clock, log, warnings } = link
  const target = openTarget(definition, egress, link)
  const { origin } = target
  const ending = new AbortController()
  /** The POSTs of requests that the server has not answered yet; `timer` runs since the answer came on the stream. */
  const posts = new Map<number, { request?: OpenRequest; timer?: Timer }>()
  let handshakeResult: HandshakeResult | undefined
  let ready = false
  let ended: Error | undefined
  let checking = false

  const rpc = createRpcClient({
    definition,
    link,
    revision: () => handshakeResult?.revision,
    transport: {
      request: post,
      post: (body, lost) => queue.enqueue(body, ending.signal, lost),
      drop: abort
    }
  })
  const stream = createHttpSseStream(target, log, message, unusable, end)
  const queue = createPostQueue(target, log, async (body, signal) => {
    const outcome = await sendForStatus(target, requestOf(body), signal)
    if (outcome.kind === 'refused') checkSession(outcome.status)
    return outcome
  })

  const requestOf = (body: JsonText): Omit<HttpRequest, 'use'> => ({
    method: 'POST',
    path: stream.postPath,
    headers: postHeaders + target.headers + revisionHeader(handshakeResult?.revision),
    body,
    statusOnly: true
  })

  function post(id: number, body: JsonText, request: Request, client: Pick<Client, 'quotaKey'>): void {
    const open: { request?: OpenRequest; timer?: Timer } = {}
    posts.set(id, open)
    open.request = sendRequest(
      target,
      { ...requestOf(body), ...socketClaimOf(request, client) },
      {
        message() {},
        written: () => rpc.written(id),
        end(outcome) {
          open.timer?.close()
          posts.delete(id)
          // A 2xx only says that the message was accepted: the JSON-RPC response comes on the stream.
          if (outcome.kind !== 'answered' && rpc.isOpen(id)) notTaken(id, outcome)
        }
      }
    )
  }

  function notTaken(id: number, outcome: Exclude<HttpOutcome, { kind: 'answered' }>): void {
    if (outcome.kind !== 'refused') return rpc.fail(id, failureError(name, origin, outcome))
    const { status, body } = outcome
    // The server's own error for this very request says more than the status.
    if (status < 500 && isObject(body) && body['id'] === id) rpc.receive(body, id)
    const text = `Upstream ${name} forgot its session (HTTP 404), so the request was not executed. Try again.`
    const forgotten = new GatewayError('upstream_unavailable', text, { data: { upstream: name, status } })
    rpc.fail(id, ready && status === 404 ? forgotten : failureError(name, origin, outcome))
    checkSession(status)
  }

  function abort(id: number): void {
    const open = posts.get(id)
    open?.timer?.close()
    open?.request?.abort()
    posts.delete(id)
  }

  /** The server may have forgotten the session without closing its stream: many say 400 for that, not 404. */
  function checkSession(status: number): void {
    const lost = (): void => end(lostError(name, 'ended: the server no longer knows its session'))
    if (status === 404) return lost()
    if (status !== 400 || !ready || checking) return
    checking = true
    const limit = deadline(clock, connectMs, ending.signal)
    rpc
      .request({ method: 'ping' }, noClient, limit.signal)
      .catch((error: unknown) => {
        if (error instanceof GatewayError && error.data['status'] === 400) lost()
      })
      .finally(() => {
        checking = false
        limit.close()
      })
  }

  function message(value: unknown): void {
    rpc.receive(value)
    const id = isObject(value) ? value['id'] : undefined
    const open = typeof id === 'number' && !rpc.isOpen(id) ? posts.get(id) : undefined
    // The timer starts once: a server may repeat its response without end.
    if (open === undefined || open.timer !== undefined) return
    open.timer = clock.timer(lingerMs, () => abort(id as number))
    open.timer.unref()
  }

  function unusable({ reason, oversized, head, tail }: UnusableEvent): void {
    warnings.warn({ reason }, 'left out an event of the upstream')
    const id = idIn(head, tail) ?? (oversized ? rpc.onlyOpen() : undefined)
    if (id !== undefined) rpc.fail(id, failureError(name, origin, { kind: 'garbled', reason }))
  }

  /** The stream has ended and with it the session: the outcome of the calls in flight is unknown. */
  function end(reason: Error): void {
    if (ended !== undefined) return
    destroy(reason)
    if (ready) events.closed(reason)
  }

  function destroy(reason: Error): void {
    if (ended !== undefined) return
    ended = reason
    stream.close(reason)
    rpc.end(reason)
    ending.abort(noReason)
    for (const id of [...posts.keys()]) abort(id)
    target.release()
  }

  return {
    rpc,
    transport: 'sse',
    openStream: stream.open,
    handshakeResult: () => handshakeResult,
    async handshake(signal) {
      const absence = await stream.open(signal)
      if (absence !== undefined) throw absence
      handshakeResult = await initialize(rpc, name, link.handshake, signal)
      await queue.postInitialized(signal)
      if (ended !== undefined) throw ended
      ready = true
      return handshakeResult
    },
    // No request is needed: the end of the stream ends the session.
    async close() {
      destroy(closedError(name))
    },
    destroy
  }
}
