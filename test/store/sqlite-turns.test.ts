// The embedded store writes once for all that one turn of the event loop wants written: what is acknowledged is in the
// file, what is not is nowhere, and logs cost the same however long they are.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import fs, { statSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import type { Store } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { openDatabase } from '../../src/store/sqlite/file.ts'
import { createLogs } from '../../src/store/sqlite/logs.ts'
import { inRow } from '../../src/store/sqlite/pieces.ts'
import { createTransactions } from '../../src/store/sqlite/turns.ts'
import { quiet, until } from './kit.ts'

const ttlMs = 60_000
const numbers = (count: number): number[] => Array.from({ length: count }, (_, at) => at)

async function opened(t: Test, path: string, clock: { now(): number } = Date, sweepMs = 3_600_000): Promise<Store> {
  const store = await createSqliteStore({ path, clock, log: quiet, sweepMs })
  t.teardown(() => store.close())
  return store
}

/** A process that has a store in this file, and runs this with it. */
function other(t: Test, path: string, script: string, shell = 'exec "$0" "$@"'): ChildProcess & { stdout: object } {
  const module = pathToFileURL(join(import.meta.dirname, '../../src/store/sqlite.ts')).href
  const text = `
    const { createSqliteStore } = await import(${JSON.stringify(module)})
    const store = await createSqliteStore({ path: ${JSON.stringify(path)}, clock: Date, log: console })
    setInterval(() => {}, 1000)
    ${script}`
  const args = ['-c', shell, process.execPath, '--input-type=module', '-e', text]
  const child = spawn('/bin/sh', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

function rows(path: string, table: string): number {
  using database = new DatabaseSync(path)
  return Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
}

t.test('what two hundred streams write in one turn costs little more than one write', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const store = await opened(t, path)
  const size = (): number => statSync(`${path}-wal`).size
  await store.append('first', 'x', { ttlMs, keep: 10 })
  const before = size()
  await Promise.all(numbers(200).map((at) => store.append(`log ${at}`, 'x'.repeat(100), { ttlMs, keep: 10 })))
  const bytes = size() - before
  t.ok(bytes > 20_000, 'the write-ahead log holds them')
  t.ok(bytes < 400_000, `${bytes} bytes of it, which would be megabytes by a transaction each`)
  t.same(await store.entries('log 199'), ['x'.repeat(100)])
})

t.test('what was acknowledged is there after the process was killed', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const child = other(
    t,
    path,
    `await Promise.all([
      store.set('value', 'v'),
      store.count('counter', 7, ${ttlMs}),
      ...[1, 2, 3].map((n) => store.append('log', String(n), { ttlMs: ${ttlMs}, keep: 2 }))
    ])
    process.kill(process.pid, 'SIGKILL')`
  )
  await once(child, 'exit')
  const store = await opened(t, path)
  t.equal(await store.get('value'), 'v')
  t.equal(await store.count('counter', 1, ttlMs), 8)
  t.same(await store.entries('log'), ['2', '3'])
})

t.test('where the file cannot grow, all writes of the turn are refused and none has happened', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const child = other(
    t,
    path,
    `const fits = []
    for (let at = 0; ; at++) {
      const options = { ttlMs: ${ttlMs}, keep: 10 }
      const written = await Promise.allSettled([
        store.append('log', 'of ' + at, options),
        store.append('log ' + at, 'x', options),
        store.set('large ' + at, 'x'.repeat(30_000)),
        store.set('small ' + at, 'x')
      ])
      const states = new Set(written.map(({ status }) => status))
      if (states.size > 1) console.log('"of one turn some were written"')
      if (!states.has('rejected')) { fits.push('of ' + at); continue }
      const there = [await store.get('large ' + at), await store.get('small ' + at)]
      const logs = [await store.entries('log'), await store.entries('log ' + at)]
      console.log(JSON.stringify({ fits, there, logs, codes: written.map(({ reason }) => reason.code) }))
      break
    }`,
    'ulimit -f 800; exec "$0" "$@"'
  )
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  const { fits, ...found } = JSON.parse(line.toString()) as { fits: string[] } & Record<string, unknown>
  t.ok(fits.length > 2, 'before that, all was written')
  t.same(found, {
    there: [null, null],
    logs: [fits.slice(-10), []],
    codes: Array.from({ length: 4 }, () => 'unavailable')
  })
})

t.test('what SQLite took back between two writes of a turn is refused, and the later write counts alone', async (t) => {
  const database = await openDatabase(':memory:')
  t.teardown(() => database.close())
  const logs = createLogs(database)
  const turns = createTransactions(database, ':memory:', logs.rolledBack)
  const append = (entry: string, isLazy: boolean): Promise<boolean> =>
    turns.write(() => logs.append('log', inRow(entry), 0, 100, 10), { isLazy })
  const before = [append('taken back', false), append('taken back, too', true)]
  // As a read does that has to write pages to a disk that is full.
  database.exec('ROLLBACK')
  const after = append('written', false)
  for (const each of before) await t.rejects(each, { code: 'unavailable' })
  await after
  t.same(logs.entries('log', 0)?.entries, ['written'])
  logs.rolledBack()
  t.same(logs.entries('log', 0)?.entries, ['written'], 'under the number that the file has')
})

