// Whoever listens uses the endpoint: its upstreams are watched, and looked for while they are away.

import type { Endpoint, UpstreamDefinition } from '../../config/snapshot.ts'
import type { Place } from '../call.ts'
import type { Listings } from '../listings.ts'
import type { PaceClock } from '../pace.ts'
import type { Profile } from '../profiles.ts'

export interface ListenUse {
  /** Somebody listens at this place from now on. */
  opened (place: Place): void
  /** Nobody listens any more. */
  stop (): void
}

/** Somebody who listens at a place, and what decides which lists it sees there. */
export interface Use {
  readonly place: Place
  readonly profile: Profile | undefined
}

export interface ListenUseOptions {
  readonly listings: Pick<Listings, 'use'>
  readonly definitionsOf: (place: Place) => readonly UpstreamDefinition[]
  readonly clock: PaceClock
  /** Where somebody listens now, once for each. */
  readonly places: () => Use[]
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
    const all = new Map<Endpoint, Map<string | undefined, Use>>()
    for (const one of places()) all.set(one.place.endpoint, (all.get(one.place.endpoint) ?? new Map<string | undefined, Use>()).set(one.profile?.key, one))
    for (const { place, profile } of [...all.values()].flatMap((each) => [...each.values()])) {
      for (const definition of definitionsOf(place)) listings.use(definition, profile)
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
