// The sorted sets of the embedded store: members beside each other in their order, and the time of each set.

import type { DatabaseSync } from 'node:sqlite'

export function createSortedSets(database: DatabaseSync) {
  const find = database.prepare('SELECT expires_at FROM member_set WHERE key = ?')
  const prolong = database.prepare(
    `INSERT INTO member_set (key, expires_at) VALUES (?, ?)
    ON CONFLICT (key) DO UPDATE SET expires_at = excluded.expires_at`
  )
  const forget = database.prepare('DELETE FROM member_set WHERE key = ?')
  const put = database.prepare('INSERT INTO member (key, value) VALUES (?, ?) ON CONFLICT DO NOTHING')
  const remove = database.prepare('DELETE FROM member WHERE key = ? AND value = ?')
  const trim = database.prepare('DELETE FROM member WHERE key = ? AND value < ?')
  const empty = database.prepare('DELETE FROM member WHERE key = ?')
  const read = database.prepare('SELECT value FROM member WHERE key = ? ORDER BY value DESC LIMIT ?')
  const readBefore = database.prepare(
    'SELECT value FROM member WHERE key = ? AND value < ? ORDER BY value DESC LIMIT ?'
  )
  const expired = database.prepare('SELECT key FROM member_set WHERE expires_at <= ? ORDER BY expires_at LIMIT 1')
  const sweepMember = database.prepare(
    'DELETE FROM member WHERE key = ?1 AND value = (SELECT min(value) FROM member WHERE key = ?1)'
  )

  const isLive = (key: string, now: number): boolean => Number(find.get(key)?.['expires_at'] ?? 0) > now
  function drop(key: string, now: number): boolean {
    const wasLive = isLive(key, now)
    empty.run(key)
    forget.run(key)
    return wasLive
  }

  return {
    add(key: string, member: string, now: number, expiresAt: number, from: string): void {
      if (!isLive(key, now)) empty.run(key)
      put.run(key, member)
      trim.run(key, from)
      prolong.run(key, expiresAt)
    },
    remove: (key: string, member: string): unknown => remove.run(key, member),
    last(key: string, now: number, max: number, before: string | undefined): string[] {
      if (!isLive(key, now)) return []
      const rows = before === undefined ? read.all(key, max) : readBefore.all(key, before, max)
      return rows.map((row) => String(row['value']))
    },
    /** @returns whether there was a live one */
    drop,
    /** Deletes a member of an expired set, or the set where it has none. @returns whether there was one */
    sweep(now: number): boolean {
      const row = expired.get(now)
      if (row === undefined) return false
      const key = String(row['key'])
      if (Number(sweepMember.run(key).changes) === 0) forget.run(key)
      return true
    }
  }
}
