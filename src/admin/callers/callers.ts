// The recent callers of each tenant at this process, with the members that policy rules read. They are in memory only
// and bounded; the audit log has all.

import type { Principal } from '../../auth/principal.ts'
import type { CallRecord, ObservedCall, ObservedCaller } from '../../observe/calls.ts'
import type { Clock } from '../../time/clock.ts'

/** The most callers of the process, and of one tenant: beyond, the one who called longest ago is forgotten. */
const maxCallers = 2_000
const maxCallersOfTenant = 200
const dayMs = 24 * 60 * 60 * 1000

export interface SeenCaller {
  /** The principal of the last call: a newer token may have other groups. */
  readonly principal: ObservedCaller
  readonly software: string | undefined
  readonly calls: number
  /** Epoch ms. */
  readonly firstAt: number
  readonly lastAt: number
}

interface Seen {
  principal: ObservedCaller
  software: CallRecord['software']
  calls: number
  readonly tenant: string
  readonly firstAt: number
  lastAt: number
  /** The number of its last call among all calls: many end in one millisecond. */
  turn: number
  isForgotten: boolean
}

export type Callers = ReturnType<typeof createCallers>

/** @param wall the time of day */
export function createCallers(wall: Pick<Clock, 'now'>) {
  const tenants = new Map<string, Map<string, Seen>>()
  /** The callers by the object that stands for them in many calls. */
  const known = new WeakMap<ObservedCaller, Seen>()
  let count = 0
  let turns = 0

  function forgetOldest(callers: Map<string, Seen>): void {
    let oldest: readonly [string, Seen] | undefined
    for (const each of callers) if (oldest === undefined || each[1].turn < oldest[1].turn) oldest = each
    if (oldest === undefined) return
    oldest[1].isForgotten = true
    callers.delete(oldest[0])
    count--
  }

  /** Drops a caller of the tenant that has most, so that a flood pushes out only the flooding tenant's callers. */
  function makeRoom(own: Map<string, Seen>): void {
    if (own.size >= maxCallersOfTenant) forgetOldest(own)
    if (count < maxCallers) return
    const [most = own] = [...tenants.values()].sort((a, b) => b.size - a.size)
    forgetOldest(most)
  }

  function seenOf(tenant: string, principal: ObservedCaller, now: number): Seen {
    const callers = tenants.get(tenant) ?? new Map<string, Seen>()
    tenants.set(tenant, callers)
    const { kind, issuer, subject, clientId } = principal
    const key = JSON.stringify([kind, issuer, subject, clientId])
    const before = callers.get(key)
    if (before !== undefined) return before
    makeRoom(callers)
    count++
    const times = { calls: 0, firstAt: now, lastAt: now, turn: 0, isForgotten: false }
    const seen: Seen = { principal, software: undefined, tenant, ...times }
    callers.set(key, seen)
    return seen
  }

  return {
    meter: {
      callEnded({ tenant, principal, record }: ObservedCall, now = wall.now()): void {
        let seen = known.get(principal)
        if (seen === undefined || seen.isForgotten || seen.tenant !== tenant.id) {
          seen = seenOf(tenant.id, principal, now)
          known.set(principal, seen)
        }
        seen.principal = principal
        seen.software = record?.software ?? seen.software
        seen.calls++
        seen.lastAt = now
        seen.turn = ++turns
      }
    },
    /** Returns the callers since the day began (UTC), the last one first. */
    today(tenant: string): SeenCaller[] {
      const since = Math.floor(wall.now() / dayMs) * dayMs
      return [...(tenants.get(tenant)?.values() ?? [])]
        .filter(({ lastAt }) => lastAt >= since)
        .toSorted((a, b) => b.turn - a.turn)
        .map(({ software, ...seen }) => ({ ...seen, software: software && `${software.name} ${software.version}` }))
    }
  }
}

/** Returns the principals who called a tenant today. */
export const callersToday = (callers: Pick<Callers, 'today'>, tenant: string): Principal[] =>
  callers.today(tenant).map(({ principal }) => principal as Principal)
