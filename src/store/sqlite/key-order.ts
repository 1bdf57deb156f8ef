// What is asked of a key waits for long values of it that are still being written: they count from when they came.

export type KeyOrder = ReturnType<typeof createKeyOrder>

export function createKeyOrder() {
  /** Of keys: settles when the last of its long values is written, or could not be, and what waited has begun. */
  const underWay = new Map<string, Promise<void>>()

  function hold(key: string, answer: Promise<unknown>): void {
    const over = (): void => {
      if (underWay.get(key) === settled) underWay.delete(key)
    }
    const settled: Promise<void> = answer.then(over, over)
    underWay.set(key, settled)
  }

  return {
    /** Runs what takes one turn. */
    short<Answer>(key: string, run: () => Promise<Answer>): Promise<Answer> {
      const before = underWay.get(key)
      // At once where it need not wait: whoever reads in this turn sees it.
      if (before === undefined) return run()
      const answer = before.then(run)
      // What comes later waits until it has begun: else it would come first in the moment before that.
      hold(key, before)
      return answer
    },
    /** Runs what takes several: what comes later waits for it. */
    long<Answer>(key: string, run: () => Promise<Answer>): Promise<Answer> {
      const answer = underWay.get(key)?.then(run) ?? run()
      hold(key, answer)
      return answer
    },
    async idle(): Promise<void> {
      while (underWay.size > 0) await Promise.all(underWay.values())
    }
  }
}
