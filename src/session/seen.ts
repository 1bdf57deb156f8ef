// Which messages of other processes have come already. Those of one process come in the order in which it sent them, so the newest of each
// is all that is remembered: nothing that a caller makes a process send takes anybody's place.

export interface Seen {
  /** @param n grows with each message of `from`. @returns false: it was held back, or is played again */
  isNew (from: string, n: number): boolean
}

/** @param forMs after this nothing that a process said before could be taken for new */
export function createSeen (clock: { now (): number }, forMs: number): Seen {
  /** Who was heard last comes last. */
  const newest = new Map<string, { readonly n: number, readonly until: number }>()
  return {
    isNew (from, n) {
      const now = clock.now()
      for (const [each, { until }] of newest) {
        if (until > now) break
        newest.delete(each)
      }
      const known = newest.get(from)
      if (known !== undefined && n <= known.n) return false
      newest.delete(from)
      newest.set(from, { n, until: now + forMs })
      return true
    }
  }
}
