// How often callers may ask. Who asks more often is refused before the body is read, and slowly, so that neither one
// caller nor one tenant takes the processor from the others.

import type { Snapshot } from '../../config/snapshot.ts'
import { createTokenBucket } from '../../limits/limits.ts'
import type { ObservedPrincipal } from '../../observe/calls.ts'
import type { RefusalObservers } from '../../observe/refused-requests.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import type { RequestContext } from '../admission.ts'

/** The requests of so many seconds may come at once. */
const burstSeconds = 5
/**
 * After so many milliseconds a refusal is sent: who asks again at once would be refused thousands of times a second.
 * Only the answer waits and not its connection, so that a proxy sends requests of others on other connections.
 */
const refusedAfterMs = 250
/**
 * The time between two refusals, in milliseconds: clients that are refused together would come back together, in one
 * turn of the event loop. Beyond 250 that wait, they are sent together after twice `refusedAfterMs`.
 */
const refusalGapMs = 1
/** Refusals that wait; each holds a connection. Those beyond are sent at once. */
const maxWaitingRefusals = 1_024
/** Beyond, who asked least recently is forgotten, and may send a burst again; the limit of its tenant still holds. */
const maxKept = 20_000
/** A flood must not fill the log: of each caller a line in so many milliseconds, with how many there were. */
const warnMs = 60_000

type Limit = 'requestsPerSecondPerPrincipal' | 'requestsPerSecondPerTenant'

interface Rate {
  readonly bucket: ReturnType<typeof createTokenBucket>
  /** Since its last line; undefined: there is none of the last minute. */
  refused: number | undefined
}

interface CountedCaller {
  readonly person: string
  readonly principal: ObservedPrincipal & Pick<RequestContext['principal'], 'tenant'>
}

export type RequestRates = ReturnType<typeof createRequestRates>

/** @param limits those in force; another object after a reload */
export function createRequestRates(
  limits: () => Snapshot['limits'],
  clock: Clock,
  { log, shownCaller }: Pick<RefusalObservers, 'log' | 'shownCaller'>
) {
  /** Of tenants and of their callers, the least recently used first. */
  const rates = new Map<string, Rate>()
  let current = limits()
  let waitingRefusals = 0
  let lastRefusalAt = 0

  function rateOf(key: string, perSecond: number): Rate {
    const known = rates.get(key)
    // While there is room for many more, nobody is forgotten, and the order is of no use.
    if (known !== undefined && rates.size < maxKept / 2) return known
    const rate = known ?? { bucket: createTokenBucket(clock, perSecond, perSecond * burstSeconds), refused: undefined }
    if (known !== undefined) rates.delete(key)
    rates.set(key, rate)
    const [oldest] = rates.size > maxKept ? rates.keys() : []
    if (oldest !== undefined) rates.delete(oldest)
    return rate
  }

  function noteRefused(rate: Rate, principal: CountedCaller['principal'], limit: Limit): void {
    if (rate.refused !== undefined) return void rate.refused++
    const { tenant } = principal
    const client = (shownCaller?.(tenant, principal) ?? principal).clientId
    const who = limit === 'requestsPerSecondPerPrincipal' ? { tenant, client } : { tenant }
    const fields = { ...who, limit, perSecond: current[limit] }
    log.warn(fields, 'too many requests a second: those beyond are refused')
    rate.refused = 0
    clock.timer(warnMs, () => noteMore(rate, fields)).unref()
  }

  function noteMore(rate: Rate, fields: object): void {
    const requests = rate.refused ?? 0
    rate.refused = requests === 0 ? undefined : 0
    if (requests === 0) return
    log.warn({ ...fields, requests, withinMs: warnMs }, 'too many requests a second: more were refused')
    clock.timer(warnMs, () => noteMore(rate, fields)).unref()
  }

  function take(key: string, limit: Limit, principal: CountedCaller['principal']): void {
    const perSecond = current[limit]
    const rate = rateOf(key, perSecond)
    if (rate.bucket.take()) return
    noteRefused(rate, principal, limit)
    const who = limit === 'requestsPerSecondPerPrincipal' ? 'This caller' : 'This tenant'
    throw new GatewayError(
      'rate_limited',
      `${who} sends more than ${perSecond} requests a second (limits.${limit}). Wait a second, then send more slowly.`,
      {
        data: { limit },
        headers: { 'RateLimit-Policy': `"${limit}";q=${perSecond};w=1`, RateLimit: `"${limit}";r=0;t=1` }
      }
    )
  }

  /**
   * Counts requests of a caller.
   * @throws GatewayError rate_limited
   */
  function count({ person, principal }: CountedCaller, requests = 1): void {
    const now = limits()
    if (now !== current) rates.clear()
    current = now
    for (let n = 0; n < requests; n++) {
      take(person, 'requestsPerSecondPerPrincipal', principal)
      take(`tenant ${principal.tenant}`, 'requestsPerSecondPerTenant', principal)
    }
  }

  function refuseLater(error: unknown): Promise<never> {
    waitingRefusals++
    const now = clock.now()
    lastRefusalAt = Math.max(now + refusedAfterMs, Math.min(lastRefusalAt + refusalGapMs, now + 2 * refusedAfterMs))
    return new Promise((_resolve, reject) => {
      const refuse = (): void => {
        waitingRefusals--
        reject(error)
      }
      clock.timer(lastRefusalAt - now, refuse).unref()
    })
  }

  return {
    count,
    /**
     * Counts one that is to be let in.
     * @returns undefined: it is; else it is refused as `count` throws, after a while
     * @throws GatewayError rate_limited where too many refusals wait
     */
    letIn(caller: CountedCaller): Promise<never> | undefined {
      try {
        count(caller)
      } catch (error) {
        if (waitingRefusals >= maxWaitingRefusals) throw error
        return refuseLater(error)
      }
      return undefined
    }
  }
}
