// How much of one list of an upstream is read. Whoever reads it stops at the same place, so that nobody works for what nobody offers.

export const maxPages = 100
/** Of one list: 4 MiB for the four of an upstream. */
const maxListLength = 1_048_576

export interface Budget {
  /** @returns false where the list is longer with this entry than anybody reads */
  spend (entry: unknown): boolean
}

export function createBudget (): Budget {
  let spent = 0
  return {
    spend (entry) {
      spent += JSON.stringify(entry).length
      return spent <= maxListLength
    }
  }
}
