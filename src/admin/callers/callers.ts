// Who has called lately: the callers of each tenant that this process saw, with what rules look at of them. In its
// memory only, and of a bounded number: the audit log has all.

import type { Principal } from '../../auth/principal.ts'
import type { CallMeter, ObservedCaller } from '../../observe/calls.ts'
import type { Clock } from '../../time/clock.ts'

/** Of the process, and of one tenant: beyond, whoever called longest ago is forgotten. */
const maxCallers = 2_000
const maxCallersOfTenant = 200
const dayMs = 24 * 60 * 60 * 1000

export interface SeenCaller {
  /** As they called last: a newer token may say other groups. */
  readonly principal: ObservedCaller
  readonly software: string | undefined
  readonly calls: number
  /** Epoch ms. */
  readonly firstAt: number
  readonly lastAt: number
}

export type Callers = ReturnType<typeof createCallers>

/** @param wall the time of day */
export function createCallers(wall: Pick<Clock, 'now'>) {
  /** Of each tenant in the order of their last calls. */
  const tenants = new Map<string, Map<string, SeenCaller>>()
  let count = 0

  function forgetOldest(seen: Map<string, SeenCaller>): void {
    const [oldest] = seen.keys()
    if (oldest !== undefined && seen.delete(oldest)) count--
  }

  /** The tenant with the most makes room: whoever floods forgets their own. */
  function makeRoom(own: Map<string, SeenCaller>): void {
    if (own.size >= maxCallersOfTenant) forgetOldest(own)
    if (count < maxCallers) return
    const [most = own] = [...tenants.values()].sort((a, b) => b.size - a.size)
    forgetOldest(most)
  }

  return {
    meter: {
      callEnded({ tenant, principal, record }) {
        const now = wall.now()
        const seen = tenants.get(tenant.id) ?? new Map<string, SeenCaller>()
        tenants.set(tenant.id, seen)
        const { kind, issuer, subject, clientId } = principal
        const key = JSON.stringify([kind, issuer, subject, clientId])
        const before = seen.get(key)
        if (before === undefined) {
          makeRoom(seen)
          count++
        } else seen.delete(key)
        const software = record?.software && `${record.software.name} ${record.software.version}`
        const { calls = 0, firstAt = now } = before ?? {}
        seen.set(key, { principal, software: software ?? before?.software, calls: calls + 1, firstAt, lastAt: now })
      }
    } satisfies CallMeter,
    /** Those who called since the day began (UTC), the last one first. */
    today(tenant: string): SeenCaller[] {
      const since = Math.floor(wall.now() / dayMs) * dayMs
      return [...(tenants.get(tenant)?.values() ?? [])].filter(({ lastAt }) => lastAt >= since).toReversed()
    }
  }
}

/** Of a tenant: what calls are observed with is whoever was let in. */
export const callersToday = (callers: Pick<Callers, 'today'> | undefined, tenant: string): Principal[] =>
  (callers?.today(tenant) ?? []).map(({ principal }) => principal as Principal)
