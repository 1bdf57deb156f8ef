// Work that is done one after the other, its owners by turns: none waits for all that another has brought.

import { createFairQueue, type WorkOwner } from '../time/fair-queue.ts'

interface Waiting {
  readonly begin: () => void
  readonly giveUp: (reason: unknown) => void
}

export function createFairTurns() {
  const queue = createFairQueue<Waiting>()
  let running: Promise<unknown> | undefined
  let closed: unknown

  function beginNext(): void {
    running = undefined
    queue.next()?.begin()
  }

  return {
    /** @throws whatever the work throws, and what `close` was given */
    inTurn<T>(owner: WorkOwner, work: () => Promise<T>): Promise<T> {
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
    /** What waits is given up. Resolves when what runs has ended. */
    async close(reason: unknown): Promise<void> {
      closed = reason
      for (let next = queue.next(); next !== undefined; next = queue.next()) next.giveUp(reason)
      await running
    }
  }
}
