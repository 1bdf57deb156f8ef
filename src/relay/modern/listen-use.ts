// Whoever listens uses the endpoint: its upstreams are watched, and looked for while they are away.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { Place } from '../call.ts'
import type { Listings } from '../listings.ts'
import type { PaceClock } from '../pace.ts'

export interface ListenUse {
  /** Somebody listens at this place from now on. */
  opened (place: Place): void
  /** Nobody listens any more. */
  stop (): void
}

export interface ListenUseOptions {
  readonly listings: Pick<Listings, 'use'>
  readonly definitionsOf: (place: Place) => readonly UpstreamDefinition[]
  readonly clock: PaceClock
  /** Where somebody listens now, once for each. */
  readonly places: () => Place[]
}

const longestMs = 15_000

export function createListenUse ({ listings, definitionsOf, clock, places }: ListenUseOptions): ListenUse {
  let timer: { close (): unknown } | undefined
  let everyMs = longestMs

  // Well before the connection that watches the lists would count as idle.
  const everyOf = (place: Place): number => Math.min(longestMs, ...definitionsOf(place).map(({ idleMs }) => idleMs / 3))

  function use (): void {
    timer?.close()
    timer = undefined
    everyMs = longestMs
    const all = new Map(places().map((place) => [place.endpoint, place]))
    for (const place of all.values()) {
      for (const definition of definitionsOf(place)) listings.use(definition)
      everyMs = Math.min(everyMs, everyOf(place))
    }
    if (all.size === 0) return
    const next = clock.timer(everyMs, use)
    next.unref()
    timer = next
  }

  return {
    opened (place) {
      if (timer === undefined || everyOf(place) < everyMs) use()
    },
    stop () {
      timer?.close()
      timer = undefined
    }
  }
}
