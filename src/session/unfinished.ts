// What the store did not take, and nobody asks for again: it is done when the store is back. Whoever was refused while
// the store was away keeps no session and no seat by that until they idle out.

import { type Clock, createDelay } from '../time/clock.ts'

const againMs = 1_000
/** What is beyond it stays in the store until its time is over. */
const maxUnfinished = 10_000

export type Unfinished = ReturnType<typeof createUnfinished>

export function createUnfinished(clock: Pick<Clock, 'timer'>) {
  const works = new Map<string, () => Promise<unknown>>()
  const delay = createDelay(clock)
  let [isRunning, isClosed] = [false, false]

  async function run(): Promise<void> {
    isRunning = true
    for (const [name, work] of works) {
      works.delete(name)
      const isDone = await work().then(
        () => true,
        () => false
      )
      if (isDone) continue
      // At the end: where only a part of the store is away, the others do not wait for it.
      works.set(name, work)
      break
    }
    isRunning = false
    runLater()
  }

  function runLater(): void {
    if (works.size > 0 && !isRunning && !isClosed && !delay.pending) delay.start(againMs, () => void run())
  }

  return {
    /**
     * @param work what failed, or what undoes it: it may have been done already, and is done again until it succeeds
     * @returns what handles the failure, and throws it again
     */
    later: (name: string, work: () => Promise<unknown>) => (error: unknown) => {
      if (works.size < maxUnfinished) works.set(name, work)
      runLater()
      throw error
    },
    close(): void {
      isClosed = true
      delay.close()
    }
  }
}
