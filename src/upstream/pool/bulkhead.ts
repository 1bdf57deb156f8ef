// Limits the concurrent calls of one upstream, over all its connections, so that a slow upstream cannot hold all the
// calls that the gateway may have. A call above the limit is refused rather than queued: in a queue it would use up the
// limits of its caller and its tenant for as long as the upstream is slow.

import { createQuota } from '../../limits/limits.ts'
import { GatewayError, type Request } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import { personShareOf, socketUseOf } from '../http/socket-pool.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'

/**
 * The time between two log lines that an upstream is at its limit, in milliseconds; each refused call gets an error.
 */
const loggedEveryMs = 60_000

export type Bulkhead = ReturnType<typeof createBulkhead>

export function createBulkhead(clock: Pick<Clock, 'now'>, log: Log) {
  const calls = createQuota()
  /** When the limit was logged last, by hash of the definition; in milliseconds since the epoch. */
  const loggedAt = new Map<string, number>()

  return {
    /**
     * @param person who calls; undefined: no single person
     * @returns a function that ends the call's place, to be called once; or the error if the call may not be sent
     */
    enter(
      { hash, name, tenant, maxCalls }: UpstreamDefinition,
      { method }: Request,
      person: string | undefined
    ): (() => void) | GatewayError {
      if (socketUseOf(method) !== 'calls') return () => {}
      const own = personShareOf(maxCalls)
      const leave = calls.take(1, [
        [hash, maxCalls],
        ...(person === undefined ? [] : ([[`${hash} ${person}`, own]] as const))
      ])
      if (leave !== undefined) return leave
      const now = clock.now()
      // Math.abs: the line is logged also after the clock was set back.
      if (Math.abs(now - (loggedAt.get(hash) ?? -Infinity)) >= loggedEveryMs) {
        log.warn({ upstream: name, tenant, maxCalls }, 'an upstream has all the calls that it may have at once')
        loggedAt.set(hash, now)
      }
      const text =
        `Upstream ${name} gets at most ${maxCalls} calls at once (maxCalls of the upstream), ${own} of them for one ` +
        'caller, and these are running. The request was not sent: retry when some have ended.'
      return new GatewayError('too_many', text, { data: { upstream: name, limit: 'maxCalls' } })
    },
    retain(hashes: Pick<ReadonlySet<string>, 'has'>): void {
      for (const hash of loggedAt.keys()) if (!hashes.has(hash)) loggedAt.delete(hash)
    }
  }
}
