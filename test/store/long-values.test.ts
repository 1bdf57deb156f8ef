// Long values in the embedded store: others have their turns while one is written or read, it is there as a whole or
// not at all, and nothing of it stays in the file.

import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import type { Store } from '../../src/store/port.ts'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { quiet, until } from './kit.ts'

const options = { ttlMs: 60_000, keep: 10 }
/** 16 MB as UTF-8; two units of UTF-16 for each character, of which pieces of an even length have half a one. */
const long = `x${'😀'.repeat(4 * 2 ** 20)}`

async function opened(t: Test, path: string, sweepMs = 3_600_000, clock = { now: () => 1_000 }): Promise<Store> {
  const store = await createSqliteStore({ path, clock, log: quiet, sweepMs })
  t.teardown(() => store.close())
  return store
}

function rows(path: string, table: string): number {
  using database = new DatabaseSync(path)
  return Number(database.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
}

/** Waits until nothing of any long value is in the file. */
async function swept(t: Test, path: string, clock?: { now(): number }): Promise<void> {
  await until(async () => {
    const store = await opened(t, path, 5, clock)
    await pause(50)
    await store.close()
    return rows(path, 'piece') + rows(path, 'unused_pieces') === 0
  })
}

/** A process that has a store in this file, and runs this with it and with `long`. */
function other(t: Test, path: string, script: string, shell = 'exec "$0" "$@"'): ChildProcess {
  const module = pathToFileURL(join(import.meta.dirname, '../../src/store/sqlite.ts')).href
  const text = `
    const { createSqliteStore } = await import(${JSON.stringify(module)})
    const store = await createSqliteStore({ path: ${JSON.stringify(path)}, clock: { now: () => 1000 }, log: console })
    const options = ${JSON.stringify(options)}
    const long = 'x' + '😀'.repeat(4 * 2 ** 20)
    ${script}`
  const args = ['-c', shell, process.execPath, '--input-type=module', '-e', text]
  const child = spawn('/bin/sh', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

t.test('others write and read in many turns while a long value is written or read', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const store = await opened(t, path)
  async function turnsOf<Answer>(work: Promise<Answer>): Promise<[number, Answer]> {
    const ends: true[] = []
    const settled = work.finally(() => ends.push(true))
    let turns = 0
    for (; ends.length === 0; turns++) {
      await store.set('other', String(turns))
      if ((await store.get('other')) !== String(turns)) t.fail('another value is not written meanwhile')
      await nextTurn()
    }
    return [turns, await settled]
  }
  const [appended] = await turnsOf(store.append('log', long, options))
  const [lazy] = await turnsOf(store.append('lazy', long, { ...options, isLazy: true }))
  const [listed, entries] = await turnsOf(store.entries('log'))
  const [set] = await turnsOf(store.set('key', long))
  const [got, value] = await turnsOf(store.get('key'))
  t.comment('turns', { appended, lazy, listed, set, got })
  for (const turns of [appended, lazy, listed, set, got]) t.ok(turns >= 4, `${turns} turns`)
  t.ok(entries.length === 1 && entries[0] === long, 'the entry is whole')
  t.ok(value === long, 'the value is whole')
  const bytes = statSync(`${path}-wal`).size
  t.ok(bytes < 12_000_000, `of 48 MB the write-ahead log had no more than ${bytes} at a time`)
  await store.close()
  const again = await opened(t, path)
  t.ok((await again.get('key')) === long, 'and after reopening')
  t.ok((await again.entries('log'))[0] === long)
})

t.test('of values that were under way when the process was killed nothing is there, and nothing stays', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const child = other(
    t,
    path,
    `await store.append('log', 'before', options)
    await store.set('key', 'before')
    for (const key of ['log', 'new']) void store.append(key, long, options)
    void store.set('key', long)
    setImmediate(() => process.kill(process.pid, 'SIGKILL'))`
  )
  await once(child, 'exit')
  const pieces = rows(path, 'piece')
  t.ok(pieces > 0, `${pieces} pieces are in the file`)
  t.equal(rows(path, 'log_entry'), 1)
  const store = await opened(t, path)
  const found = async (): Promise<unknown> =>
    Promise.all([store.entries('log'), store.entries('new'), store.get('key')])
  t.same(await found(), [['before'], [], 'before'])
  await store.append('log', 'after', options)
  await store.append('new', long, options)
  t.same(await store.entries('log'), ['before', 'after'])
  t.ok((await store.entries('new'))[0] === long, 'none of those pieces')
  await store.delete('new')
  await store.close()
  await swept(t, path)
})

t.test('where the file cannot grow, a long value is refused as a whole, and others keep what they had', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const child = other(
    t,
    path,
    `await store.append('log', 'before', options)
    await store.set('key', 'before')
    const written = await Promise.allSettled([store.append('log', long, options), store.set('key', long)])
    const found = [await store.entries('log'), await store.get('key')]
    console.log(JSON.stringify([written.map(({ reason }) => reason?.code), ...found]))
    process.exit()`,
    'ulimit -f 6000; exec "$0" "$@"'
  )
  const [line] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  t.same(JSON.parse(line.toString()), [['unavailable', 'unavailable'], ['before'], 'before'])
  await once(child, 'exit')
  await swept(t, path)
})

