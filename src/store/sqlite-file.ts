// Opens the database file of the embedded store: readable by its user only, locked by one process, of a known layout.

import { chmod, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { GatewayError } from '../protocol/messages.ts'

// Kept in the file; a file of a later layout is refused rather than misread.
const layout = 1
// How long to wait for a predecessor that is just closing the file. SQLite waits without yielding, so only at the
// start.
const busyMs = 1_000
// Result codes, https://www.sqlite.org/rescode.html
const sqliteBusy = 5
const sqliteNotADatabase = 26

/**
 * @param path of the file, or `:memory:`
 * @throws GatewayError unavailable; the message names the file and the remedy, for the operator at the start
 */
export async function openDatabase(path: string): Promise<DatabaseSync> {
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
    throw cause instanceof GatewayError ? cause : new GatewayError('unavailable', openError(path, cause), { cause })
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

function openError(path: string, error: unknown): string {
  const { errcode, code } = error as { errcode?: number; code?: string }
  if (errcode === sqliteBusy) {
    return (
      `The store file ${path} is in use by another process. One gateway per file: stop the other one, choose ` +
      'another file under store, or give all of them one Redis (store: redis://HOST:PORT).'
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
