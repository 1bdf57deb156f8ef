// Messages between processes that were held back or are played again.

/**
 * Recognises messages that were held back or are played again. Only the newest number of each sender is kept: no caller
 * can fill this memory by making a process send.
 * @param forMs after this time no message of before is accepted anyway
 * @returns whether a message is newer than all of the same sender before
 */
export function createReplayGuard(clock: { now(): number }, forMs: number): (from: string, n: number) => boolean {
  /** The process heard last comes last. */
  const newest = new Map<string, { readonly n: number; readonly until: number }>()
  return (from, n) => {
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
