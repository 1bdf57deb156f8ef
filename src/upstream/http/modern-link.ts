// MCP over Streamable HTTP as a client of 2026-07-28: there is no session, and only requests have streams.

import { createOpenTable, type OpenTable } from '../../limits/open-table.ts'
import type { JsonText } from '../../protocol/json-text.ts'
import { isObject, isSpecifiedCode } from '../../protocol/messages.ts'
import { discoverOverHttp, foreignStatuses } from './discover-http.ts'
import { type HttpOutcome, noResponse } from './outcome.ts'
import { type HttpResponseSink, type OpenRequest, sendRequest } from './request.ts'
import { NotExecutedError, boundedError, closedError, failureError, isRpcError, lostError } from '../rpc/errors.ts'
import { type Timer, deadline } from '../../time/clock.ts'
import { type RpcClient, createRpcClient } from '../rpc/rpc-client.ts'
import { type Egress, type SocketClaim, socketClaimOf } from './socket-pool.ts'
import { type HttpTarget, modernHeaders, openTarget } from './target.ts'
import { type DiscoverResult, type NotModern, discoverModern, isNotModern } from '../modern/discover.ts'
import { createUpstreamSubscriptions } from '../modern/listen-streams.ts'
import { createModernCodec, createModernRequests } from '../modern/modern-requests.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { ParamHeaderCaches } from '../modern/param-header-cache.ts'
import type { Link } from '../rpc/link.ts'
import type { LinkContext } from '../rpc/transport.ts'

export interface ModernLink extends Link {
  /**
   * Sends `server/discover` and begins to use the revision that it selects.
   * @throws GatewayError if the answer proves nothing about the era, or there is no common revision
   */
  discover(signal: AbortSignal): Promise<DiscoverResult | NotModern>
}

export function openModernHttp(
  definition: HttpDefinition,
  egress: Egress,
  caches: ParamHeaderCaches,
  link: LinkContext
): ModernLink {
  const { name, connectMs } = definition
  const { events, clock, log } = link
  const { clientInfo } = link.handshake
  const target = openTarget(definition, egress, link)
  const { paramHeaders, release } = caches.lease(definition.hash)
  const ending = new AbortController()
  let discovered: DiscoverResult | undefined
  let retired = false
  let checking = false

  const codec = createModernCodec(definition, link)
  const rpc = createRpcClient({
    definition,
    link,
    streamPerCall: true,
    codec: () => codec,
    transport: {
      request(id, body, request, client) {
        const headers = modernHeaders(request, target.headers, paramHeaders)
        new ModernHttpCall(calls, id).post(headers, body, socketClaimOf(request, client))
      },
      // In this revision a client sends requests only, neither notifications nor responses.
      post() {},
      drop(id) {
        calls.open.get(id)?.abort()
        calls.open.delete(id)
      }
    }
  })
  const calls: CallContext = { target, rpc, link, open: createOpenTable(), checkEra }
  const subscriptions = createUpstreamSubscriptions(definition, link, rpc)
  const request = createModernRequests({
    definition,
    link,
    rpc,
    codec,
    subscriptions,
    paramHeaders,
    provesNotExecuted: (error) => error instanceof NotExecutedError,
    eraLost: retire
  })

  const find = (signal: AbortSignal): Promise<DiscoverResult | NotModern> =>
    discoverModern(name, (revision) => discoverOverHttp(target, clientInfo, revision, signal))

  async function discover(signal: AbortSignal): Promise<DiscoverResult | NotModern> {
    const found = await find(signal)
    if (isNotModern(found)) return found
    discovered = found
    codec.revision = found.revision
    if (link.use === 'listing') subscriptions.watchLists(found.capabilities)
    return found
  }

  /** Probes whether the server at the URL was replaced by one of the legacy era. */
  function checkEra(): void {
    if (checking || retired || ending.signal.aborted || discovered === undefined) return
    checking = true
    const limit = deadline(clock, connectMs, ending.signal)
    find(limit.signal)
      .then((found) => {
        if (isNotModern(found)) retire()
      })
      .catch((err: unknown) =>
        log.debug({ err, upstream: name }, 'the upstream could not be asked whether it still speaks 2026-07-28')
      )
      .finally(() => {
        checking = false
        limit.close()
      })
  }

  /** Takes no new requests; the open ones have POSTs of their own and go on until these end. */
  function retire(): void {
    if (retired || ending.signal.aborted) return
    retired = true
    const reason = lostError(name, 'ended: the server no longer speaks revision 2026-07-28')
    subscriptions.end(reason)
    link.eraChanged?.()
    events.closed(reason)
  }

  function destroy(reason: Error): void {
    if (ending.signal.aborted) return
    ending.abort()
    rpc.end(reason)
    subscriptions.end(reason)
    release()
    target.release()
  }

  return {
    rpc: { ...rpc, request, notify() {} },
    transport: 'streamable-http',
    handshakeResult: () => discovered,
    discover,
    async handshake(signal) {
      const found = await discover(signal)
      if (isNotModern(found)) throw found.reason
      return found
    },
    async close() {
      destroy(closedError(name))
    },
    destroy
  }
}

interface CallContext {
  readonly target: HttpTarget
  readonly rpc: RpcClient
  readonly link: LinkContext
  readonly open: OpenTable<ModernHttpCall>
  /** Called when a response is none that a server of 2026-07-28 gives: probes whether the era has changed. */
  checkEra(): void
}

/** How long the stream may stay open after the response, in milliseconds: then the gateway closes it. */
const lingerMs = 1_000

/**
 * One call: a POST and its response. A broken stream is not resumed, and the request is not sent again; closing the
 * response cancels the request (2026-07-28 basic/transports/streamable-http). A class, because there is one instance
 * for each call, and methods of a class are not made anew each time.
 */
class ModernHttpCall implements HttpResponseSink {
  private readonly connection: CallContext
  private readonly id: number
  private request: OpenRequest | undefined
  private timer: Timer | undefined
  private streaming = false

  constructor(connection: CallContext, id: number) {
    this.connection = connection
    this.id = id
  }

  post(headers: string, body: JsonText, claim: SocketClaim): void {
    const { target, rpc, open } = this.connection
    this.request = sendRequest(target, { method: 'POST', ...claim, headers, body }, this)
    // `end` may have been called during `sendRequest`.
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
    const { rpc, link, open } = connection
    rpc.receive(value, id)
    if (this.timer !== undefined || !this.streaming || rpc.isOpen(id) || open.get(id) !== this) return
    this.timer = link.clock.timer(lingerMs, () => {
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
    // A null or missing id means that the server could not read the id: the error still belongs to this POST.
    const own = isObject(body) && (body['id'] === id || body['id'] === undefined || body['id'] === null)
    // Status 400 proves that no message came before this error: a server that had begun a stream has answered 200.
    if (isRpcError(error) && own && status === 400) return rpc.fail(id, new NotExecutedError(boundedError(error)))
    if (error !== undefined && own && status >= 400 && status < 500 && status !== 401 && status !== 403) {
      rpc.receive({ ...body, id }, id)
    }
    rpc.fail(id, failureError(target.name, target.origin, outcome))
  }
}
