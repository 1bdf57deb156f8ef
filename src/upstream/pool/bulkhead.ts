// How many calls one upstream may have at once, whatever connections they run on: one that is slow holds the calls of
// those who call it, and nobody else's. A call beyond that is refused rather than queued: in a queue it would take up
// its caller's and its tenant's part of all calls for as long as the upstream is slow.

import { createQuota } from '../../limits/limits.ts'
import { GatewayError, type Request } from '../../protocol/messages.ts'
import type { Clock } from '../../time/clock.ts'
import { personShareOf, socketUseOf } from '../http/socket-pool.ts'
import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Log } from '../../observe/log.ts'

/** Until it is logged again that an upstream has all the calls that it may: whoever is refused is told each time. */
const loggedEveryMs = 60_000

export type Bulkhead = ReturnType<typeof createBulkhead>

export function createBulkhead(clock: Pick<Clock, 'now'>, log: Log) {
  const calls = createQuota()
  /** By hash of the definition. */
  const loggedAt = new Map<string, number>()

  return {
    /** @param person undefined: nobody's own. @returns gives the place back, once; or why the call is not sent */
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
      // Math.abs: a clock that is set back must not silence it.
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
