// What is left out of what processes say to each other, because there is no room for it, is told in the log: at once,
// and then at most every ten seconds with how many.

import { LRUCache } from 'lru-cache'
import type { Log } from '../../observe/log.ts'
import type { Clock } from '../../time/clock.ts'
import type { BusCaller } from './bus-places.ts'

const quietMs = 10_000
/** Whose count is kept. */
const maxTenants = 1_000

export type LeftOut = ReturnType<typeof createLeftOut>

export function createLeftOut({ now }: Pick<Clock, 'now'>, log: Log) {
  const counts = new LRUCache<string, { count: number; until: number }>({ max: maxTenants })
  return ({ tenant }: Pick<BusCaller, 'tenant'>): void => {
    const own = counts.get(tenant) ?? { count: 0, until: -Infinity }
    counts.set(tenant, own)
    own.count++
    if (now() < own.until) return
    log.warn(
      { tenant, messages: own.count },
      'no room for messages of this tenant from one process to another: they are left out'
    )
    Object.assign(own, { count: 0, until: now() + quietMs })
  }
}