t.test('a log lives while it is added to, is swept as a whole, and begins anew under its name', async (t) => {
  let now = 0
  const path = join(t.testdir(), 'store.db')
  const store = await opened(t, path, { now: () => now }, 5)
  const options = { ttlMs: 100, keep: 1_000 }
  for (; now < 500; now += 20) await store.append('lives', String(now), options)
  for (const at of numbers(700)) await store.append('ends', String(at), options)
  t.equal((await store.entries('lives')).length, 25)
  now += 60
  await store.append('lives', 'on', options)
  now += 45
  await store.append('ends', 'anew', options)
  t.same(await store.entries('ends'), ['anew'], 'nothing of the one before')
  t.equal((await store.entries('lives')).length, 26, 'older than its time to live, and there with its newer entries')
  now += 200
  t.same(await store.entries('lives'), [])
  // The clock goes back for a moment to see whether it is gone or merely hidden.
  await until(async () => {
    now -= 200
    const logs = await Promise.all([store.entries('lives'), store.entries('ends')])
    now += 200
    return logs.every((entries) => entries.length === 0)
  })
  await store.close()
  t.equal(rows(path, 'log_entry'), 0)
})

t.test(
  'a log that is written to again after it was swept has nothing to do with those that began meanwhile',
  async (t) => {
    let now = 0
    const path = join(t.testdir(), 'store.db')
    const store = await opened(t, path, { now: () => now }, 5)
    const options = { ttlMs: 100, keep: 10 }
    await store.append('first', 'old', options)
    now += 1_000
    // A moment before, it would still be there: it is swept once this finds nothing.
    await until(async () => {
      now -= 1_000
      const entries = await store.entries('first')
      now += 1_000
      return entries.length === 0
    })
    await store.append('other', 'a', options)
    await store.append('first', 'new', options)
    await store.append('other', 'b', options)
    t.same(await store.entries('other'), ['a', 'b'])
    t.same(await store.entries('first'), ['new'])
    await store.delete('first')
    t.same(await store.entries('other'), ['a', 'b'])
  }
)

t.test('a file of the version before keeps its values and logs', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const before = new DatabaseSync(path)
  before.exec(`
    CREATE TABLE entry (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;
    CREATE INDEX entry_by_expiry ON entry (expires_at);
    CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, value TEXT NOT NULL,
      expires_at INTEGER NOT NULL) STRICT;
    CREATE INDEX log_by_key ON log (key, id);
    CREATE INDEX log_by_expiry ON log (expires_at);
    INSERT INTO entry VALUES ('value', 'v', 2000);
    INSERT INTO log (key, value, expires_at) VALUES
      ('a', 'of an expired log', 500), ('a', '1', 2000), ('b', '1', 3000), ('a', '2', 2000), ('c', '1', 900);
    PRAGMA user_version = 1`)
  before.close()
  let now = 1_000
  const clock = { now: () => now }
  const store = await opened(t, path, clock)
  t.equal(await store.get('value'), 'v')
  t.same(await Promise.all(['a', 'b', 'c'].map((key) => store.entries(key))), [['1', '2'], ['1'], []])
  await store.append('a', '3', { ttlMs: 5_000, keep: 2 })
  t.same(await store.entries('a'), ['2', '3'])
  now = 3_000
  t.same(await store.entries('b'), [])
  await store.close()
  t.same(await (await opened(t, path, clock)).entries('a'), ['2', '3'], 'and is one of this version from then on')
})

t.test('what nobody waits for is read at once, and written with the next write, or a moment later', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const store = await opened(t, path)
  const written: string[] = []
  const lazy = (entry: string): Promise<unknown> =>
    store.append(`log of ${entry}`, entry, { ttlMs, keep: 10, isLazy: true }).then(() => written.push(entry))
  let tries = 0
  // The moment is 20 ms: a machine that stands still for nearly as long shows nothing.
  await until(async () => {
    // With it goes what waits of a try before.
    await store.set('key', 'before')
    const began = performance.now()
    await new Promise(setImmediate)
    const entry = `a ${++tries}`
    void lazy(entry)
    await new Promise(setImmediate)
    const found = [await store.entries(`log of ${entry}`), written.includes(entry)]
    if (performance.now() - began >= 10) return false
    t.same(found, [[entry], false], 'a turn later it is read, and not written')
    return true
  })
  await store.set('key', 'value')
  t.equal(written.at(-1), `a ${tries}`, 'another write took it along')
  await lazy('b')
  const last = lazy('c')
  await store.close()
  await last
  t.equal(rows(path, 'log_entry'), tries + 2, 'all of it is in the file once the store is closed')
})

t.test('a write is given to the disk about a second later, not at once', async (t) => {
  const { fdatasync } = fs
  t.teardown(() => {
    fs.fdatasync = fdatasync
    syncBuiltinESMExports()
  })
  let synced = 0
  // As it is, and seen.
  fs.fdatasync = ((file: number, done: fs.NoParamCallback) =>
    fdatasync(file, (error) => {
      synced++
      done(error)
    })) as typeof fdatasync
  syncBuiltinESMExports()
  const store = await opened(t, join(t.testdir(), 'store.db'))
  const from = performance.now()
  await store.set('one', 'x', { ttlMs })
  t.equal(synced, 0)
  await until(() => synced > 0)
  const afterMs = performance.now() - from
  t.ok(afterMs >= 900, `not at each write: after ${afterMs.toFixed(0)} ms`)
  await store.close()
})
