// How fast callers may send long bodies and open sessions, which cost far more than other requests. Whoever is faster
// is not refused, but waits until the limit allows the next one; a long body waits unread, in the client and in the
// system. So who does either without a pause leaves the processor to the others.

import type { Snapshot } from '../../config/snapshot.ts'
import { shortLength } from '../../protocol/json.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import type { RequestContext } from '../admission.ts'

/** What so long allows may come at once after a pause, in milliseconds. */
const burstMs = 1_000
/** Callers and tenants that are kept; who came least recently is forgotten, and may send a burst again. */
const maxKept = 20_000

type Kind = 'bodyBytes' | 'sessions'
type Limit = `${Kind}PerSecondPer${'Principal' | 'Tenant'}`

interface Sender extends Pick<RequestContext, 'person' | 'incoming'> {
  readonly principal: Pick<RequestContext['principal'], 'tenant'>
}

export type Throttle = ReturnType<typeof createThrottle>

/** @param limits those in force */
export function createThrottle(
  limits: () => Pick<Snapshot['limits'], Limit | 'queueMs'>,
  clock: Pick<Clock, 'now' | 'timer'>
) {
  /** By what, and whose: the time by the clock at which the limit has allowed all that came. */
  const allowedAt = new Map<string, number>()

  function count(key: string, amount: number, limit: Limit): void {
    const from = Math.max(clock.now(), allowedAt.get(key) ?? 0)
    // In the order in which they came last.
    allowedAt.delete(key)
    allowedAt.set(key, from + (amount / limits()[limit]) * 1_000)
    const [oldest] = allowedAt.size > maxKept ? allowedAt.keys() : []
    if (oldest !== undefined) allowedAt.delete(oldest)
  }

  /**
   * @returns when it may go on; undefined: at once
   * @throws GatewayError rate_limited where that is after more than `limits.queueMs`, and then it does not count
   */
  function take(key: string, amount: number, limit: Limit): Promise<void> | undefined {
    const waitMs = (allowedAt.get(key) ?? 0) - burstMs - clock.now()
    if (waitMs > limits().queueMs) throw refusal(limit, limits()[limit], waitMs)
    count(key, amount, limit)
    if (waitMs <= 0) return undefined
    return new Promise((resolve) => void clock.timer(waitMs, resolve).unref())
  }

  function wait(sender: Sender, kind: Kind, amount: number): Promise<void> | undefined {
    const { person, tenant } = keysOf(sender, kind)
    // It counts for the tenant when it may go on: what one caller has waiting holds up nobody else.
    const ofTenant = (): Promise<void> | undefined => take(tenant, amount, `${kind}PerSecondPerTenant`)
    const own = take(person, amount, `${kind}PerSecondPerPrincipal`)
    return own === undefined ? ofTenant() : own.then(ofTenant)
  }

  return {
    /**
     * Before a body is read.
     * @returns when it may be read; undefined: at once
     * @throws GatewayError rate_limited, also what is returned
     */
    body(sender: Sender): Promise<void> | undefined {
      const bytes = Number(sender.incoming.headers['content-length'] ?? 0)
      if (isLong(bytes)) return wait(sender, 'bodyBytes', bytes)
      return isChunked(sender) ? wait(sender, 'bodyBytes', 0) : undefined
    },
    /** One that came without a length was read, and counts from now on. */
    bodyRead(sender: Sender, bytes: number): void {
      if (!isLong(bytes) || !isChunked(sender)) return
      const { person, tenant } = keysOf(sender, 'bodyBytes')
      count(person, bytes, 'bodyBytesPerSecondPerPrincipal')
      count(tenant, bytes, 'bodyBytesPerSecondPerTenant')
    },
    /**
     * Before a session is opened.
     * @returns when it may be opened; undefined: at once
     * @throws GatewayError rate_limited, also what is returned
     */
    session: (sender: Sender): Promise<void> | undefined => wait(sender, 'sessions', 1)
  }
}

const keysOf = ({ person, principal }: Sender, kind: Kind) => ({
  person: `${kind} ${person}`,
  tenant: `${kind} of tenant ${principal.tenant}`
})

/** Shorter ones are limited as requests. */
const isLong = (bytes: number): boolean => bytes > shortLength

const isChunked = ({ incoming: { headers } }: Sender): boolean => headers['transfer-encoding'] !== undefined

function refusal(limit: Limit, perSecond: number, waitMs: number): GatewayError {
  const who = limit.endsWith('Tenant') ? 'This tenant' : 'This caller'
  const what = limit.startsWith('sessions')
    ? `opens more than ${perSecond} sessions a second`
    : `sends more than ${perSecond} bytes a second in long bodies`
  const seconds = Math.ceil(waitMs / 1_000)
  const unit = limit.startsWith('sessions') ? '' : ';qu="content-bytes"'
  return new GatewayError(
    'rate_limited',
    `${who} ${what} (limits.${limit}), and as many wait as may. Wait ${seconds} seconds, then go on more slowly.`,
    {
      data: { limit, retryAfterMs: Math.ceil(waitMs) },
      headers: {
        'Retry-After': String(seconds),
        'RateLimit-Policy': `"${limit}";q=${perSecond};w=1${unit}`,
        RateLimit: `"${limit}";r=0;t=${seconds}`
      }
    }
  )
}
