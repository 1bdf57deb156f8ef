// What the store did not take, and nobody asks for again: it is done when the store is back. Whoever was refused while
// the store was away keeps no session and no seat by that until they idle out.

import type { Log } from '../observe/log.ts'
import { type Clock, createDelay } from '../time/clock.ts'

const againMs = 1_000
/** What is beyond it stays in the store until its time is over. */
const maxUnfinished = 10_000

export type Unfinished = ReturnType<typeof createUnfinished>

export function createUnfinished(clock: Pick<Clock, 'timer'>, log: Pick<Log, 'warn' | 'info'>) {
  const pending = new Map<string, () => Promise<unknown>>()
  const delay = createDelay(clock)
  let [isRunning, isClosed] = [false, false]

  async function run(): Promise<void> {
    isRunning = true
    for (const [name, work] of pending) {
      pending.delete(name)
      const isDone = await work().then(
        () => true,
        () => false
      )
      if (isDone) continue
      // At the end: where only a part of the store is away, the others do not wait for it.
      pending.set(name, work)
      break
    }
    isRunning = false
    if (pending.size === 0) log.info('the sessions that the store did not take are ended there')
    runLater()
  }

  function runLater(): void {
    if (pending.size > 0 && !isRunning && !isClosed && !delay.pending) delay.start(againMs, () => void run())
  }

  return {
    /**
     * Waits for `done`. Where that fails, `work` is done later.
     * @param work what failed, or what undoes it: it may have been done already, and is done again until it succeeds
     * @throws whatever `done` throws
     */
    async orLater<T>(done: Promise<T>, name: string, work: () => Promise<unknown>): Promise<T> {
      try {
        return await done
      } catch (error) {
        if (pending.size === 0) log.warn('the store did not take all of a session: it is ended there later')
        if (pending.size < maxUnfinished) pending.set(name, work)
        runLater()
        throw error
      }
    },
    close(): void {
      isClosed = true
      delay.close()
    }
  }
}
