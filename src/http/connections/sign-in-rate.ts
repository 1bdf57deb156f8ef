// How often strangers may try to sign in on the pages of connections: what they present is looked at as anybody's, and
// may be asked about at an issuer.

import { createTokenBucket } from '../../limits/limits.ts'
import { GatewayError, type TenantId } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'

/** Of one tenant. */
const signInsPerSecond = 20
const maxSignInsAtOnce = 100
/** Beyond, the count of the tenant that came first begins anew. */
const maxCounted = 1_000

export function createSignInRate(clock: Pick<Clock, 'now'>) {
  const buckets = new Map<TenantId, ReturnType<typeof createTokenBucket>>()
  return {
    /** @throws GatewayError rate_limited */
    count(tenant: TenantId): void {
      const bucket = buckets.get(tenant) ?? createTokenBucket(clock, signInsPerSecond, maxSignInsAtOnce)
      buckets.set(tenant, bucket)
      const [oldest] = buckets.size > maxCounted ? buckets.keys() : []
      if (oldest !== undefined) buckets.delete(oldest)
      if (bucket.take()) return
      throw new GatewayError(
        'rate_limited',
        'Too many people sign in here at this moment. Wait a second, and try again.'
      )
    }
  }
}
