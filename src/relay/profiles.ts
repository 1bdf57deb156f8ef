// What a client declares to servers, as far as it decides what they list. An older server hears it at the handshake, and may register tools
// only for those who can answer its questions; one of 2026-07-28 must not (server/tools, "Listing Tools").

import type { Endpoint, UpstreamDefinition } from '../config/snapshot.ts'
import { canonical } from '../protocol/canonical.ts'
import type { ClientCapabilities, JsonObject } from '../protocol/messages.ts'

export interface Profile {
  /** Equal for what declares the same. */
  readonly key: string
  readonly capabilities: ClientCapabilities
  /** Who is behind it (`shareOf`), at whichever endpoint and by whichever client: one person makes only few of them. */
  readonly by: string
  /** Are connections that callers of one principal share declared this too, or only those of one session? */
  readonly pooled: boolean
}

// A server that looks at more than this is not served by views of its own.
const maxKeyLength = 2_048

/** @returns undefined for a client that declares nothing, whose view is that of everybody */
function createProfile (capabilities: ClientCapabilities, by: () => string, pooled: boolean): Profile | undefined {
  const { roots, ...rest } = capabilities
  // Whether a client tells of new roots decides nothing.
  const declared: JsonObject = roots === undefined ? rest : { ...rest, roots: {} }
  if (Object.keys(declared).length === 0) return undefined
  const key = canonical(declared)
  return key.length > maxKeyLength ? undefined : { key, capabilities: declared, by: by(), pooled }
}

/** Is anybody's connection to this upstream declared the profile? */
export function isDeclared ({ pooled }: Profile, { isolation }: UpstreamDefinition): boolean {
  return isolation === 'session' || (isolation === 'principal' && pooled)
}

/**
 * Remembers the profile of each client at its endpoint: it is asked for with every call.
 * @param declare what servers behind the endpoint are told of it
 */
export function profilesOf<C extends object> (pooled: boolean, declare: (client: C, endpoint: Endpoint) => ClientCapabilities): (client: C, endpoint: Endpoint, by: () => string) => Profile | undefined {
  const known = new WeakMap<C, { readonly endpoint: Endpoint, readonly profile: Profile | undefined }>()
  return (client, endpoint, by) => {
    let found = known.get(client)
    if (found?.endpoint !== endpoint) known.set(client, found = { endpoint, profile: createProfile(declare(client, endpoint), by, pooled) })
    return found.profile
  }
}
