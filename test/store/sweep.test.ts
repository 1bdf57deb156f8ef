// What has expired is deleted row by row, as much in one turn of the event loop as that has time for.

import t from 'tap'
import { openDatabase } from '../../src/store/sqlite/file.ts'
import { createLogs } from '../../src/store/sqlite/logs.ts'
import { inRow } from '../../src/store/sqlite/pieces.ts'
import { createSortedSets } from '../../src/store/sqlite/sets.ts'
import { createSweep } from '../../src/store/sqlite/sweep.ts'

/** Rows that take so many milliseconds each. */
function rowsOf(count: number, rowMs: number) {
  let [left, ms] = [count, 0]
  const table = {
    sweep(): boolean {
      if (left === 0) return false
      left--
      ms += rowMs
      return true
    }
  }
  return { table, now: () => ms, left: () => left }
}

t.test('a turn ends with the row that exceeds its time, and is bounded where no time passes', (t) => {
  const slow = rowsOf(10, 3)
  const sweepSlow = createSweep([slow.table], slow.now)
  const leftOfSlow = Array.from({ length: 3 }, () => [sweepSlow(0), slow.left()])
  t.same(leftOfSlow, [
    [true, 8],
    [true, 6],
    [true, 4]
  ])
  const still = rowsOf(1_250, 0)
  const sweepStill = createSweep([still.table], still.now)
  t.same(
    Array.from({ length: 3 }, () => sweepStill(0)),
    [true, true, false],
    'small rows take few turns'
  )
  t.equal(still.left(), 0)
  t.end()
})

t.test('each table has its turn', (t) => {
  const tables = [rowsOf(2, 1), rowsOf(0, 1), rowsOf(3, 1)]
  const sweep = createSweep(tables.map(({ table }) => table))
  while (sweep(0));
  t.same(
    tables.map(({ left }) => left()),
    [0, 0, 0]
  )
  t.end()
})

t.test('a log and a set go before the next ones, which need not look at what is left of them', async (t) => {
  const database = await openDatabase(':memory:')
  t.teardown(() => database.close())
  const [logs, sets] = [createLogs(database), createSortedSets(database)]
  const names = Array.from({ length: 50 }, (_, at) => String(at))
  for (const name of names) {
    for (const entry of ['a', 'b']) logs.append(name, inRow(entry), 0, 10, 10)
    for (const member of ['a', 'b']) sets.add(name, member, 0, 10, '')
  }
  logs.append('live', inRow('x'), 0, 1_000, 10)
  const count = (table: string): unknown => database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n']
  for (let at = 0; at < 30; at++) t.ok(logs.sweep(100) && sets.sweep(100))
  t.same(['log_entry', 'log_head', 'member', 'member_set'].map(count), [81, 41, 80, 40])
  while (logs.sweep(100));
  while (sets.sweep(100));
  t.same(['log_entry', 'log_head', 'member', 'member_set'].map(count), [1, 1, 0, 0])
})
