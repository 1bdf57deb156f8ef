// The embedded store on node:sqlite: a file that one gateway process owns, or memory. Messages stay in the process.
// It refuses a file that another process has open: the two would not get each other's messages.

import type { Log } from '../observe/log.ts'
import { leaseTokens, readBucketState } from './lease.ts'
import { type Store, createChannelListeners, wholeMs } from './port.ts'
import { openDatabase } from './sqlite/file.ts'
import { createKeyOrder } from './sqlite/key-order.ts'
import { createLogReader } from './sqlite/log-reader.ts'
import { createLogs } from './sqlite/logs.ts'
import { createPieces, inRow, isLong, type Stored } from './sqlite/pieces.ts'
import { createSortedSets } from './sqlite/sets.ts'
import { startSweeper } from './sqlite/sweep.ts'
import { attempt, createTransactions } from './sqlite/turns.ts'
import { createValues, isLongCondition } from './sqlite/values.ts'

// Expiry of what is kept for good: one comparison serves every row.
const never = Number.MAX_SAFE_INTEGER

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
  const pieces = createPieces(database, turns)
  const values = createValues(database, turns, pieces, clock)
  const order = createKeyOrder()
  // A counter keeps the end of the window that it began with. A long value is no number.
  const count = database.prepare(`
    INSERT INTO entry (key, value, expires_at) VALUES (?1, CAST(?2 AS TEXT), ?3) ON CONFLICT (key) DO UPDATE SET
      value = iif(entry.expires_at <= ?4 OR entry.pieces IS NOT NULL, excluded.value,
        CAST(CAST(entry.value AS INTEGER) + ?2 AS TEXT)),
      pieces = NULL,
      expires_at = iif(entry.expires_at <= ?4, excluded.expires_at, entry.expires_at)
    RETURNING value`)
  const one = database.prepare('SELECT 1')

  const expiry = (ttlMs: number | undefined): number =>
    ttlMs === undefined ? never : Math.min(never, Math.ceil(clock.now()) + wholeMs(ttlMs))

  const sweeper = startSweeper(database, turns, [values, logs, sets, pieces], clock, log, sweepMs)

  return {
    get: (key) => order.short(key, () => values.read(key)),
    async set(key, value, { ttlMs, when } = {}) {
      const expiresAt = expiry(ttlMs)
      const run = (): Promise<boolean> => values.write(key, value, expiresAt, when)
      return await (isLong(value) || isLongCondition(when) ? order.long(key, run) : order.short(key, run))
    },
    async delete(key, when) {
      if (when !== undefined) {
        const run = (): Promise<boolean> => values.removeSame(key, when.is)
        return await (isLong(when.is) ? order.long(key, run) : order.short(key, run))
      }
      return await order.short(key, () =>
        turns.write(() => {
          const now = clock.now()
          return [values.remove(key, now), logs.remove(key, now), sets.drop(key, now)].includes(true)
        })
      )
    },
    async touch(key, ttlMs) {
      const expiresAt = expiry(ttlMs)
      return order.short(key, () => turns.write(() => values.touch(key, expiresAt, clock.now())))
    },
    async count(key, by, ttlMs) {
      const expiresAt = expiry(ttlMs)
      const step = BigInt(by) // As a number it would be a REAL to SQLite, and its text "1.0".
      return turns.write(() => Number(count.get(key, step, expiresAt, clock.now())?.['value']))
    },
    async lease(key, request) {
      return turns.write(() => {
        const now = clock.now()
        const stored = values.get(key, now)
        const before = stored === undefined ? undefined : readBucketState(stored.value)
        const { state, lease } = leaseTokens(before, request, now)
        values.put(key, JSON.stringify(state), expiry(request.ttlMs))
        return lease
      })
    },
    async append(key, entry, { ttlMs, keep, isLazy = false }) {
      const expiresAt = expiry(ttlMs)
      const push = (stored: Stored): boolean => logs.append(key, stored, clock.now(), expiresAt, keep)
      if (isLong(entry)) await order.long(key, () => pieces.write(entry, isLazy, push))
      else await order.short(key, () => turns.write(() => push(inRow(entry)), { isLazy, value: entry }))
    },
    entries: createLogReader(logs, pieces, order, clock),
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
      await order.idle()
      turns.close()
      if (database.isOpen) database.close()
    }
  }
}
