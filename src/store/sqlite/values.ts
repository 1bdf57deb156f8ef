// The values of the embedded store: a row for each.

import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { SetOptions } from '../port.ts'
import { inRow, isLong, type Pieces, type Stored } from './pieces.ts'
import { attempt, broken, type Transactions } from './turns.ts'

type When = SetOptions['when']

export const isLongCondition = (when: When): boolean => typeof when === 'object' && isLong(when.is)

/** What is long takes several turns: its key is in order meanwhile (key-order.ts). */
export function createValues(database: DatabaseSync, turns: Transactions, pieces: Pieces, clock: { now(): number }) {
  const find = database.prepare('SELECT value, pieces FROM entry WHERE key = ? AND expires_at > ?')
  const insert = 'INSERT INTO entry (key, value, pieces, expires_at) VALUES (?1, ?2, ?3, ?4)'
  const change = 'SET value = ?2, pieces = ?3, expires_at = ?4'
  const put = database.prepare(`${insert} ON CONFLICT (key) DO UPDATE ${change}`)
  const add = database.prepare(`${insert} ON CONFLICT (key) DO UPDATE ${change} WHERE entry.expires_at <= ?5`)
  const replace = database.prepare(`UPDATE entry ${change} WHERE key = ?1 AND expires_at > ?5`)
  const exchange = database.prepare(
    `UPDATE entry ${change} WHERE key = ?1 AND expires_at > ?5 AND value = ?6 AND pieces IS ?7`
  )
  const remove = database.prepare('DELETE FROM entry WHERE key = ? RETURNING expires_at')
  const removeSame = database.prepare(
    'DELETE FROM entry WHERE key = ? AND value = ? AND pieces IS ? AND expires_at > ?'
  )
  const touch = database.prepare('UPDATE entry SET expires_at = ? WHERE key = ? AND expires_at > ?')
  const sweep = database.prepare(
    'DELETE FROM entry WHERE rowid = (SELECT rowid FROM entry WHERE expires_at <= ? LIMIT 1)'
  )
  const changed = (statement: StatementSync, ...values: Array<string | number | null>): boolean =>
    Number(statement.run(...values).changes) > 0

  function get(key: string, now: number): Stored | undefined {
    const row = find.get(key, now)
    return row === undefined ? undefined : { value: String(row['value']), pieces: row['pieces'] as number | null }
  }

  /** How this very value stands in the row. @returns undefined where the row has another one */
  async function longAs(key: string, value: string): Promise<Stored | undefined> {
    const stored = attempt(() => get(key, clock.now()))
    // Of an earlier layout it may stand in one piece.
    const text = typeof stored?.pieces === 'number' ? await pieces.read(stored) : stored?.value
    return text === value ? stored : undefined
  }

  return {
    get,
    /** @throws GatewayError unavailable */
    async read(key: string): Promise<string | undefined> {
      for (let missing: number | undefined; ;) {
        const stored = attempt(() => get(key, clock.now()))
        if (stored === undefined || stored.pieces === null) return stored?.value
        if (stored.pieces === missing) throw broken(new Error('pieces of a value are missing'))
        const text = await pieces.read(stored)
        if (text !== undefined) return text
        missing = stored.pieces
      }
    },
    put: (key: string, value: string, expiresAt: number) => put.run(key, value, null, expiresAt),
    /** @returns whether it was written. @throws GatewayError unavailable */
    async write(key: string, value: string, expiresAt: number, when: When): Promise<boolean> {
      const is = typeof when === 'object' ? when.is : ''
      const before = isLong(is) ? await longAs(key, is) : inRow(is)
      if (before === undefined) return false
      const set = (stored: Stored): boolean => {
        const row = [key, stored.value, stored.pieces, expiresAt] as const
        if (when === undefined) return changed(put, ...row)
        if (typeof when === 'object') return changed(exchange, ...row, clock.now(), before.value, before.pieces)
        return changed(when === 'absent' ? add : replace, ...row, clock.now())
      }
      if (isLong(value)) return await pieces.write(value, false, set)
      return await turns.write(() => set(inRow(value)), { value })
    },
    /** @returns whether there was a live one */
    remove(key: string, now: number): boolean {
      const row = remove.get(key)
      return row !== undefined && Number(row['expires_at']) > now
    },
    async removeSame(key: string, is: string): Promise<boolean> {
      const same = isLong(is) ? await longAs(key, is) : inRow(is)
      if (same === undefined) return false
      return await turns.write(() => changed(removeSame, key, same.value, same.pieces, clock.now()))
    },
    touch: (key: string, expiresAt: number, now: number) => changed(touch, expiresAt, key, now),
    /** Deletes an expired value. @returns whether there was one */
    sweep: (now: number) => changed(sweep, now)
  }
}
