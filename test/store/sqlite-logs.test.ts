// The logs of the embedded store share tables: what is left of one is never read as an entry of another.

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { openDatabase } from '../../src/store/sqlite/file.ts'
import { createLogs } from '../../src/store/sqlite/logs.ts'
import { inRow } from '../../src/store/sqlite/pieces.ts'
import { quiet } from './kit.ts'

const long = 'x'.repeat(300_000)

function count(database: DatabaseSync, table: string): number {
  return Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
}

t.test('a log whose entries are swept already goes with its references to long values', async (t) => {
  const database = await openDatabase(':memory:')
  t.teardown(() => database.close())
  const before = createLogs(database)
  for (const pieces of [1, 2, 3]) before.append('first', { value: '2', pieces }, 0, 100, 10)
  // As the sweep does first.
  database.exec('DELETE FROM log_entry')
  const logs = createLogs(database)
  t.equal(logs.remove('first', 50), true)
  t.equal(count(database, 'long_entry'), 0)
  t.equal(count(database, 'unused_pieces'), 3, 'and their pieces can be swept')
  logs.append('second', inRow('2'), 50, 100, 10)
  t.same(logs.entries('second', 50)?.entries, ['2'])
})

t.test('the number of a log that is gone is never given to another one', async (t) => {
  const database = await openDatabase(':memory:')
  t.teardown(() => database.close())
  const logs = createLogs(database)
  const numberOf = (key: string): unknown => {
    logs.append(key, inRow('x'), 0, 100, 10)
    return database.prepare('SELECT id FROM log_head WHERE key = ?').get(key)?.['id']
  }
  const first = numberOf('first')
  logs.remove('first', 0)
  const numbers = [first, numberOf('second'), numberOf('first')]
  t.equal(new Set(numbers).size, 3, numbers.join(', '))
  // What is in the file without a head counts, too.
  database.exec(
    "INSERT INTO log_entry VALUES (70, 1, 'of a log that is gone'); INSERT INTO long_entry VALUES (80, 1, 9)"
  )
  const again = createLogs(database)
  again.append('third', inRow('x'), 0, 100, 10)
  t.same(again.entries('third', 0)?.entries, ['x'])
  t.equal(database.prepare("SELECT id FROM log_head WHERE key = 'third'").get()?.['id'], 81)
})

t.test('a file in which a log stands where a long entry of another one was left is mended at the start', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const open = () => createSqliteStore({ path, clock: { now: () => 1_000 }, log: quiet, sweepMs: 3_600_000 })
  const options = { ttlMs: 100_000, keep: 10 }
  const before = await open()
  await before.append('kept', long, options)
  await before.append('gone', long, options)
  await before.close()
  const harmed = new DatabaseSync(path)
  harmed.exec(`DELETE FROM log_entry WHERE log = (SELECT id FROM log_head WHERE key = 'gone');
    UPDATE log_head SET key = 'another' WHERE key = 'gone'`)
  t.equal(count(harmed, 'long_entry'), 2)
  harmed.close()
  const store = await open()
  t.teardown(() => store.close())
  await store.append('another', '3', options)
  await store.close()
  const again = await open()
  t.teardown(() => again.close())
  t.same(await again.entries('another'), ['3'])
  t.ok((await again.entries('kept'))[0] === long, 'the control')
  await again.close()
  using database = new DatabaseSync(path)
  t.equal(count(database, 'long_entry'), 1)
  t.equal(count(database, 'unused_pieces'), 1, 'its pieces can be swept')
})

t.test('a page of a log has some thousand entries at most, and all pages have all of them', async (t) => {
  const database = await openDatabase(':memory:')
  t.teardown(() => database.close())
  const logs = createLogs(database)
  for (let at = 0; at < 10_000; at++) logs.append('log', inRow('0123456789'), 0, 100, 20_000)
  let page = logs.entries('log', 0)
  const first = page?.entries.length
  t.ok(first !== undefined && first < 3_000, `${first} in the first one`)
  while (page !== undefined && page.last < page.end) page = logs.entries('log', 0, page)
  t.equal(page?.entries.length, 10_000)
})
