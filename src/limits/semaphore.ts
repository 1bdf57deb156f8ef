// Lets a number of tasks run at a time; the others wait in the order in which they came.

import { abortable } from '../time/wait.ts'

/**
 * Settles as `run` does.
 * @param signal gives up the wait; then `run` is never called
 * @throws GatewayError cancelled
 */
export type Semaphore = <T>(run: () => Promise<T>, signal?: AbortSignal) => Promise<T>

/** @param max how many run at a time */
export function createSemaphore(max: number): Semaphore {
  const waiting = new Set<() => void>()
  let running = 0

  /** Hands the place to the one that has waited longest, so that a newcomer cannot get in before. */
  function release(): void {
    const [next] = waiting
    if (next === undefined) running--
    else {
      waiting.delete(next)
      next()
    }
  }

  return async (run, signal) => {
    if (running < max) running++
    else {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.add(resolve)
      const giveUp = (error: unknown): never => {
        // The place may have been handed over at the same moment.
        if (!waiting.delete(resolve)) release()
        throw error
      }
      await (signal === undefined ? promise : abortable(promise, signal).catch(giveUp))
    }
    try {
      return await run()
    } finally {
      release()
    }
  }
}
