// MCP over Streamable HTTP as a client of 2026-07-28: no session, and no streams but those of its requests. What makes
// a connection of it is what the server said of itself, and the `subscriptions/listen` streams that are held open here.

import { deadline } from '../../time/clock.ts'
import { discoverModern, type DiscoverResult, isNotModern, type NotModern } from '../modern/discover.ts'
import { createUpstreamSubscriptions } from '../modern/listen-streams.ts'
import { createModernCodec, createModernRequests } from '../modern/modern-requests.ts'
import { closedError, lostError, NotExecutedError } from '../rpc/errors.ts'
import { createRpcClient } from '../rpc/rpc-client.ts'
import { discoverOverHttp } from './discover-http.ts'
import { createModernHttpCalls } from './modern-calls.ts'
import { modernHeaders, openTarget } from './target.ts'
import type { HttpDefinition } from '../../config/snapshot.ts'
import type { ParamHeaderCaches } from '../modern/param-header-cache.ts'
import type { Link } from '../rpc/link.ts'
import type { LinkContext } from '../rpc/transport.ts'
import type { Egress } from './egress.ts'

export interface ModernLink extends Link {
  /**
   * Asks what the server is, and begins to use it.
   * @throws GatewayError where the answer proves nothing, or there is no common revision
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
  const { events, clock, log, warnings } = link
  const { clientInfo } = link.handshake
  const target = openTarget(definition, egress, clientInfo)
  const { paramHeaders, release } = caches.lease(definition.hash)
  const ending = new AbortController()
  let discovered: DiscoverResult | undefined
  let retired = false
  let checking = false

  const codec = createModernCodec(definition, link)
  const rpc = createRpcClient({
    definition,
    link,
    codec: () => codec,
    transport: {
      request: (id, body, request) => calls.send(id, body, modernHeaders(request, target.headers, paramHeaders)),
      // Nothing but requests is sent in this revision: closing the response cancels one.
      post() {},
      drop: (id) => calls.drop(id)
    }
  })
  const calls = createModernHttpCalls({ target, rpc, clock, warnings, checkEra })
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

  /** The server may have been replaced by one of the legacy era under its URL. */
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

  /** One refusal must not take away what others wait for: they have POSTs of their own, which end as they end. */
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
    get handshakeResult() {
      return discovered
    },
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
