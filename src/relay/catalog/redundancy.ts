// For how long a view that was the same as the shared listing is taken to be so: each look at it takes a connection.

import { backoffMs, type Clock } from '../../time/clock.ts'
import type { Listing } from '../../upstream/listing/listing.ts'

export interface Redundancy {
  /** Is the view taken to be the same as the shared listing? */
  holds(): boolean
  /** The view was read. */
  compare(listing: Listing): void
  /** Something changed. @returns false where the view was not the same when it was read last */
  doubt(): boolean
}

/** A server may have come to list something else. */
const maxMs = 10 * 60_000
/**
 * After a change the view is looked at again at the earliest after this; twice as long after each look that showed the
 * same.
 */
const firstMs = 10_000

/** @param isSame whether what was read is the same as the shared listing; called once for each reading */
export function createRedundancy(isSame: (listing: Listing) => boolean, clock: Clock): Redundancy {
  let timesSame = 0
  let comparedAt = 0
  let isDoubtful = false
  return {
    holds() {
      if (timesSame === 0) return false
      return clock.now() < comparedAt + (isDoubtful ? backoffMs(timesSame - 1, { firstMs, maxMs }) : maxMs)
    },
    compare(listing) {
      timesSame = isSame(listing) ? timesSame + 1 : 0
      comparedAt = clock.now()
      isDoubtful = false
    },
    doubt() {
      isDoubtful = timesSame > 0
      return isDoubtful
    }
  }
}
