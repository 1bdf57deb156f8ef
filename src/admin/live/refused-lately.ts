// Requests that a limit refused, by tenant, in the last minutes: a limit is too low, or a client too fast.

import type { ErrorCode } from '../../protocol/error-table.ts'
import type { Clock } from '../../time/clock.ts'

const minuteMs = 60_000
export const refusedMinutes = 10
/** The most pairs of a tenant and a limit that are counted at once. */
const maxCounted = 512

const limitCodes: ReadonlySet<string> = new Set<ErrorCode>([
  'too_many',
  'rate_limited',
  'quota_exceeded',
  'overloaded',
  'result_too_large'
])

/** A call that is refused before its answer begins is told as both. */
type Told = 'call' | 'request'

interface Refused {
  /** undefined: of callers who were not let in. */
  readonly tenant: string | undefined
  readonly code: ErrorCode
  /** The counts by minute. */
  readonly minutes: Map<number, Record<Told, number>>
}

export type RefusedLately = ReturnType<typeof createRefusedLately>

/** @param wall the time of day */
export function createRefusedLately(wall: Pick<Clock, 'now'>) {
  const counted = new Map<string, Refused>()

  function forgetOld(now: number): void {
    for (const [key, { minutes }] of counted) {
      for (const minute of minutes.keys()) if (minute <= now - refusedMinutes) minutes.delete(minute)
      if (minutes.size === 0) counted.delete(key)
    }
  }

  function refusedOf(code: ErrorCode, tenant: string | undefined, now: number): Refused | undefined {
    const key = `${code}\n${tenant ?? ''}`
    const known = counted.get(key)
    if (known !== undefined) return known
    forgetOld(now)
    if (counted.size >= maxCounted) return undefined
    const made: Refused = { tenant, code, minutes: new Map() }
    counted.set(key, made)
    return made
  }

  return {
    note(code: string, tenant: string | undefined, told: Told, at: number): void {
      if (!limitCodes.has(code)) return
      const now = Math.floor(at / minuteMs)
      const minutes = refusedOf(code as ErrorCode, tenant, now)?.minutes
      if (minutes === undefined) return
      const counts = minutes.get(now) ?? { call: 0, request: 0 }
      const isFirst = !minutes.has(now)
      minutes.set(now, counts)
      counts[told]++
      if (isFirst) forgetOld(now)
    },
    /** `count`: how many there were at least. */
    read() {
      forgetOld(Math.floor(wall.now() / minuteMs))
      return [...counted.values()].map(({ tenant, code, minutes }) => ({
        tenant,
        code,
        count: minutes.values().reduce((sum, { call, request }) => sum + Math.max(call, request), 0)
      }))
    }
  }
}
