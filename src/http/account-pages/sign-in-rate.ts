// How often people may come back from where they sign in to the pages of connections: each time the provider of the
// tenant, or the store, is asked. Whoever did not begin here is told so before anything is counted.

import { createStrangerRate } from '../../limits/stranger-rate.ts'
import { GatewayError, type TenantId } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'

/** Sign-ins of one tenant. */
const signInsPerSecond = 20
const maxSignInsAtOnce = 100
/** Beyond, the count of the tenant that came first begins anew. */
const maxCounted = 1_000

export function createSignInRate(clock: Pick<Clock, 'now'>) {
  const rates = new Map<TenantId, ReturnType<typeof createStrangerRate>>()
  return {
    /** @throws GatewayError rate_limited */
    count(tenant: TenantId, address = ''): void {
      const rate = rates.get(tenant) ?? createStrangerRate(clock, signInsPerSecond, maxSignInsAtOnce)
      rates.set(tenant, rate)
      const [oldest] = rates.size > maxCounted ? rates.keys() : []
      if (oldest !== undefined) rates.delete(oldest)
      if (rate.take(address)) return
      throw new GatewayError(
        'rate_limited',
        'Too many people sign in here at this moment. Wait a second, and try again.'
      )
    }
  }
}
