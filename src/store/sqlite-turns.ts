// The writes of one turn of the event loop are one transaction: a transaction for each write costs several times the
// write. Nobody is told that something was written before the transaction is. Writes that nobody waits for may wait for
// those of later turns.

import { closeSync, fdatasync, openSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { createDelay, steadyClock, type Timer } from '../time/clock.ts'
import { unavailable } from './port.ts'

/** The time until a transaction ends that holds only writes for which nobody waits, in milliseconds. */
const lazyMs = 20

/**
 * @param path of the file, or `:memory:`
 * @param rolledBack nothing of this turn is in the file
 */
export function createTransactions(database: DatabaseSync, path: string, rolledBack: () => void) {
  const toDisk = path === ':memory:' ? undefined : createLogSync(`${path}-wal`)
  const [begin, commit] = [database.prepare('BEGIN'), database.prepare('COMMIT')]
  let open: PromiseWithResolvers<void> | undefined
  let endsSoon = false
  let later: Timer | undefined

  function start(): PromiseWithResolvers<void> {
    attempt(() => begin.run())
    const turn = Promise.withResolvers<void>()
    // Who writes hears of it; there may be nobody left where every write of the turn failed.
    turn.promise.catch(() => {})
    return turn
  }

  function endWithTurn(): void {
    if (endsSoon) return
    endsSoon = true
    setImmediate(end)
  }

  function endLater(): void {
    later ??= steadyClock.timer(lazyMs, end)
  }

  function end(): void {
    const turn = open
    endsSoon = false
    later?.close()
    later = undefined
    if (turn === undefined) return
    open = undefined
    try {
      attempt(() => commit.run())
      turn.resolve()
      toDisk?.committed()
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      rolledBack()
      turn.reject(error)
    }
  }

  return {
    /**
     * Runs at once, so that reads see it; settles when it is in the file.
     * @param isLazy nobody waits for it
     * @throws GatewayError unavailable where it is not
     */
    async write<Answer>(work: () => Answer, isLazy = false): Promise<Answer> {
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

/** @throws GatewayError unavailable */
export function attempt<Answer>(work: () => Answer): Answer {
  try {
    return work()
  } catch (cause) {
    throw unavailable(
      'The store of the gateway does not work. Retry in a second; the log of the gateway has the reason.',
      cause
    )
  }
}
