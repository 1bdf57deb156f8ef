// Answers that a server owes although nobody waits for them any more: it may not have heard that a call was given up, or go on all the same.

export interface Owed {
  /** The call was given up. */
  add (id: number): void
  /** Its answer has come. */
  paid (id: number): void
  /** See `Upstream.owed`. */
  left (): Promise<void> | undefined
  /** The connection has ended. */
  end (): void
}

/** A server that never answers what was cancelled does as it should (2025-11-25 basic/utilities/cancellation): the oldest are forgotten. */
const most = 64

export function createOwed (): Owed {
  const ids = new Set<number>()
  let waiting: PromiseWithResolvers<void> | undefined

  function settle (): void {
    if (ids.size > 0) return
    waiting?.resolve()
    waiting = undefined
  }

  return {
    add (id) {
      ids.add(id)
      const [oldest] = ids
      if (ids.size > most && oldest !== undefined) ids.delete(oldest)
    },
    paid (id) {
      if (ids.delete(id)) settle()
    },
    left () {
      if (ids.size === 0) return undefined
      waiting ??= Promise.withResolvers()
      return waiting.promise
    },
    end () {
      ids.clear()
      settle()
    }
  }
}
