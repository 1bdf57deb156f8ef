// Opens the file of the embedded store: private, with one owner, in the present layout.

import { DatabaseSync } from 'node:sqlite'
import { chmod, mkdir, open, readFile, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { GatewayError } from '../../protocol/messages.ts'

// Kept in the file; a file of a later layout is refused rather than misread.
const layout = 3
// Pages of the write-ahead log, 16 MiB of it, after which SQLite writes them into the file, without yielding. Rarely,
// as most of what is written is deleted or written again soon; turns.ts has most of it on the disk by then, and does it
// itself where long values make new pages.
const checkpointPages = 4_000
// How long to wait for a predecessor that is just closing the file. SQLite waits without yielding, so only at the
// start.
const busyMs = 1_000
// Result codes, https://www.sqlite.org/rescode.html
const sqliteBusy = 5
const sqliteNotADatabase = 26

/** @throws GatewayError unavailable; the message names the file and the remedy, for the operator at the start */
export async function openDatabase(path: string): Promise<DatabaseSync> {
  if (path === ':memory:') return prepared(new DatabaseSync(path), path)
  let database: DatabaseSync | undefined
  try {
    await makePrivate(path)
    database = new DatabaseSync(path, { timeout: busyMs })
    // Before the journal mode: then the write-ahead log needs no shared memory file, and the first transaction takes
    // the lock of the whole file until the process ends, however it ends. https://www.sqlite.org/wal.html#noshm
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL')
    database.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`)
    return prepared(database, path)
  } catch (cause) {
    database?.close()
    throw cause instanceof GatewayError
      ? cause
      : new GatewayError('unavailable', await openError(path, cause), { cause })
  }
}

/** Each row had the expiry of its log; one with an earlier expiry was of an expired log of the same name. */
const logsOfLayout1 = `
  INSERT INTO log_head (key, expires_at) SELECT key, max(expires_at) FROM log GROUP BY key;
  INSERT INTO log_entry (log, at, value)
    SELECT log_head.id, row_number() OVER (PARTITION BY log.key ORDER BY log.id), log.value
    FROM log JOIN log_head ON log_head.key = log.key AND log_head.expires_at = log.expires_at;
  DROP TABLE log;`

const valuesOfLayout2 = 'ALTER TABLE entry ADD COLUMN pieces INTEGER;'

// Not on the table of log entries: a trigger makes a deletion take half as much again, of which each addition has one.
const noLonger = 'BEGIN INSERT INTO unused_pieces (id) VALUES (old.pieces); END'
const piecesOfValues = `
  CREATE TABLE IF NOT EXISTS piece
    (id INTEGER NOT NULL, part INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (id, part)) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS long_entry
    (log INTEGER NOT NULL, at INTEGER NOT NULL, pieces INTEGER NOT NULL, PRIMARY KEY (log, at)) STRICT, WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS unused_pieces (id INTEGER PRIMARY KEY NOT NULL) STRICT;
  CREATE TRIGGER IF NOT EXISTS entry_deleted AFTER DELETE ON entry WHEN old.pieces IS NOT NULL ${noLonger};
  CREATE TRIGGER IF NOT EXISTS entry_changed AFTER UPDATE OF pieces ON entry WHEN old.pieces IS NOT NULL ${noLonger};
  CREATE TRIGGER IF NOT EXISTS long_entry_deleted AFTER DELETE ON long_entry ${noLonger};`

/** A process that was killed may have left them; an entry that came to stand there would be taken for a long one. */
const longOfNoEntry = `
  DELETE FROM long_entry
  WHERE NOT EXISTS (SELECT 1 FROM log_entry AS e WHERE e.log = long_entry.log AND e.at = long_entry.at);`

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
      (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL, expires_at INTEGER NOT NULL, pieces INTEGER) STRICT;
    CREATE INDEX IF NOT EXISTS entry_by_expiry ON entry (expires_at);
    CREATE TABLE IF NOT EXISTS log_head
      (id INTEGER PRIMARY KEY, key TEXT UNIQUE NOT NULL, expires_at INTEGER NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS log_head_by_expiry ON log_head (expires_at);
    CREATE TABLE IF NOT EXISTS log_entry
      (log INTEGER NOT NULL, at INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (log, at)) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS member
      (key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (key, value)) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS member_set (key TEXT PRIMARY KEY NOT NULL, expires_at INTEGER NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS member_set_by_expiry ON member_set (expires_at);
    ${found === 1 ? logsOfLayout1 : ''}
    ${found === 1 || found === 2 ? valuesOfLayout2 : ''}
    ${piecesOfValues}
    ${longOfNoEntry}
    PRAGMA user_version = ${layout};
    COMMIT`)
  return database
}

/** Sessions name people: only the user of the gateway may read them. SQLite gives its log the mode of the file. */
async function makePrivate(path: string): Promise<void> {
  await makeFolder(dirname(path))
  try {
    // `wx` never opens a file that is there: closing any descriptor of it would drop the locks that this process holds
    // on it (https://www.sqlite.org/howtocorrupt.html section 2.2).
    await (await open(path, 'wx', 0o600)).close()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    await chmod(path, 0o600)
  }
}

/**
 * Makes a folder that only the user of the gateway may read, and those above it. Not `mkdir` with `recursive`, which
 * never ends where a folder that is there says ENOENT, as /proc does.
 * @throws the error of the system, such as EACCES, or ENOTDIR and EEXIST where a file stands in its way
 */
export async function makeFolder(path: string): Promise<void> {
  const make = (): Promise<unknown> => mkdir(path, { mode: 0o700 })
  try {
    await make().catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      await makeFolder(dirname(path))
      await make()
    })
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST' && (await stat(path)).isDirectory()
    if (!isThere) throw error
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

/** Which process holds the file. @returns ` (process ID)`; nothing where the system does not tell */
async function lockOwner(path: string): Promise<string> {
  try {
    const { ino } = await stat(path)
    // proc(5): `1: POSIX  ADVISORY  WRITE 1234 fd:00:INODE START END`. An inode of another file system may have the
    // same number, so two owners are as good as none.
    const locks = [...(await readFile('/proc/locks', 'utf8')).matchAll(/(\d+) [\da-f]+:[\da-f]+:(\d+) /g)]
    const owners = new Set(locks.filter(([, , inode]) => inode === String(ino)).map(([, owner]) => owner))
    return owners.size === 1 ? ` (process ${[...owners].join('')})` : ''
  } catch {
    return '' // Not Linux, or hidden in a container: the message does without.
  }
}
