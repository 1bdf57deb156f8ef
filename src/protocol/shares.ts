// What many have part in: nobody takes more than is theirs, and what one has is missing to no other.

export interface Shares {
  /**
   * @param accounts whom it counts for, and how much each of them may have at once
   * @returns what gives it back, once; undefined where one of them would have too much, and then nothing was taken
   */
  take (amount: number, accounts: ReadonlyArray<readonly [key: string, limit: number]>): (() => void) | undefined
  /** Accounts that have anything. */
  readonly size: number
}

export function createShares (): Shares {
  const taken = new Map<string, number>()
  return {
    take (amount, accounts) {
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
    get size () { return taken.size }
  }
}