t.test('pieces go with their row: trimmed, deleted, replaced, expired', async (t) => {
  let now = 1_000
  const clock = { now: () => now }
  const path = join(t.testdir(), 'store.db')
  const store = await opened(t, path, 3_600_000, clock)
  const text = long.slice(0, 300_001)
  await store.append('kept', text, options)
  await store.append('trimmed', text, options)
  await store.append('trimmed', 'x', { ...options, keep: 1 })
  await store.append('deleted', text, options)
  await store.delete('deleted')
  for (const key of ['replaced', 'deleted', 'kept']) await store.set(key, text)
  await store.set('replaced', 'x')
  await store.delete('deleted')
  await store.append('expired', text, { ttlMs: 10, keep: 10 })
  await store.set('expired', text, { ttlMs: 10 })
  t.equal(await store.set('kept', text, { when: 'absent' }), false)
  await store.close()
  const perText = 3
  t.equal(rows(path, 'piece'), 9 * perText)
  now += 1_000
  await until(async () => {
    const sweeping = await opened(t, path, 5, clock)
    await pause(50)
    await sweeping.close()
    return rows(path, 'piece') === 2 * perText
  })
  t.equal(rows(path, 'long_entry'), 1)
  const again = await opened(t, path, 3_600_000, clock)
  t.same(await again.entries('trimmed'), ['x'])
  t.ok((await again.entries('kept'))[0] === text && (await again.get('kept')) === text)
  await again.delete('kept')
  await again.close()
  await swept(t, path, clock)
})

t.test('a value whose pieces are missing is refused, until it is written again', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const before = await opened(t, path)
  const text = long.slice(0, 300_001)
  for (const key of ['kept', 'damaged', 'counted']) await before.set(key, text)
  await before.append('log', text, options)
  await before.close()
  const damaged = new DatabaseSync(path)
  damaged.exec(`DELETE FROM piece WHERE part = 1 AND id = (SELECT pieces FROM entry WHERE key = 'damaged');
    DELETE FROM piece WHERE id = (SELECT pieces FROM long_entry)`)
  damaged.close()
  const store = await opened(t, path)
  await t.rejects(store.get('damaged'), { code: 'unavailable' })
  await t.rejects(store.entries('log'), { code: 'unavailable' })
  t.ok((await store.get('kept')) === text, 'the control')
  await store.set('damaged', 'whole')
  t.equal(await store.get('damaged'), 'whole')
  t.equal(await store.count('counted', 3, 60_000), 3, 'a text is no number')
  t.equal(await store.get('counted'), '3')
})

t.test('what is under way when the store is closed is in the file', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const store = await opened(t, path)
  const writes = [store.append('log', long, options), store.append('log', 'after', options), store.set('key', long)]
  await store.close()
  await Promise.all(writes)
  const again = await opened(t, path)
  const [first, after] = await again.entries('log')
  t.ok(first === long && after === 'after')
  t.ok((await again.get('key')) === long)
})

t.test('a file of the version before, with long values in one row, keeps them', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const before = new DatabaseSync(path)
  before.exec(`
    CREATE TABLE entry (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;
    CREATE INDEX entry_by_expiry ON entry (expires_at);
    CREATE TABLE log_head (id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, expires_at INTEGER NOT NULL) STRICT;
    CREATE INDEX log_head_by_expiry ON log_head (expires_at);
    CREATE TABLE log_entry (log INTEGER NOT NULL, at INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (log, at))
      STRICT, WITHOUT ROWID;
    INSERT INTO log_head VALUES (7, 'log', 100000);
    INSERT INTO log_entry VALUES (7, 1, 'x');
    PRAGMA user_version = 2`)
  before.prepare('INSERT INTO entry VALUES (?, ?, 100000)').run('key', long)
  before.prepare('INSERT INTO log_entry VALUES (7, 2, ?)').run(long)
  before.close()
  const store = await opened(t, path)
  await store.append('log', long, options)
  const entries = await store.entries('log')
  t.ok(entries.length === 3 && entries[0] === 'x' && entries[1] === long && entries[2] === long)
  t.ok((await store.get('key')) === long)
  t.equal(await store.set('key', 'y', { when: { is: `${long}x` } }), false)
  t.equal(await store.set('key', long.slice(1), { when: { is: long } }), true)
  t.equal(await store.set('key', 'z', { when: { is: long.slice(1) } }), true)
  t.equal(await store.get('key'), 'z')
})
