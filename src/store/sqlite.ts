// The embedded store on node:sqlite: a file that one gateway process owns, or memory. Messages stay in the process.
// It refuses a file that another process has open: the two would not get each other's messages.

import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { Log } from '../observe/log.ts'
import { type Store, createChannelListeners, unavailable, wholeMs } from './port.ts'
import { every, steadyClock } from '../time/clock.ts'
import { chmod, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { lockOwner } from './lock-owner.ts'
import { GatewayError } from '../protocol/messages.ts'

// Kept in the file; a file of a later layout is refused rather than misread.
const layout = 1
// How long to wait for a predecessor that is just closing the file. SQLite waits without yielding, so only at the
// start.
const busyMs = 1_000
// Result codes, https://www.sqlite.org/rescode.html
const sqliteBusy = 5
const sqliteNotADatabase = 26

// Expiry of what is kept for good: one comparison serves every row.
const never = Number.MAX_SAFE_INTEGER
// Rows deleted at a time, which takes some milliseconds at most: SQLite blocks the whole process meanwhile.
const sweepRows = 500

/**
 * @param path of a file, whose folder is made where it is missing; or `:memory:`
 * @returns the store; it is always `live`, since nothing can get lost between a process and itself
 * @throws GatewayError unavailable when the file is in use, is no database of ours or cannot be opened; the message
 * names it
 */
export async function createSqliteStore({
  path,
  clock,
  log,
  sweepMs = 30_000
}: {
  readonly path: string
  /** Decides what has expired. */
  readonly clock: { now(): number }
  readonly log: Log
  /** How often expired rows are swept; they are never returned in between. */
  readonly sweepMs?: number
}): Promise<Store> {
  const database = await openDatabase(path)
  const listeners = createChannelListeners(log)
  const get = database.prepare('SELECT value FROM entry WHERE key = ? AND expires_at > ?')
  const insert = 'INSERT INTO entry (key, value, expires_at) VALUES (?1, ?2, ?3)'
  const update = 'ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at'
  const put = database.prepare(`${insert} ${update}`)
  const add = database.prepare(`${insert} ${update} WHERE entry.expires_at <= ?4`)
  const replace = database.prepare('UPDATE entry SET value = ?2, expires_at = ?3 WHERE key = ?1 AND expires_at > ?4')
  const remove = database.prepare('DELETE FROM entry WHERE key = ? RETURNING expires_at')
  const removeLog = database.prepare('DELETE FROM log WHERE key = ? AND expires_at > ?')
  const touch = database.prepare('UPDATE entry SET expires_at = ? WHERE key = ? AND expires_at > ?')
  // A counter keeps the end of the window that it began with.
  const count = database.prepare(`
    INSERT INTO entry (key, value, expires_at) VALUES (?1, CAST(?2 AS TEXT), ?3) ON CONFLICT (key) DO UPDATE SET
      value = iif(entry.expires_at <= ?4, excluded.value, CAST(CAST(entry.value AS INTEGER) + ?2 AS TEXT)),
      expires_at = iif(entry.expires_at <= ?4, excluded.expires_at, entry.expires_at)
    RETURNING value`)
  const sweep = database.prepare(
    'DELETE FROM entry WHERE rowid IN (SELECT rowid FROM entry WHERE expires_at <= ? LIMIT ?)'
  )
  const push = database.prepare('INSERT INTO log (key, value, expires_at) VALUES (?, ?, ?)')
  const prolong = database.prepare('UPDATE log SET expires_at = ? WHERE key = ? AND expires_at > ?')
  const trim = database.prepare(
    'DELETE FROM log WHERE key = ?1 AND id <= (SELECT id FROM log WHERE key = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)'
  )
  const read = database.prepare('SELECT value FROM log WHERE key = ? AND expires_at > ? ORDER BY id')
  const sweepLog = database.prepare(
    'DELETE FROM log WHERE rowid IN (SELECT rowid FROM log WHERE expires_at <= ? LIMIT ?)'
  )
  const one = database.prepare('SELECT 1')

  const expiry = (ttlMs: number | undefined): number =>
    ttlMs === undefined ? never : Math.min(never, Math.ceil(clock.now()) + wholeMs(ttlMs))
  const wrote = (statement: StatementSync, ...values: Array<string | number>): boolean =>
    Number(statement.run(...values).changes) > 0

  function sweepStep(): void {
    if (!database.isOpen) return
    try {
      const swept = [sweep, sweepLog].map((statement) => Number(statement.run(clock.now(), sweepRows).changes))
      if (swept.includes(sweepRows)) setImmediate(sweepStep).unref()
    } catch (err) {
      // Only disk space is lost: expired rows are never returned, and the next round tries again.
      log.warn({ err }, 'expired rows of the store could not be swept')
    }
  }
  const sweeper = every(steadyClock, sweepMs, sweepStep)

  return {
    async get(key) {
      const row = attempt(() => get.get(key, clock.now()))
      return row === undefined ? undefined : String(row['value'])
    },
    async set(key, value, { ttlMs, when } = {}) {
      const expiresAt = expiry(ttlMs)
      if (when === undefined) return attempt(() => wrote(put, key, value, expiresAt))
      return attempt(() => wrote(when === 'absent' ? add : replace, key, value, expiresAt, clock.now()))
    },
    async delete(key) {
      return attempt(() => {
        const row = remove.get(key)
        const logged = wrote(removeLog, key, clock.now())
        return logged || (row !== undefined && Number(row['expires_at']) > clock.now())
      })
    },
    async touch(key, ttlMs) {
      const expiresAt = expiry(ttlMs)
      return attempt(() => wrote(touch, expiresAt, key, clock.now()))
    },
    async count(key, by, ttlMs) {
      const expiresAt = expiry(ttlMs)
      const step = BigInt(by) // As a number it would be a REAL to SQLite, and its text "1.0".
      return attempt(() => Number(count.get(key, step, expiresAt, clock.now())?.['value']))
    },
    async append(key, entry, { ttlMs, keep }) {
      const expiresAt = expiry(ttlMs)
      attempt(() => {
        prolong.run(expiresAt, key, clock.now())
        // What has expired of an older log of the same name goes with the next sweep, and is never read.
        push.run(key, entry, expiresAt)
        trim.run(key, keep)
      })
    },
    async entries(key) {
      return attempt(() => read.all(key, clock.now()).map((row) => String(row['value'])))
    },
    async publish(channel, message) {
      attempt(() => one.get()) // A closed store publishes nothing.
      setImmediate(() => listeners.deliver(channel, message))
    },
    async subscribe(channel, listener) {
      const stop = listeners.add(channel, listener)
      return async () => stop()
    },
    onLost() {
      // Never called: no message can be missed within one process.
    },
    live: true,
    async ping() {
      attempt(() => one.get())
    },
    async close() {
      sweeper.close()
      if (database.isOpen) database.close()
    }
  }
}

function attempt<Answer>(work: () => Answer): Answer {
  try {
    return work()
  } catch (cause) {
    throw unavailable(
      'The store of the gateway does not work. Retry in a second; the log of the gateway has the reason.',
      cause
    )
  }
}

/** @throws GatewayError unavailable; the message names the file and the remedy, for the operator at the start */
async function openDatabase(path: string): Promise<DatabaseSync> {
  if (path === ':memory:') return prepared(new DatabaseSync(path), path)
  let database: DatabaseSync | undefined
  try {
    await makePrivate(path)
    database = new DatabaseSync(path, { timeout: busyMs })
    // Before the journal mode: then the write-ahead log needs no shared memory file, and the first transaction takes
    // the lock of the whole file until the process ends, however it ends. https://www.sqlite.org/wal.html#noshm
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    return prepared(database, path)
  } catch (cause) {
    database?.close()
    throw cause instanceof GatewayError
      ? cause
      : new GatewayError('unavailable', await openError(path, cause), { cause })
  }
}

function prepared(database: DatabaseSync, path: string): DatabaseSync {
  database.exec('BEGIN IMMEDIATE')
  const found = Number(database.prepare('PRAGMA user_version').get()?.['user_version'])
  if (found > layout) {
    throw new GatewayError(
      'unavailable',
      `The store file ${path} was written by a later version of the gateway (layout ${found}, this version knows ` +
        `${layout}). Start that version, or choose another file under store.`
    )
  }
  database.exec(`
    CREATE TABLE IF NOT EXISTS entry
      (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, expires_at INTEGER NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS entry_by_expiry ON entry (expires_at);
    CREATE TABLE IF NOT EXISTS log
      (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, value TEXT NOT NULL,
      expires_at INTEGER NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS log_by_key ON log (key, id);
    CREATE INDEX IF NOT EXISTS log_by_expiry ON log (expires_at);
    PRAGMA user_version = ${layout};
    COMMIT`)
  return database
}

/** Sessions name people: only the user of the gateway may read them. SQLite gives its log the mode of the file. */
async function makePrivate(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  try {
    // `wx` never opens a file that is there: closing any descriptor of it would drop the locks that this process holds
    // on it (https://www.sqlite.org/howtocorrupt.html section 2.2).
    await (await open(path, 'wx', 0o600)).close()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    await chmod(path, 0o600)
  }
}

async function openError(path: string, error: unknown): Promise<string> {
  const { errcode, code } = error as { errcode?: number; code?: string }
  if (errcode === sqliteBusy) {
    return (
      `The store file ${path} is in use by another process${await lockOwner(path)}. One gateway per file: stop the ` +
      'other one, choose another folder with --data or another file under store, or give all of them one Redis ' +
      '(store: redis://HOST:PORT).'
    )
  }
  if (errcode === sqliteNotADatabase)
    return `The store file ${path} is not an SQLite database. Choose another file under store, or move this one away.`
  const reason = errcode === undefined ? String(code) : (error as Error).message
  return (
    `The store file ${path} cannot be opened (${reason}). Check that its folder is one that the user of the ` +
    'gateway may write to.'
  )
}
