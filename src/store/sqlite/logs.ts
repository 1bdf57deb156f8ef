// The logs of the embedded store: a head for each, and its entries beside each other under the number of the head, so
// that an addition costs the same however long the log is.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type Stored, textOf } from './pieces.ts'

/** Heads in memory, for the logs that are written to now. No other process has the file. */
const maxHeads = 2_000
/**
 * The time of a log is written with so much to spare, of its time to live, so that not every addition writes it: a log
 * whose head is no more in memory lives for so much longer.
 */
const spare = 0.0625
/** The bytes of a log that are read in one turn of the event loop; the last entry may exceed them. */
const pageBytes = 262_144
/** What each entry counts for beside its text: short ones take time, too. */
const entryBytes = 128

interface Head {
  readonly id: number
  /** The number of its last entry. */
  last: number
  expiresAt: number
  /** Whether it has, or had, entries in pieces. */
  hasLong: boolean
  /** The end of the log in the file: never earlier than the true one. */
  storedUntil: number
}

export interface LogPage {
  readonly log: number
  readonly entries: string[]
  /** The number of the last entry of the log when its first page was read. */
  readonly end: number
  /** An entry in pieces that comes next. */
  long?: Stored
  /** The number of the last of all these. */
  last: number
}

export type Logs = ReturnType<typeof createLogs>

export function createLogs(database: DatabaseSync) {
  const find = database.prepare(
    `SELECT id, expires_at, (SELECT max(at) FROM log_entry WHERE log = log_head.id) AS last,
      EXISTS (SELECT 1 FROM long_entry WHERE log = log_head.id) AS has_long FROM log_head WHERE key = ?`
  )
  const begin = database.prepare('INSERT INTO log_head (id, key, expires_at) VALUES (?, ?, ?)')
  const newest = database.prepare(
    `SELECT max((SELECT ifnull(max(id), 0) FROM log_head), (SELECT ifnull(max(log), 0) FROM log_entry),
      (SELECT ifnull(max(log), 0) FROM long_entry)) AS id`
  )
  // Never given twice: whatever stands under the number of a log that is gone is nobody else's.
  let lastId = Number(newest.get()?.['id'])
  const prolong = database.prepare('UPDATE log_head SET expires_at = ? WHERE id = ?')
  const push = database.prepare('INSERT INTO log_entry (log, at, value) VALUES (?, ?, ?)')
  const pushLong = database.prepare('INSERT INTO long_entry (log, at, pieces) VALUES (?, ?, ?)')
  const trim = database.prepare('DELETE FROM log_entry WHERE log = ? AND at <= ?')
  const trimLong = database.prepare('DELETE FROM long_entry WHERE log = ? AND at <= ?')
  const reading = (pieces: string): StatementSync =>
    database.prepare(
      `SELECT at, CAST(value AS BLOB) AS value, ${pieces} AS pieces FROM log_entry AS e
      WHERE log = ? AND at > ? AND at <= ? ORDER BY at`
    )
  const read = reading('NULL')
  const readLong = reading('(SELECT pieces FROM long_entry AS l WHERE l.log = e.log AND l.at = e.at)')
  const removeEntries = database.prepare('DELETE FROM log_entry WHERE log = ?')
  const removeLong = database.prepare('DELETE FROM long_entry WHERE log = ?')
  const removeHead = database.prepare('DELETE FROM log_head WHERE id = ?')
  const expired = database.prepare('SELECT id, key FROM log_head WHERE expires_at <= ? ORDER BY expires_at LIMIT 1')
  const sweepRow = (table: string): StatementSync =>
    database.prepare(`DELETE FROM ${table} WHERE log = ?1 AND at = (SELECT min(at) FROM ${table} WHERE log = ?1)`)
  // The entries first: else they would be taken for what stands in their rows.
  const sweepRows = [sweepRow('log_entry'), sweepRow('long_entry')]
  const heads = new Map<string, Head>()

  function headOf(key: string): Head | undefined {
    const known = heads.get(key)
    if (known !== undefined) return known
    const row = find.get(key)
    if (row === undefined) return undefined
    const expiresAt = Number(row['expires_at'])
    return remember(key, {
      id: Number(row['id']),
      last: Number(row['last']),
      expiresAt,
      hasLong: row['has_long'] === 1,
      storedUntil: expiresAt
    })
  }

  function remember(key: string, head: Head): Head {
    const [oldest] = heads.size >= maxHeads ? heads.keys() : []
    if (oldest !== undefined) heads.delete(oldest)
    heads.set(key, head)
    return head
  }

  function remove(key: string, now: number): boolean {
    const head = headOf(key)
    if (head === undefined) return false
    heads.delete(key)
    removeEntries.run(head.id)
    if (head.hasLong) removeLong.run(head.id)
    removeHead.run(head.id)
    return head.expiresAt > now
  }

  return {
    append(key: string, { value, pieces }: Stored, now: number, expiresAt: number, keep: number): true {
      let head = headOf(key)
      if (head !== undefined && head.expiresAt <= now) head = void remove(key, now)
      const until = Math.min(expiresAt + Math.ceil((expiresAt - now) * spare), Number.MAX_SAFE_INTEGER)
      if (head === undefined) {
        begin.run(++lastId, key, until)
        head = remember(key, { id: lastId, last: 0, expiresAt, hasLong: false, storedUntil: until })
      }
      push.run(head.id, ++head.last, value)
      if (pieces !== null) {
        pushLong.run(head.id, head.last, pieces)
        head.hasLong = true
      }
      head.expiresAt = expiresAt
      // Too early would lose it, much later would keep what is of no use.
      if (expiresAt > head.storedUntil || until < head.storedUntil) {
        head.storedUntil = until
        prolong.run(until, head.id)
      }
      if (head.last > keep) {
        trim.run(head.id, head.last - keep)
        if (head.hasLong) trimLong.run(head.id, head.last - keep)
      }
      return true
    },
    /**
     * @param page what was read so far: the log is read up to the entry that was its last at the first page
     * @returns that and the next page, up to `end` where it is the last; undefined where there is no such log any more:
     * it is gone, begun anew, or what comes next was trimmed
     */
    entries(key: string, now: number, page?: LogPage): LogPage | undefined {
      const head = headOf(key)
      if (head === undefined || head.expiresAt <= now) return undefined
      const { log, entries, end, last }: LogPage = page ?? { log: head.id, entries: [], end: head.last, last: 0 }
      if (head.id !== log) return undefined
      const next: LogPage = { log, entries, end, last }
      let bytes = 0
      // Numbers have no gaps: where the next one is missing, it was trimmed.
      let isNext = page === undefined
      for (const row of (head.hasLong ? readLong : read).iterate(log, last, end)) {
        const { value, pieces, at } = row as { value: Uint8Array; pieces: number | null; at: number }
        isNext ||= at === next.last + 1
        if (!isNext) return undefined
        next.last = at
        if (pieces !== null) {
          next.long = { value: textOf(value), pieces }
          break
        }
        entries.push(textOf(value))
        if ((bytes += value.byteLength + entryBytes) >= pageBytes) break
      }
      return isNext ? next : undefined
    },
    /** @returns whether there was a live one */
    remove,
    /** Deletes an entry of an expired log, or its head where it has none. @returns whether there was one */
    sweep(now: number): boolean {
      const row = expired.get(now)
      if (row === undefined) return false
      heads.delete(String(row['key']))
      const id = Number(row['id'])
      if (!sweepRows.some((statement) => Number(statement.run(id).changes) > 0)) removeHead.run(id)
      return true
    },
    /** The file has what it had before this turn. */
    rolledBack: () => heads.clear()
  }
}
