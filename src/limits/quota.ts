// A quota: amounts that are taken at once, counted per key, each key with a limit.

export interface Quota {
  /**
   * @param accounts the keys that the amount counts for, each with its limit
   * @returns a function that gives the amount back (once); undefined where a limit would be exceeded, and then nothing
   * is taken
   */
  take(amount: number, accounts: ReadonlyArray<readonly [key: string, limit: number]>): (() => void) | undefined
  /** Keys with an amount taken. */
  readonly size: number
}

export function createQuota(): Quota {
  const taken = new Map<string, number>()
  return {
    take(amount, accounts) {
      if (accounts.some(([key, limit]) => (taken.get(key) ?? 0) + amount > limit)) return undefined
      for (const [key] of accounts) taken.set(key, (taken.get(key) ?? 0) + amount)
      let back = false
      return () => {
        if (back) return
        back = true
        for (const [key] of accounts) {
          const left = (taken.get(key) ?? 0) - amount
          if (left > 0) taken.set(key, left)
          else taken.delete(key)
        }
      }
    },
    get size() {
      return taken.size
    }
  }
}
