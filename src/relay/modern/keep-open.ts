// Connections that somebody listens on are in use, although nobody may call over them for an hour.

import type { UpstreamDefinition } from '../../config/snapshot.ts'
import type { PaceClock } from '../pace.ts'

interface Kept {
  readonly definition: UpstreamDefinition
  readonly scope: string
}

export interface KeepOpen {
  /** There is something to keep; it is looked at often enough, until there is nothing any more. */
  begin (): void
  close (): void
}

const longestMs = 5_000

/** @param all what is to be kept open, whenever it is asked */
export function createKeepOpen (all: () => Iterable<Kept>, touch: (scope: string, definition: UpstreamDefinition) => void, clock: PaceClock): KeepOpen {
  let timer: { close (): unknown } | undefined
  let closed = false

  function begin (): void {
    if (timer !== undefined || closed) return
    const kept = [...all()]
    if (kept.length === 0) return
    for (const { scope, definition } of kept) touch(scope, definition)
    const next = clock.timer(Math.min(longestMs, ...kept.map(({ definition: { idleMs } }) => idleMs / 3)), () => {
      timer = undefined
      begin()
    })
    next.unref()
    timer = next
  }

  return {
    begin,
    close () {
      closed = true
      timer?.close()
    }
  }
}
