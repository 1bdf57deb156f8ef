// Requests that were given up and that the server has not answered yet: it may go on with them.

export interface AbandonedRequests {
  add(id: number): void
  answered(id: number): void
  /** See `Upstream.abandonedCalls`. */
  drained(): Promise<void> | undefined
  /** The connection has ended. */
  end(): void
}

/** A server need not answer what was cancelled (2025-11-25 basic/utilities/cancellation): the oldest are forgotten. */
const maxRequests = 64

export function createAbandonedRequests(): AbandonedRequests {
  const ids = new Set<number>()
  let waiting: PromiseWithResolvers<void> | undefined

  function settle(): void {
    if (ids.size > 0) return
    waiting?.resolve()
    waiting = undefined
  }

  return {
    add(id) {
      ids.add(id)
      const [oldest] = ids
      if (ids.size > maxRequests && oldest !== undefined) ids.delete(oldest)
    },
    answered(id) {
      if (ids.delete(id)) settle()
    },
    drained() {
      if (ids.size === 0) return undefined
      waiting ??= Promise.withResolvers()
      return waiting.promise
    },
    end() {
      ids.clear()
      settle()
    }
  }
}
