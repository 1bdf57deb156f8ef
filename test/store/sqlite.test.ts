// What the embedded store promises beyond the port: its file survives, is private and has one owner, and does not grow
// for ever.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { createSqliteStore } from '../../src/store/sqlite.ts'
import { quiet, until } from './kit.ts'

const clock = { now: () => 1_000 }
const mode = async (path: string): Promise<number> => (await stat(path)).mode & 0o777

t.test('what was written is there after reopening, with what is left of its time', async (t) => {
  let now = 0
  const path = join(t.testdir(), 'store.db')
  const open = () => createSqliteStore({ path, clock: { now: () => now }, log: quiet })
  const before = await open()
  await before.set('kept', 'a\0č')
  await before.set('timed', 'b', { ttlMs: 100 })
  await before.count('counter', 7, 100)
  await before.close()

  now = 99
  const after = await open()
  t.teardown(() => after.close())
  t.equal(await after.get('kept'), 'a\0č')
  t.equal(await after.get('timed'), 'b')
  t.equal(await after.count('counter', 1, 100), 8)
  now = 100
  t.equal(await after.get('timed'), undefined)
  t.equal(await after.get('counter'), undefined)
  t.equal(await after.get('kept'), 'a\0č')
})

t.test(
  'the folder and the file are for the user of the gateway alone, also where the file was open to others',
  async (t) => {
    const folder = join(t.testdir(), 'deep', 'data')
    const path = join(folder, 'store.db')
    const first = await createSqliteStore({ path, clock, log: quiet })
    await first.set('a', 'b')
    t.equal(await mode(folder), 0o700)
    t.equal(await mode(path), 0o600)
    t.equal(await mode(`${path}-wal`), 0o600)
    await first.close()

    await chmod(path, 0o644)
    const second = await createSqliteStore({ path, clock, log: quiet })
    t.teardown(() => second.close())
    t.equal(await mode(path), 0o600)
    t.equal(await second.get('a'), 'b')
  }
)

t.test(
  'a file that another process owns is refused by name and with the remedy, and is free once that process is killed',
  async (t) => {
    const path = join(t.testdir(), 'store.db')
    const module = pathToFileURL(join(import.meta.dirname, '../../src/store/sqlite.ts')).href
    const script = `
    const { createSqliteStore } = await import(${JSON.stringify(module)})
    const store = await createSqliteStore({ path: ${JSON.stringify(path)}, clock: Date, log: console })
    await store.set('of', 'the other')
    console.log('open')
    setInterval(() => {}, 1000)`
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit']
    })
    t.teardown(() => owner.kill('SIGKILL'))
    await once(owner.stdout, 'data')

    const open = () => createSqliteStore({ path, clock, log: quiet })
    const refused = await open().then(
      () => undefined,
      (error: unknown) => error as Error & { code: string }
    )
    t.equal(refused?.code, 'unavailable')
    t.ok(refused?.message.includes(path))
    t.match(refused?.message, /in use by another process.*--data.*Redis/)
    if (process.platform === 'linux') t.match(refused?.message, `another process (process ${owner.pid}).`)

    owner.kill('SIGKILL')
    await once(owner, 'exit')
    const store = await open()
    t.teardown(() => store.close())
    t.equal(await store.get('of'), 'the other')
  }
)

t.test('opening a file twice in one process is refused and leaves the first owner in possession', async (t) => {
  const path = join(t.testdir(), 'store.db')
  const owner = await createSqliteStore({ path, clock, log: quiet })
  await t.rejects(createSqliteStore({ path, clock, log: quiet }), { code: 'unavailable' })
  await t.rejects(createSqliteStore({ path, clock, log: quiet }), { code: 'unavailable' })
  await owner.set('a', 'b')
  t.equal(await owner.get('a'), 'b')
  await owner.close()
  await (await createSqliteStore({ path, clock, log: quiet })).close()
})

t.test(
  'a file that is no database, one of a later version and one that cannot be made are refused by name, untouched',
  async (t) => {
    const folder = t.testdir({ 'text.db': 'not a database, whatever its name says. '.repeat(50) })
    const later = join(folder, 'later.db')
    const database = new DatabaseSync(later)
    database.exec('PRAGMA user_version = 99')
    database.close()
    for (const [path, reason] of [
      [join(folder, 'text.db'), /not an SQLite database/],
      [later, /later version/],
      [join(folder, 'text.db', 'store.db'), /cannot be opened \((ENOTDIR|EEXIST)\)/],
      // Where a folder cannot be made although the one above it is there.
      ['/proc/nowhere/below/store.db', /cannot be opened \(ENOENT\)/]
    ] as const) {
      const refused = await createSqliteStore({ path, clock, log: quiet }).then(
        () => undefined,
        (error: unknown) => error as Error & { code: string }
      )
      t.equal(refused?.code, 'unavailable')
      t.match(refused?.message, reason)
      t.ok(refused?.message.includes(path))
    }
    await writeFile(join(folder, 'text.db'), '') // An empty file is a database that has yet to begin.
    await (await createSqliteStore({ path: join(folder, 'text.db'), clock, log: quiet })).close()
  }
)

t.test('expired rows are swept in the background, however many there are, and live ones stay', async (t) => {
  let now = 0
  const path = join(t.testdir(), 'store.db')
  const rows = async (
    sweepMs: number,
    done: (store: { get(key: string): Promise<string | undefined> }) => Promise<void>
  ): Promise<number> => {
    const store = await createSqliteStore({ path, clock: { now: () => now }, log: quiet, sweepMs })
    await done(store)
    await store.close()
    const database = new DatabaseSync(path)
    const count = Number(database.prepare('SELECT count(*) AS n FROM entry').get()?.['n'])
    database.close()
    return count
  }
  const writer = await createSqliteStore({ path, clock: { now: () => now }, log: quiet })
  for (let i = 0; i < 1_234; i += 1) await writer.set(`gone ${i}`, 'x', { ttlMs: 10 })
  await writer.set('kept', 'x')
  await writer.set('later', 'x', { ttlMs: 1_000 })
  await writer.close()

  now = 500
  t.equal(
    await rows(3_600_000, async (store) => {
      t.equal(await store.get('gone 0'), undefined)
    }),
    1_236,
    'hidden before the sweep'
  )
  // The clock goes back for a moment to see whether the row is gone or merely hidden.
  const swept = async (store: { get(key: string): Promise<string | undefined> }): Promise<void> =>
    until(async () => {
      now = 0
      const values = await Promise.all(Array.from({ length: 1_234 }, (_, i) => store.get(`gone ${i}`)))
      now = 500
      return values.every((value) => value === undefined)
    })
  t.equal(await rows(5, swept), 2)
})
