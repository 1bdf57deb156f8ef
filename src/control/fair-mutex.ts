// A mutex with a fair queue: work runs one after the other, and owners take turns, so that none waits for all the work
// of another.

import { createFairQueue, type WorkOwner } from '../time/fair-queue.ts'

interface Waiting {
  readonly begin: () => void
  readonly giveUp: (reason: unknown) => void
}

export function createFairMutex() {
  const queue = createFairQueue<Waiting>()
  let running: Promise<unknown> | undefined
  let closed: unknown

  function beginNext(): void {
    running = undefined
    queue.next()?.begin()
  }

  return {
    /**
     * Runs work once what came before it has ended.
     * @throws whatever the work throws, and the reason that `close` was given
     */
    exclusive<T>(owner: WorkOwner, work: () => Promise<T>): Promise<T> {
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      function begin(): void {
        const done = work()
        running = done.then(resolve, reject).then(beginNext)
      }
      if (closed !== undefined) reject(closed)
      else if (running === undefined) begin()
      else queue.add({ begin, giveUp: reject }, owner)
      return promise
    },
    /** Rejects the work that waits, with this reason. Resolves when the work that runs has ended. */
    async close(reason: unknown): Promise<void> {
      closed = reason
      for (let next = queue.next(); next !== undefined; next = queue.next()) next.giveUp(reason)
      await running
    }
  }
}
