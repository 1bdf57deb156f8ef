// Time as a dependency, so that tests can hold it still, and the system's clocks. Outside src/time, gateway and cli
// nothing else starts a timer.

export interface Timer {
  /** Starts the same wait again. */
  refresh(): unknown
  /** The callback never runs after this. */
  close(): unknown
  /** Lets the process exit while the timer is pending. */
  unref(): unknown
}

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls `run` once after `ms`. */
  timer(ms: number, run: () => void): Timer
}

const timer = (ms: number, run: () => void): Timer => setTimeout(run, ms)

/** Measures durations: it goes on steadily while the time of day is corrected. */
export const steadyClock: Clock = { now: () => performance.timeOrigin + performance.now(), timer }

/** The time of day: for expiry times that other machines have set or must agree on. */
export const wallClock: Clock = { now: Date.now, timer }

/** Calls `run` every `ms` until the timer is closed. Does not keep the process alive. */
export function every(clock: Pick<Clock, 'timer'>, ms: number, run: () => void): Timer {
  const again = clock.timer(ms, () => {
    again.refresh()
    run()
  })
  again.unref()
  return again
}

export interface Deadline {
  readonly signal: AbortSignal
  /** True where the time ran out before the outer signal was aborted. */
  passed(): boolean
  /** Must be called when the work is over. */
  close(): void
}

/** A signal that aborts after `ms`, or with the outer one. */
export function deadline(clock: Clock, ms: number, outer: AbortSignal | undefined): Deadline {
  const controller = new AbortController()
  const abort = (): void => controller.abort()
  let late = false
  if (outer?.aborted === true) abort()
  outer?.addEventListener('abort', abort, { once: true })
  const timer = clock.timer(ms, () => {
    late = !controller.signal.aborted
    abort()
  })
  return {
    signal: controller.signal,
    passed: () => late,
    close() {
      timer.close()
      outer?.removeEventListener('abort', abort)
    }
  }
}

/** One timer at a time, which does not keep the process alive. */
export interface Delay {
  readonly pending: boolean
  /** Ends the wait before. */
  start(ms: number, run: () => void): void
  /** Never runs after this, unless it is started again. */
  close(): void
}

export function createDelay(clock: Pick<Clock, 'timer'>): Delay {
  let timer: Timer | undefined
  const close = (): void => {
    timer?.close()
    timer = undefined
  }
  return {
    get pending() {
      return timer !== undefined
    },
    start(ms, run) {
      close()
      timer = clock.timer(ms, () => {
        timer = undefined
        run()
      })
      timer.unref()
    },
    close
  }
}
