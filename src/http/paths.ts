// The URLs of one endpoint, and which of them a token may be for.

import type { Endpoint } from '../config/snapshot.ts'

/** Streamable HTTP; and the two of HTTP+SSE (2024-11-05 basic/transports). The last part of the path. */
export type Door = 'mcp' | 'sse' | 'messages'

/** `/t/{tenant}/mcp`, `/t/{tenant}/{endpoint}/sse` and so on. */
export function pathOf ({ path }: Endpoint, door: Door): string {
  return path.slice(0, -'mcp'.length) + door
}

/**
 * The resource that a door is (RFC 9728), and what else counts as it. A client refuses metadata whose resource is not the URL that it was
 * given (RFC 9728 section 3.3), so HTTP+SSE is a resource of its own. It is the same endpoint all the same: a token for the Streamable
 * HTTP URL is good there too. The other way round nothing is gained.
 */
export function resourceOf (endpoint: Endpoint, door: Door): { readonly path: string, readonly aliases: readonly string[] } {
  return door === 'mcp'
    ? { path: endpoint.path, aliases: [] }
    : { path: pathOf(endpoint, 'sse'), aliases: [endpoint.path] }
}
