// How much of the limits of a tenant is used, for whoever runs the gateway.

import type { Tenant } from '../config/snapshot.ts'
import type { Bucket } from '../store/refill.ts'
import { countersOf, type Counter, type Window } from './counters.ts'

/** Of one number of a limit. */
export interface LimitUse {
  readonly limit: string
  readonly unit: string
  /** By whoever has used most of it, of those who are counted apart. */
  readonly used: number
  readonly max: number
  /** Of those who are counted apart, how many have nothing left. */
  readonly atLimit: number
}

interface UsedBucket {
  readonly counter: Counter
  readonly window: Window
  readonly bucket: Bucket
}

/** @param remaining how many tokens a bucket has, as far as this process knows */
export function limitUses(
  { id, limits = {} }: Pick<Tenant, 'id' | 'limits'>,
  used: Iterable<UsedBucket>,
  now: number,
  remaining: (bucket: Bucket) => number
): LimitUse[] {
  const own = Map.groupBy(
    [...used].filter(({ counter, window }) => counter.tenant === id && now < window.until),
    ({ counter: { limit, unit } }) => `${limit} ${unit}`
  )
  return Object.entries(limits).flatMap(([limit, config]) =>
    countersOf(id, limit, config).map(({ unit, capacity: max }) => {
      const left = (own.get(`${limit} ${unit}`) ?? []).map(({ bucket }) => remaining(bucket))
      return { limit, unit, max, used: max - Math.min(max, ...left), atLimit: left.filter((each) => each < 1).length }
    })
  )
}
