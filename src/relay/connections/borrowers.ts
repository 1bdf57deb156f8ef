// The processes that send calls in a session of this one, and which ids their requests have there.

import type { SessionSharing } from '../../protocol/seams.ts'
import type { Clock } from '../../time/clock.ts'

/** Of the process that sends calls in a session of this one: it is asked again before half of it is over. */
export const lentMs = 10_000
/** Series of ids that one process has of a session; of more the oldest are forgotten. */
const maxSeries = 16

export type Borrowers = ReturnType<typeof createBorrowers>

/** Of one connection, or of all. */
export function createBorrowers(clock: Pick<Clock, 'now'>) {
  const known = new Map<string, { readonly until: number; readonly series: readonly number[] }>()

  /** @returns those that are in the session */
  function nodes(): string[] {
    const now = clock.now()
    for (const [node, { until }] of known) if (until <= now) known.delete(node)
    return [...known.keys()]
  }

  return {
    nodes,
    /** It is in the session from now on, for `lentMs`. @param begin where series of ids begin that it has */
    note(node: string, begin: readonly number[]): void {
      const series = [...new Set([...(known.get(node)?.series ?? []), ...begin])].slice(-maxSeries)
      known.set(node, { until: clock.now() + lentMs, series })
    },
    /** @returns the one whose request has this id, if any */
    ownersOf: (id: unknown, sharing: Pick<SessionSharing, 'isIn'>): string[] =>
      nodes().filter((node) => known.get(node)?.series.some((from) => sharing.isIn(from, id)) === true)
  }
}
