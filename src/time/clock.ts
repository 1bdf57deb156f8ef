// Time as a dependency, so that tests can hold it still: clocks, timers, deadlines, waits, back-off. Outside src/time,
// gateway and cli nothing else starts a timer.

import { GatewayError } from '../protocol/messages.ts'

export interface Timer {
  /** Starts the same wait again. */
  refresh(): unknown
  /** The callback never runs after this. */
  close(): unknown
  /** Lets the process exit while the timer is pending. */
  unref(): unknown
}

export interface Clock {
  /** Milliseconds since the epoch, unless the clock says otherwise. */
  now(): number
  /** Calls `run` once after `ms`. */
  timer(ms: number, run: () => void): Timer
}

const timer = (ms: number, run: () => void): Timer => setTimeout(run, ms)

/** Measures durations: it goes on steadily while the time of day is corrected. */
export const steadyClock: Clock = { now: () => timeOrigin + performance.now(), timer }

const { timeOrigin } = performance

/**
 * The same in all processes of a machine, whenever they started: for durations from one of them to another. In
 * milliseconds since the machine started.
 */
export const machineClock: Clock = { now: () => Number(process.hrtime.bigint()) / 1e6, timer }

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

/** The number of steps in which a long wait is counted. */
const waitSteps = 5

/**
 * Calls `run` once after `ms` during which this process could run. A stall of it, or of its whole machine, counts as a
 * step and no more: whom it waits for had that time no more than it had. Does not keep the process alive.
 */
export function patientTimer(clock: Pick<Clock, 'timer'>, ms: number, run: () => void): Pick<Timer, 'close'> {
  let left = waitSteps
  const step = clock.timer(ms / waitSteps, () => {
    if (--left > 0) step.refresh()
    else run()
  })
  step.unref()
  return step
}

/** A signal that aborts after `ms`, or with the outer one. Must be closed when the work is over. */
export function deadline(clock: Clock, ms: number, outer: AbortSignal | undefined) {
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
    /** True where the time ran out before the outer signal was aborted. */
    passed: () => late,
    close() {
      timer.close()
      outer?.removeEventListener('abort', abort)
    }
  }
}

/** Creates a delay: one timer at a time, which does not keep the process alive. */
export function createDelay(clock: Pick<Clock, 'timer'>) {
  let timer: Timer | undefined
  const close = (): void => {
    timer?.close()
    timer = undefined
  }
  return {
    get pending() {
      return timer !== undefined
    },
    /** Ends the wait before. */
    start(ms: number, run: () => void) {
      close()
      timer = clock.timer(ms, () => {
        timer = undefined
        run()
      })
      timer.unref()
    },
    /** Never runs after this, unless it is started again. */
    close
  }
}

/** Resolves after `ms`, or when the signal is aborted. Never rejects, and does not keep the process alive. */
export function pause(clock: Pick<Clock, 'timer'>, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      timer.close()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.timer(ms, done)
    timer.unref()
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** Those who wait for work. A promise itself holds whoever has ever waited for it, until it settles. */
const waiting = new WeakMap<Promise<unknown>, Set<() => void>>()

function waitersOf(work: Promise<unknown>): Set<() => void> {
  const waiters = waiting.get(work) ?? new Set<() => void>()
  if (waiting.has(work)) return waiters
  waiting.set(work, waiters)
  const settled = (): void => {
    waiting.delete(work)
    for (const done of waiters) done()
  }
  work.then(settled, settled)
  return waiters
}

/**
 * Resolves when the work has settled either way, or after `ms`. Never rejects. Work that others wait for as well holds
 * nothing of those who have given up.
 * @returns whether the work came first
 */
export function settledWithin(clock: Pick<Clock, 'timer'>, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const waiters = waitersOf(work)
    const timer = clock.timer(ms, () => {
      waiters.delete(done)
      resolve(false)
    })
    const done = (): void => {
      timer.close()
      resolve(true)
    }
    waiters.add(done)
  })
}

/** The same for several; each may be waited for by others. */
export const allSettledWithin = (clock: Pick<Clock, 'timer'>, ms: number, works: Array<Promise<unknown>>) =>
  Promise.all(works.map((work) => settledWithin(clock, ms, work)))

const cancelled = (): Error => new GatewayError('cancelled', 'The request was cancelled before it was sent.')

/**
 * The outcome of work that others may wait for as well; an aborted signal ends the wait, not the work.
 * @param errorOf what to reject with when the signal is aborted
 */
export function abortable<T>(work: Promise<T>, signal: AbortSignal, errorOf: () => Error = cancelled): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(errorOf())
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/**
 * What to abort with where nobody asks why: without it a controller makes an error with a stack, which costs more than
 * all else at the end of a connection.
 */
export const noReason = null

/** Aborts after `ms`, by the system's clock. Does not keep the process alive. */
export const timeoutSignal = (ms: number): AbortSignal => AbortSignal.timeout(ms)

/**
 * How long to wait before the next attempt.
 * @param attempt failures in a row before this one: 0 gives `firstMs`, and each doubles it
 * @param random a number from 0 up to 1. With it up to a quarter is added, so that replicas which failed together do
 * not come back together
 * @returns whole milliseconds
 */
export function backoffMs(
  attempt: number,
  { firstMs, maxMs, random }: { firstMs: number; maxMs: number; random?: () => number }
): number {
  const jitter = random === undefined ? 1 : 1 + random() * 0.25
  return Math.round(Math.min(maxMs, firstMs * 2 ** attempt * jitter))
}
