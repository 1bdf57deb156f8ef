// The embedded store on node:sqlite: a file that one gateway process owns, or memory. Messages stay in the process.
// It refuses a file that another process has open: the two would not get each other's messages.

import type { StatementSync } from 'node:sqlite'
import type { Log } from '../observe/log.ts'
import { leaseTokens, readBucketState } from './lease.ts'
import { type Store, createChannelListeners, wholeMs } from './port.ts'
import { every, steadyClock } from '../time/clock.ts'
import { nextTurn } from '../time/turns.ts'
import { openDatabase } from './sqlite-file.ts'
import { createLogs } from './sqlite-logs.ts'
import { createSortedSets } from './sqlite-sets.ts'
import { attempt, createTransactions } from './sqlite-turns.ts'

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
  const logs = createLogs(database)
  const sets = createSortedSets(database)
  const turns = createTransactions(database, path, logs.rolledBack)
  const get = database.prepare('SELECT value FROM entry WHERE key = ? AND expires_at > ?')
  const insert = 'INSERT INTO entry (key, value, expires_at) VALUES (?1, ?2, ?3)'
  const update = 'ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at'
  const put = database.prepare(`${insert} ${update}`)
  const add = database.prepare(`${insert} ${update} WHERE entry.expires_at <= ?4`)
  const replace = database.prepare('UPDATE entry SET value = ?2, expires_at = ?3 WHERE key = ?1 AND expires_at > ?4')
  const exchange = database.prepare(
    'UPDATE entry SET value = ?2, expires_at = ?3 WHERE key = ?1 AND expires_at > ?4 AND value = ?5'
  )
  const remove = database.prepare('DELETE FROM entry WHERE key = ? RETURNING expires_at')
  const removeSame = database.prepare('DELETE FROM entry WHERE key = ? AND value = ? AND expires_at > ?')
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
  const one = database.prepare('SELECT 1')

  const expiry = (ttlMs: number | undefined): number =>
    ttlMs === undefined ? never : Math.min(never, Math.ceil(clock.now()) + wholeMs(ttlMs))
  const wrote = (statement: StatementSync, ...values: Array<string | number>): boolean =>
    Number(statement.run(...values).changes) > 0

  function sweepStep(): void {
    if (!database.isOpen) return
    try {
      const isMore = wrote(sweep, clock.now(), sweepRows)
      const isMoreLogged = logs.sweep(clock.now(), sweepRows)
      if (sets.sweep(clock.now(), sweepRows) || isMoreLogged || isMore) setImmediate(sweepStep).unref()
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
      if (when === undefined) return turns.write(() => wrote(put, key, value, expiresAt))
      if (typeof when === 'object')
        return turns.write(() => wrote(exchange, key, value, expiresAt, clock.now(), when.is))
      return turns.write(() => wrote(when === 'absent' ? add : replace, key, value, expiresAt, clock.now()))
    },
    delete: (key, when) =>
      turns.write(() => {
        if (when !== undefined) return wrote(removeSame, key, when.is, clock.now())
        const row = remove.get(key)
        const logged = logs.remove(key, clock.now())
        const listed = sets.drop(key, clock.now())
        return logged || listed || (row !== undefined && Number(row['expires_at']) > clock.now())
      }),
    async touch(key, ttlMs) {
      const expiresAt = expiry(ttlMs)
      return turns.write(() => wrote(touch, expiresAt, key, clock.now()))
    },
    async count(key, by, ttlMs) {
      const expiresAt = expiry(ttlMs)
      const step = BigInt(by) // As a number it would be a REAL to SQLite, and its text "1.0".
      return turns.write(() => Number(count.get(key, step, expiresAt, clock.now())?.['value']))
    },
    async lease(key, request) {
      return turns.write(() => {
        const now = clock.now()
        const row = get.get(key, now)
        const before = row === undefined ? undefined : readBucketState(String(row['value']))
        const { state, lease } = leaseTokens(before, request, now)
        put.run(key, JSON.stringify(state), expiry(request.ttlMs))
        return lease
      })
    },
    async append(key, entry, { ttlMs, keep, isLazy }) {
      const expiresAt = expiry(ttlMs)
      await turns.write(() => logs.append(key, entry, clock.now(), expiresAt, keep), isLazy)
    },
    async entries(key) {
      let page = attempt(() => logs.entries(key, clock.now()))
      while (!page.isWhole) {
        await nextTurn()
        const before = page
        page = attempt(() => logs.entries(key, clock.now(), before))
      }
      return page.entries
    },
    async addMember(key, member, { ttlMs, from }) {
      const expiresAt = expiry(ttlMs)
      await turns.write(() => sets.add(key, member, clock.now(), expiresAt, from))
    },
    async removeMember(key, member) {
      await turns.write(() => sets.remove(key, member))
    },
    members: async (key, { max, before }) => attempt(() => sets.last(key, clock.now(), max, before)),
    async publish(channel, message) {
      attempt(() => one.get()) // A closed store publishes nothing.
      setImmediate(() => listeners.deliver(channel, message))
      return listeners.has(channel) ? 1 : 0
    },
    async subscribe(channel, listener) {
      const stop = listeners.add(channel, listener)
      return async () => stop()
    },
    onLost() {
      // Never called: no message can be missed within one process.
    },
    live: true,
    shared: false,
    lasting: path !== ':memory:',
    async ping() {
      attempt(() => one.get())
    },
    async close() {
      sweeper.close()
      turns.close()
      if (database.isOpen) database.close()
    }
  }
}
