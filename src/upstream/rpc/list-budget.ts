// How much of one list of an upstream is read, for its listing and for the headers of calls alike.

export const maxPages = 100
/** Of one list: 4 MiB for the four of an upstream. */
const maxListLength = 1_048_576

export interface ListBudget {
  /** @returns false where the list is too long with this entry */
  spend(entry: unknown): boolean
}

export function createListBudget(): ListBudget {
  let spent = 0
  return {
    spend(entry) {
      spent += JSON.stringify(entry).length
      return spent <= maxListLength
    }
  }
}
