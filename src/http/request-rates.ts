// How often callers may ask. Who asks more often is refused before the body is read, so that neither one caller nor one
// tenant takes the processor from the others.

import type { Snapshot } from '../config/snapshot.ts'
import { createTokenBucket } from '../limits/limits.ts'
import type { Log } from '../observe/log.ts'
import { GatewayError } from '../protocol/messages.ts'
import type { Clock } from '../time/clock.ts'
import type { RequestContext } from './admission.ts'

/** The requests of so many seconds may come at once. */
const burstSeconds = 5
/** Beyond, who asked least recently is forgotten, and may send a burst again; the limit of its tenant still holds. */
const maxKept = 20_000
/** A flood must not fill the log. */
const warnMs = 60_000

type Limit = 'requestsPerSecondPerPrincipal' | 'requestsPerSecondPerTenant'

interface Rate {
  readonly bucket: ReturnType<typeof createTokenBucket>
  warnedAt: number
}

interface CountedCaller {
  readonly person: string
  readonly principal: Pick<RequestContext['principal'], 'tenant' | 'clientId'>
}

export type RequestRates = ReturnType<typeof createRequestRates>

/** @param limits those in force; another object after a reload */
export function createRequestRates(limits: () => Snapshot['limits'], clock: Clock, log: Log) {
  /** Of tenants and of their callers, the least recently used first. */
  const rates = new Map<string, Rate>()
  let current = limits()

  function rateOf(key: string, perSecond: number): Rate {
    const known = rates.get(key)
    // While there is room for many more, nobody is forgotten, and the order is of no use.
    if (known !== undefined && rates.size < maxKept / 2) return known
    const rate = known ?? { bucket: createTokenBucket(clock, perSecond, perSecond * burstSeconds), warnedAt: -Infinity }
    if (known !== undefined) rates.delete(key)
    rates.set(key, rate)
    const [oldest] = rates.size > maxKept ? rates.keys() : []
    if (oldest !== undefined) rates.delete(oldest)
    return rate
  }

  function take(key: string, limit: Limit, who: string, fields: object): void {
    const perSecond = current[limit]
    const rate = rateOf(key, perSecond)
    if (rate.bucket.take()) return
    if (clock.now() - rate.warnedAt >= warnMs) {
      rate.warnedAt = clock.now()
      log.warn({ ...fields, limit, perSecond }, 'too many requests a second: those beyond are refused')
    }
    throw new GatewayError(
      'rate_limited',
      `${who} sends more than ${perSecond} requests a second (limits.${limit}). Wait a second, then send more slowly.`,
      {
        data: { limit },
        headers: { 'RateLimit-Policy': `"${limit}";q=${perSecond};w=1`, RateLimit: `"${limit}";r=0;t=1` }
      }
    )
  }

  return {
    /**
     * Counts requests of a caller.
     * @throws GatewayError rate_limited
     */
    count({ person, principal: { tenant, clientId } }: CountedCaller, requests = 1): void {
      const now = limits()
      if (now !== current) rates.clear()
      current = now
      for (let n = 0; n < requests; n++) {
        take(person, 'requestsPerSecondPerPrincipal', 'This caller', { tenant, client: clientId })
        take(`tenant ${tenant}`, 'requestsPerSecondPerTenant', 'This tenant', { tenant })
      }
    }
  }
}
