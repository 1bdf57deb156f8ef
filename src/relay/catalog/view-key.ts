// What a client declares, as far as it decides what servers list. A legacy server is told at the handshake, and may
// register tools only for clients that can answer its requests; one of 2026-07-28 must not (server/tools, "Listing
// Tools").

import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import { canonicalJsonOf } from '../../protocol/canonical.ts'
import type { ClientCapabilities, JsonObject } from '../../protocol/messages.ts'

export interface ViewKey {
  /** Equal for equal capabilities. */
  readonly key: string
  /** The same, and apart for sessions and callers. */
  readonly id: string
  readonly capabilities: ClientCapabilities
  /** Of the person behind the client: one person may make only few views. */
  readonly quotaKey: string
  /** Are connections that all clients of one principal share told this too, or only those of one session? */
  readonly pooled: boolean
}

// A server that looks at more than this has no view for it.
const maxKeyLength = 2_048

/** @returns undefined for a client that declares nothing: it sees the shared listing */
function createViewKey(declared: ClientCapabilities, quotaKeyOf: () => string, pooled: boolean): ViewKey | undefined {
  // Whether a client reports changed roots does not matter to lists.
  const capabilities: JsonObject = declared['roots'] === undefined ? declared : { ...declared, roots: {} }
  if (Object.keys(capabilities).length === 0) return undefined
  const key = canonicalJsonOf(capabilities)
  if (key.length > maxKeyLength) return undefined
  return { key, id: `${pooled ? 'caller' : 'session'} ${key}`, capabilities, quotaKey: quotaKeyOf(), pooled }
}

/** Is any connection to this upstream told these capabilities? */
export function isDeclaredTo({ pooled }: ViewKey, { isolation }: UpstreamDefinition): boolean {
  return isolation === 'session' || (isolation === 'principal' && pooled)
}

/**
 * Remembers the key of each client at its endpoint: every call needs it.
 * @param declare what servers behind the endpoint are told of the client
 */
export function viewKeysOf<C extends object>(
  pooled: boolean,
  declare: (client: C, endpoint: Endpoint) => ClientCapabilities
): (client: C, endpoint: Endpoint, quotaKeyOf: () => string) => ViewKey | undefined {
  const known = new WeakMap<C, { readonly endpoint: Endpoint; readonly viewKey: ViewKey | undefined }>()
  return (client, endpoint, quotaKeyOf) => {
    let entry = known.get(client)
    if (entry?.endpoint !== endpoint) {
      entry = { endpoint, viewKey: createViewKey(declare(client, endpoint), quotaKeyOf, pooled) }
      known.set(client, entry)
    }
    return entry.viewKey
  }
}
