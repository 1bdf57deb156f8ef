// Which one-time ids have come already, for as long as they could come again.

export interface Seen {
  /** @returns `new`, and knows it from now on; `known`; or `full`: it may be either, and is not remembered */
  look (id: string): 'new' | 'known' | 'full'
}

/** @param forMs for how long each is remembered */
export function createSeen (clock: { now (): number }, forMs: number, max: number): Seen {
  /** Until when; the oldest one first. */
  const ids = new Map<string, number>()
  return {
    look (id) {
      const now = clock.now()
      for (const [each, until] of ids) {
        if (until > now) break
        ids.delete(each)
      }
      if (ids.has(id)) return 'known'
      if (ids.size >= max) return 'full'
      ids.set(id, now + forMs)
      return 'new'
    }
  }
}
