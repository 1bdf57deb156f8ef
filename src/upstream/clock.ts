// Time as this room sees it. Nothing here reads a clock of its own, so that tests can hold time still.

export interface Timer {
  /** Starts the same wait anew. */
  refresh (): unknown
  /** Never runs after this. */
  close (): unknown
  /** Does not keep the process alive. */
  unref (): unknown
}

/** A `NodeJS.Timeout` is a `Timer`, so the real one is `{ now: Date.now, timer: (ms, run) => setTimeout(run, ms) }`. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now (): number
  timer (ms: number, run: () => void): Timer
}

/** Resolves when the work has settled, or after `ms`, whichever is first. @returns whether the work was first */
export function within (clock: Clock, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.timer(ms, () => resolve(false))
    const done = (): void => {
      timer.close()
      resolve(true)
    }
    work.then(done, done)
  })
}

export interface Deadline {
  readonly signal: AbortSignal
  /** Was it the time that ran out, and not the outer signal? */
  passed (): boolean
  /** Must be called when the work is over. */
  close (): void
}

/** A signal that aborts after `ms`, or with the outer one. */
export function deadline (clock: Clock, ms: number, outer: AbortSignal | undefined): Deadline {
  const stop = new AbortController()
  const giveUp = (): void => stop.abort()
  let late = false
  if (outer?.aborted === true) giveUp()
  outer?.addEventListener('abort', giveUp, { once: true })
  const timer = clock.timer(ms, () => {
    late = !stop.signal.aborted
    giveUp()
  })
  return {
    signal: stop.signal,
    passed: () => late,
    close () {
      timer.close()
      outer?.removeEventListener('abort', giveUp)
    }
  }
}
