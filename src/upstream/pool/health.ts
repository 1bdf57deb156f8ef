// How an upstream is doing, as the pool sees it.

import type { TenantId, UpstreamName } from '../../protocol/messages.ts'
import type { UpstreamBackoff } from './connect-backoff.ts'
import type { PooledConnection } from './pooled-connection.ts'

export interface Health {
  readonly upstream: UpstreamName
  readonly tenant: TenantId
  readonly state: 'idle' | 'connecting' | 'ready' | 'backoff'
  readonly connections: number
  readonly failures: number
  readonly lastError?: string
  /** Milliseconds since the epoch. */
  readonly retryAt?: number
}

export function healthOf(
  { definition, backoff }: UpstreamBackoff,
  connections: readonly PooledConnection[],
  now: number
): Health {
  const own = connections.filter(({ definition: { hash } }) => hash === definition.hash)
  const open = own.filter(({ upstream }) => upstream !== undefined).length
  const resting = backoff.retryAt > now
  return {
    upstream: definition.name,
    tenant: definition.tenant,
    state: open > 0 ? 'ready' : own.length > 0 ? 'connecting' : resting ? 'backoff' : 'idle',
    connections: open,
    failures: backoff.failures,
    ...(backoff.lastError !== undefined && { lastError: backoff.lastError }),
    ...(resting && { retryAt: backoff.retryAt })
  }
}
