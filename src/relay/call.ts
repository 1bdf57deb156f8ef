// One request on its way through, and the endpoint it came to.

import type { Principal } from '../auth/principal.ts'
import type { Endpoint, Snapshot, Tenant } from '../config/snapshot.ts'
import type { Request } from '../protocol/messages.ts'
import type { Client } from '../protocol/seams.ts'
import type { LiveSession } from '../session/live.ts'

/** Where a request came in, in the snapshot that it began with. */
export interface Place {
  readonly snapshot: Snapshot
  readonly tenant: Tenant
  readonly endpoint: Endpoint
}

export interface Call extends Place {
  readonly request: Request
  readonly principal: Principal
  /** The legacy session that it belongs to. */
  readonly live: LiveSession
  readonly client: Client
  /** Aborted when the caller cancels, the session ends, or the gateway has waited long enough to stop. */
  readonly signal: AbortSignal
}

/** Somebody of 2026-07-28 at an endpoint; without a client, one that declares nothing. */
export interface Seen extends Place {
  readonly principal?: Principal
  readonly client?: Client
}

export const isCaller = (seen: Seen): seen is Required<Seen> => seen.client !== undefined && seen.principal !== undefined

/** One request of 2026-07-28: it stands alone, and belongs to no session. */
export interface ModernCall extends Place {
  /** Without its envelope, which is in `client`. */
  readonly request: Request
  readonly principal: Principal
  readonly client: Client
  /** Aborted when the caller closes the connection, is no longer welcome, or the gateway has waited long enough to stop. */
  readonly signal: AbortSignal
}
