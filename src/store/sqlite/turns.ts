// The writes of one turn of the event loop are one transaction: a transaction for each write costs several times the
// write. Nobody is told that something was written before the transaction is. Writes that nobody waits for may wait for
// those of later turns.

import { closeSync, fdatasync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { createDelay, steadyClock, type Timer } from '../../time/clock.ts'
import { unavailable } from '../port.ts'

/** The time until a transaction ends that holds only writes for which nobody waits, in milliseconds. */
const lazyMs = 20
/** Bytes of values that do not fit into a page, after which the write-ahead log is written into the file. */
const checkpointBytes = 2_097_152
/** Bytes of a page. Shorter values are beside others, in pages that are written again soon. */
const pageBytes = 4_096

export type Transactions = ReturnType<typeof createTransactions>

/**
 * @param path of the file, or `:memory:`
 * @param rolledBack nothing of this turn is in the file
 */
export function createTransactions(database: DatabaseSync, path: string, rolledBack: () => void) {
  const toDisk = path === ':memory:' ? undefined : createLogSync(`${path}-wal`)
  const [begin, commit] = [database.prepare('BEGIN'), database.prepare('COMMIT')]
  const writeBack = database.prepare('PRAGMA wal_checkpoint(PASSIVE)')
  let bytes = 0
  let nextCheckpoint: NodeJS.Immediate | undefined
  let open: PromiseWithResolvers<void> | undefined
  let soon: NodeJS.Immediate | undefined
  let later: Timer | undefined

  function start(): PromiseWithResolvers<void> {
    attempt(() => begin.run())
    const turn = Promise.withResolvers<void>()
    // Who writes hears of it; there may be nobody left where every write of the turn failed.
    turn.promise.catch(() => {})
    return turn
  }

  function endWithTurn(): void {
    soon ??= setImmediate(end)
  }

  function endLater(): void {
    later ??= steadyClock.timer(lazyMs, end)
  }

  function end(): void {
    const turn = open
    clearImmediate(soon)
    soon = undefined
    later?.close()
    later = undefined
    if (turn === undefined) return
    open = undefined
    try {
      attempt(() => commit.run())
      turn.resolve()
      toDisk?.committed()
      if (bytes >= checkpointBytes) nextCheckpoint ??= setImmediate(checkpoint)
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      rolledBack()
      turn.reject(error)
    }
  }

  /** Now and then, SQLite makes one itself in a commit: of all pages that were written, in one turn. */
  function checkpoint(): void {
    nextCheckpoint = undefined
    if (!database.isOpen) return
    bytes = 0
    end() // There is none within a transaction.
    try {
      writeBack.get()
    } catch {
      // What is in the log stays there until the next one.
    }
  }

  return {
    /**
     * Runs at once, so that reads see it; settles when it is in the file.
     * @param isLazy nobody waits for it
     * @param value that it writes, where it may be longer than a page
     * @throws GatewayError unavailable where it is not
     */
    async write<Answer>(work: () => Answer, { isLazy = false, value = '' } = {}): Promise<Answer> {
      if (value.length > pageBytes) bytes += Buffer.byteLength(value)
      // A read or the sweep may have found no room: SQLite took back what was written before it.
      if (open !== undefined && !database.isTransaction) end()
      const turn = (open ??= start())
      if (isLazy) endLater()
      else endWithTurn()
      try {
        const answer = attempt(work)
        await turn.promise
        return answer
      } finally {
        // Some failures, such as a full disk, take all of it back at once.
        if (turn === open && !database.isTransaction) end()
      }
    },
    /** Ends the transaction of this turn now. */
    end,
    close(): void {
      end()
      toDisk?.close()
    }
  }
}

/** The number of commits between two syncs of the write-ahead log. */
const commitsPerSync = 64
/** The longest time from a commit to the next sync, in milliseconds. */
const syncMs = 1_000

/**
 * Gives the write-ahead log to the disk outside of the event loop, before a checkpoint of SQLite has to: that waits for
 * the disk, and the whole process with it. What was committed since then is lost where the machine dies.
 * @param path of the log, of which this never takes a lock
 */
function createLogSync(path: string) {
  let file: number | undefined
  let commits = 0
  let running = false
  const closeFile = (): void => {
    if (file !== undefined) closeSync(file)
    file = undefined
  }
  const later = createDelay(steadyClock)
  let closed = false

  function sync(): void {
    if (running || commits === 0) return
    later.close()
    commits = 0
    running = true
    try {
      file ??= openSync(path, 'r+')
      fdatasync(file, () => {
        running = false
        if (closed) closeFile()
        else if (!later.pending) sync()
      })
    } catch {
      running = false // The checkpoint does all of it, then.
    }
  }

  return {
    committed(): void {
      if (++commits >= commitsPerSync) sync()
      else if (!later.pending) later.start(syncMs, sync)
    },
    close(): void {
      closed = true
      later.close()
      if (!running) closeFile()
    }
  }
}

/** @param cause for the log. @returns GatewayError unavailable */
export const broken = (cause: unknown) =>
  unavailable(
    'The store of the gateway does not work. Retry in a second; the log of the gateway has the reason.',
    cause
  )

/** @throws GatewayError unavailable */
export function attempt<Answer>(work: () => Answer): Answer {
  try {
    return work()
  } catch (cause) {
    throw broken(cause)
  }
}
