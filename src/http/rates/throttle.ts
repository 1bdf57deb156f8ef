// How fast callers may send long bodies and open sessions, which cost far more than other requests. Whoever is faster
// is not refused, but waits until the limit allows the next one; a long body waits unread, in the client and in the
// system. So who does either without a pause leaves the processor to the others.

import type { Snapshot } from '../../config/snapshot.ts'
import { shortLength } from '../../protocol/json.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import type { RequestContext } from '../admission.ts'
import { CountedRequest } from '../counted-request.ts'

/** What so long allows may come at once after a pause, in milliseconds. */
const burstMs = 1_000
/** Callers and tenants that are kept; who came least recently is forgotten, and may send a burst again. */
const maxKept = 20_000
/** The longest wait of a body, in milliseconds: it must come whole within `requestTimeout` (server.ts). */
const maxBodyWaitMs = 15_000
/** What a body that waits takes, in bytes: its request (32 KiB), and what Node has read of it (twice 64 KiB). */
const waitingBytes = 163_840

type Kind = 'bodyBytes' | 'sessions'
type Who = 'Principal' | 'Tenant'
type Limit = `${Kind}PerSecondPer${Who}`

type Sender = Pick<RequestContext, 'person' | 'incoming' | 'memory'> & {
  readonly raw: Pick<RequestContext['raw'], 'destroyed'>
  readonly principal: Pick<RequestContext['principal'], 'tenant'>
}

/** What wants to go on: so many bytes, or sessions. */
interface Wanted {
  readonly sender: Sender
  readonly kind: Kind
  readonly amount: number
  /** By the clock: it is refused where it would wait for longer. */
  readonly until: number
}

export type Throttle = ReturnType<typeof createThrottle>

/** @param limits those in force */
export function createThrottle(
  limits: () => Pick<Snapshot['limits'], Limit | 'queueMs' | 'bodyBytes'>,
  clock: Pick<Clock, 'now' | 'timer'>
) {
  /** By what, and whose: the time by the clock at which the limit has allowed all that came. */
  const allowedAt = new Map<string, number>()

  function count({ sender, kind, amount }: Omit<Wanted, 'until'>, who: Who): void {
    const key = keyOf(sender, kind, who)
    const from = Math.max(clock.now(), allowedAt.get(key) ?? 0)
    // In the order in which they came last.
    allowedAt.delete(key)
    allowedAt.set(key, from + (amount / limits()[`${kind}PerSecondPer${who}`]) * 1_000)
    const [oldest] = allowedAt.size > maxKept ? allowedAt.keys() : []
    if (oldest !== undefined) allowedAt.delete(oldest)
  }

  /**
   * @returns when it may go on; undefined: at once
   * @throws GatewayError rate_limited where that is too late, too_many, and then it does not count
   */
  function take(wanted: Wanted, who: Who): Promise<void> | undefined {
    const { sender, kind, until } = wanted
    const now = clock.now()
    const waitMs = (allowedAt.get(keyOf(sender, kind, who)) ?? 0) - burstMs - now
    if (waitMs > 0 && now + waitMs > until) {
      const limit = `${kind}PerSecondPer${who}` as const
      throw refusal(limit, limits()[limit], waitMs)
    }
    const letGo = waitMs > 0 && kind === 'bodyBytes' ? holdWaiting(sender) : undefined
    count(wanted, who)
    if (waitMs <= 0) return undefined
    return new Promise((resolve) => {
      const goOn = (): void => {
        letGo?.()
        resolve()
      }
      clock.timer(waitMs, goOn).unref()
    })
  }

  function wait(sender: Sender, kind: Kind, amount: number): Promise<void> | undefined {
    const { queueMs } = limits()
    const until = clock.now() + (kind === 'bodyBytes' ? Math.min(queueMs, maxBodyWaitMs) : queueMs)
    const wanted = { sender, kind, amount, until }
    // It counts for the tenant when it may go on: what one caller has waiting holds up nobody else.
    const ofTenant = (): Promise<void> | undefined => (sender.raw.destroyed ? undefined : take(wanted, 'Tenant'))
    const own = take(wanted, 'Principal')
    return own === undefined ? ofTenant() : own.then(ofTenant)
  }

  /** One without a length counts when it was read, as far as it came, also where it is refused then. */
  function countWhenRead(sender: Sender): void {
    const { incoming } = sender
    if (!(incoming instanceof CountedRequest)) return
    incoming.once('close', () => {
      if (!isLong(incoming.bytes)) return
      const read = { sender, kind: 'bodyBytes', amount: incoming.bytes } as const
      count(read, 'Principal')
      count(read, 'Tenant')
    })
  }

  return {
    /**
     * Before a body is read.
     * @returns when it may be read; undefined: at once
     * @throws GatewayError rate_limited, too_many, also what is returned
     */
    body(sender: Sender): Promise<void> | undefined {
      const { headers } = sender.incoming
      // Of a longer one nothing is read.
      const bytes = Math.min(Number(headers['content-length'] ?? 0), limits().bodyBytes)
      if (isLong(bytes)) return wait(sender, 'bodyBytes', bytes)
      if (headers['transfer-encoding'] === undefined) return undefined
      countWhenRead(sender)
      return wait(sender, 'bodyBytes', 0)
    },
    /**
     * Before a session is opened.
     * @returns when it may be opened; undefined: at once
     * @throws GatewayError rate_limited, also what is returned
     */
    session: (sender: Sender): Promise<void> | undefined => wait(sender, 'sessions', 1)
  }
}

const keyOf = ({ person, principal }: Sender, kind: Kind, who: Who): string =>
  `${kind} ${who} ${who === 'Tenant' ? principal.tenant : person}`

/** Shorter ones are limited as requests. */
const isLong = (bytes: number): boolean => bytes > shortLength

/** @returns how it is given back. @throws GatewayError too_many */
function holdWaiting({ memory: { share } }: Sender): () => void {
  if (!share.take(waitingBytes)) throw share.refusal(waitingBytes, 'The request, while its body waits,')
  return () => share.move(-waitingBytes)
}

function refusal(limit: Limit, perSecond: number, waitMs: number): GatewayError {
  const who = limit.endsWith('Tenant') ? 'This tenant' : 'This caller'
  const what = limit.startsWith('sessions')
    ? `opens more than ${perSecond} sessions a second`
    : `sends more than ${perSecond} bytes a second in long bodies`
  const seconds = Math.ceil(waitMs / 1_000)
  const unit = limit.startsWith('sessions') ? '' : ';qu="content-bytes"'
  return new GatewayError(
    'rate_limited',
    `${who} ${what} (limits.${limit}), so this one would wait for too long. Wait ${seconds} seconds, then go on more ` +
      'slowly.',
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
