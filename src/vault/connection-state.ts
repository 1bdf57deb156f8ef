// How the connection of a person to an upstream stands, without any secret.

import type { UpstreamDefinition } from '../config/snapshot.ts'
import type { Grant } from './grant.ts'
import { isGrantFor } from './personal-views.ts'

export interface ConnectionState {
  readonly upstream: string
  readonly kind: 'account' | 'secret'
  readonly state: 'connected' | 'not connected' | 'has to be connected again'
  /** Why it has to be connected again. */
  readonly reason?: string | undefined
  /** ISO 8601 */
  readonly connectedAt?: string | undefined
  readonly scopes?: readonly string[] | undefined
}

/** @param grant of the person for this upstream; undefined: there is none */
export function connectionStateOf(definition: UpstreamDefinition, grant: Grant | undefined): ConnectionState {
  const { name: upstream, auth } = definition
  const kind = auth?.type === 'user' ? 'account' : 'secret'
  if (grant === undefined || !isGrantFor(definition, grant)) return { upstream, kind, state: 'not connected' }
  const reason = grant.dead ?? (grant.missing && `it lacks ${grant.missing.join(', ')}`)
  return {
    upstream,
    kind,
    state: reason === undefined ? 'connected' : 'has to be connected again',
    reason,
    connectedAt: new Date(grant.connectedAt).toISOString(),
    scopes: grant.account?.scopes
  }
}
