// How fast callers may send long bodies and open sessions, which cost far more than other requests. Whoever is faster
// is not refused, but waits until the limit allows the next one; a long body waits unread, in the client and in the
// system. So who does either without a pause leaves the processor to the others.

import type { Snapshot } from '../../config/snapshot.ts'
import { shortLength } from '../../protocol/json.ts'
import { GatewayError } from '../../protocol/messages.ts'
import type { Clock, Timer } from '../../time/clock.ts'
import { createFairQueue } from '../../time/fair-queue.ts'
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

/** Of a tenant, by its callers. */
interface Waiting {
  readonly wanted: Wanted
  /** Refuses it. */
  readonly late: Timer
  resolve(): void
}
type FairQueue = ReturnType<typeof createFairQueue<Waiting>>

export type Throttle = ReturnType<typeof createThrottle>

/** @param limits those in force */
export function createThrottle(
  limits: () => Pick<Snapshot['limits'], Limit | 'queueMs' | 'bodyBytes'>,
  clock: Pick<Clock, 'now' | 'timer'>
) {
  /** By what, and whose: the time by the clock at which the limit has allowed all that came. */
  const allowedAt = new Map<string, number>()
  /** By the same: those that wait for the limit of a tenant. */
  const lines = new Map<string, FairQueue>()

  function count({ sender, kind, amount }: Omit<Wanted, 'until'>, who: Who): void {
    const key = keyOf(sender, kind, who)
    const from = Math.max(clock.now(), allowedAt.get(key) ?? 0)
    // In the order in which they came last.
    allowedAt.delete(key)
    allowedAt.set(key, from + (amount / limits()[`${kind}PerSecondPer${who}`]) * 1_000)
    const [oldest] = allowedAt.size > maxKept ? allowedAt.keys() : []
    if (oldest !== undefined) allowedAt.delete(oldest)
  }

  /** @returns until the limit allows the next one; 0 or less: it does now */
  const waitMsOf = ({ sender, kind }: Wanted, who: Who): number =>
    (allowedAt.get(keyOf(sender, kind, who)) ?? 0) - burstMs - clock.now()

  function refusalOf(wanted: Wanted, who: Who): GatewayError {
    const limit = `${wanted.kind}PerSecondPer${who}` as const
    return refusal(limit, limits()[limit], Math.max(1, waitMsOf(wanted, who)))
  }

  /** @returns what gives back the memory that it takes while it waits. @throws GatewayError rate_limited, too_many */
  function beginWait(wanted: Wanted, who: Who, waitMs: number): () => void {
    if (clock.now() + waitMs > wanted.until) throw refusalOf(wanted, who)
    return wanted.kind === 'bodyBytes' ? holdWaiting(wanted.sender) : () => {}
  }

  /**
   * @returns when the limit of its caller allows it; undefined: at once
   * @throws GatewayError rate_limited where that is too late, too_many, and then it does not count
   */
  function takeOwn(wanted: Wanted): Promise<void> | undefined {
    const waitMs = waitMsOf(wanted, 'Principal')
    const letGo = waitMs > 0 ? beginWait(wanted, 'Principal', waitMs) : undefined
    count(wanted, 'Principal')
    if (letGo === undefined) return undefined
    const { promise, resolve } = Promise.withResolvers<void>()
    clock.timer(waitMs, resolve).unref()
    return promise.finally(letGo)
  }

  /** The same for the limit of its tenant, whose callers take turns. */
  function takeOfTenant(wanted: Wanted): Promise<void> | undefined {
    const { sender, kind, until } = wanted
    if (sender.raw.destroyed) return undefined
    const key = keyOf(sender, kind, 'Tenant')
    const line = lines.get(key) ?? createFairQueue<Waiting>()
    const waitMs = waitMsOf(wanted, 'Tenant')
    if (line.isEmpty && waitMs <= 0) {
      count(wanted, 'Tenant')
      return undefined
    }
    const letGo = beginWait(wanted, 'Tenant', waitMs)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const late = clock.timer(until - clock.now(), () => reject(refusalOf(wanted, 'Tenant')))
    late.unref()
    if (line.isEmpty) clock.timer(waitMs, () => serve(line, wanted)).unref()
    lines.set(key, line)
    line.add({ wanted, late, resolve }, { tenant: '', caller: sender.person })
    return promise.finally(letGo)
  }

  /** @param any of those that wait for the same limit */
  function serve(line: FairQueue, any: Wanted): void {
    for (let waitMs = waitMsOf(any, 'Tenant'); !line.isEmpty; waitMs = waitMsOf(any, 'Tenant')) {
      if (waitMs > 0) return void clock.timer(waitMs, () => serve(line, any)).unref()
      const next = line.next()
      // Then it is refused.
      if (next === undefined || clock.now() >= next.wanted.until) continue
      next.late.close()
      if (!next.wanted.sender.raw.destroyed) count(next.wanted, 'Tenant')
      next.resolve()
    }
    lines.delete(keyOf(any.sender, any.kind, 'Tenant'))
  }

  function wait(sender: Sender, kind: Kind, amount: number): Promise<void> | undefined {
    const { queueMs } = limits()
    const until = clock.now() + (kind === 'bodyBytes' ? Math.min(queueMs, maxBodyWaitMs) : queueMs)
    const wanted = { sender, kind, amount, until }
    // It counts for the tenant when its caller may go on: what one caller has waiting holds up nobody else.
    const own = takeOwn(wanted)
    return own === undefined ? takeOfTenant(wanted) : own.then(() => takeOfTenant(wanted))
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
