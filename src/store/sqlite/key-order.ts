// What is asked of a key waits for long values of it that are still being written: they count from when they came.

export function createKeyOrder() {
  /** Of keys: settles when the last of its long values is written, or could not be. */
  const underWay = new Map<string, Promise<unknown>>()

  const after = <Answer>(key: string, run: () => Promise<Answer>): Promise<Answer> =>
    // At once where it need not wait: whoever reads in this turn sees it.
    underWay.get(key)?.then(run) ?? run()

  return {
    /** Runs what takes one turn. */
    short: after,
    /** Runs what takes several: what comes later waits for it. */
    long<Answer>(key: string, run: () => Promise<Answer>): Promise<Answer> {
      const answer = after(key, run)
      const settled = answer
        .catch(() => {})
        .then(() => {
          if (underWay.get(key) === settled) underWay.delete(key)
        })
      underWay.set(key, settled)
      return answer
    },
    async idle(): Promise<void> {
      while (underWay.size > 0) await Promise.all(underWay.values())
    }
  }
}
