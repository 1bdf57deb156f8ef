// Deletes what has expired from the embedded store, in the background: some rows in one turn of the event loop, since
// SQLite blocks the whole process meanwhile.

import type { DatabaseSync } from 'node:sqlite'
import type { Log } from '../../observe/log.ts'
import { every, steadyClock } from '../../time/clock.ts'
import type { Transactions } from './turns.ts'

/** Rows deleted in one turn: small ones, of which a turn has time for more. */
const turnRows = 500
/** Milliseconds of a turn. The last row may exceed them: one of 128 Ki characters takes up to three. */
const turnMs = 4

interface Swept {
  /** Deletes a row. @returns whether there was one to delete */
  sweep(now: number): boolean
}

/** @returns what deletes as much as one turn has time for, and says whether there may be more */
export function createSweep(tables: readonly Swept[], steadyNow = () => performance.now()) {
  return (now: number): boolean => {
    const from = steadyNow()
    for (let rows = 0; rows < turnRows && steadyNow() - from < turnMs; rows++)
      if (!tables.some((table) => table.sweep(now))) return false
    return true
  }
}

/** @param everyMs how often it begins. @returns what ends it */
export function startSweeper(
  database: DatabaseSync,
  { write }: Transactions,
  tables: readonly Swept[],
  clock: { now(): number },
  log: Log,
  everyMs: number
): { close(): void } {
  const sweep = createSweep(tables)
  let isUnderWay = false

  async function sweepAll(): Promise<void> {
    if (isUnderWay) return
    isUnderWay = true
    try {
      while (database.isOpen && (await write(() => sweep(clock.now()))));
    } catch (err) {
      // Only disk space is lost: expired rows are never returned, and the next round tries again.
      log.warn({ err }, 'expired rows of the store could not be swept')
    } finally {
      isUnderWay = false
    }
  }
  return every(steadyClock, everyMs, () => void sweepAll())
}
