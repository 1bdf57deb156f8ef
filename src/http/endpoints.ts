// The endpoints of the configuration in use: which one the path of a request names, and under which URLs a token may be
// for it.

import type { Endpoint, Snapshot } from '../config/snapshot.ts'
import { endpointName, GatewayError, tenantId } from '../protocol/messages.ts'
import type { EndpointContext } from '../relay/call/call.ts'

/** What changes while the server runs. */
export interface ServerState {
  readonly snapshot: Snapshot
  /** Known once the port is bound. */
  readonly address: ServerAddress | undefined
  readonly draining: boolean
}

export interface ServerAddress {
  /** Origin of the public URL, such as https://mcp.example.com. */
  readonly publicUrl: string
  /** The port, when bound to loopback; the loopback names are hosts of ours there too. */
  readonly loopbackPort: number | undefined
}

/** @throws GatewayError unavailable before the port is bound */
export function addressOf({ address }: ServerState): ServerAddress {
  if (address === undefined) throw new GatewayError('unavailable', 'The gateway is starting.')
  return address
}

/** The parameters of the routes `/t/:tenant/...` and `/t/:tenant/:endpoint/...`. */
export interface PathParams {
  readonly tenant?: string
  readonly endpoint?: string
}

/** @throws GatewayError not_found */
export function endpointOf({ tenant, endpoint }: PathParams, snapshot: Snapshot): EndpointContext {
  const found = tenant === undefined ? undefined : snapshot.tenants.get(tenantId(tenant))
  // `default` has the short path only: one endpoint, one resource URL, one audience.
  const named = endpoint === 'default' ? undefined : found?.endpoints.get(endpointName(endpoint ?? 'default'))
  if (found === undefined || named === undefined) throw noEndpoint()
  return { snapshot, tenant: found, endpoint: named }
}

export const noEndpoint = (): GatewayError =>
  new GatewayError(
    'not_found',
    'There is no such endpoint. Endpoints are /t/{tenant}/mcp and /t/{tenant}/{endpoint}/mcp, as configured.'
  )

/** The last part of a path: Streamable HTTP, or one of the two of HTTP+SSE (2024-11-05 basic/transports). */
export type UrlSuffix = 'mcp' | 'sse' | 'messages'

/** `/t/{tenant}/mcp`, `/t/{tenant}/{endpoint}/sse` and so on. */
export function pathOf({ path }: Endpoint, suffix: UrlSuffix): string {
  return path.slice(0, -'mcp'.length) + suffix
}

/**
 * The resource (RFC 9728) that a URL belongs to, and the aliases under which a token may name it. A client refuses
 * metadata whose resource is not the URL that it was given (RFC 9728 section 3.3), so HTTP+SSE is a resource of its
 * own. A token for the Streamable HTTP URL is good there too, because it is the same endpoint; the reverse would gain
 * nothing.
 */
export function resourceOf(
  endpoint: Endpoint,
  suffix: UrlSuffix
): { readonly path: string; readonly aliases: readonly string[] } {
  return suffix === 'mcp'
    ? { path: endpoint.path, aliases: [] }
    : { path: pathOf(endpoint, 'sse'), aliases: [endpoint.path] }
}
