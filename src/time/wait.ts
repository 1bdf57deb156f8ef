// Waiting for a time, for work with a time limit, and for shared work that one of its callers may give up.

import { GatewayError } from '../protocol/errors.ts'
import type { Clock } from './clock.ts'

/** Resolves after `ms`, or at once when the signal is aborted. Never rejects, and does not keep the process alive. */
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

/** Resolves when the work has settled either way, or after `ms`. Never rejects. @returns whether the work came first */
export function settledWithin(clock: Pick<Clock, 'timer'>, ms: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = clock.timer(ms, () => resolve(false))
    const done = (): void => {
      timer.close()
      resolve(true)
    }
    work.then(done, done)
  })
}

const cancelled = (): Error => new GatewayError('cancelled', 'The request was cancelled before it was sent.')

/**
 * The outcome of work that others may wait for as well; an aborted signal ends the wait, not the work.
 * @param errorOf what to reject with when the signal is aborted; by default GatewayError `cancelled`
 */
export function abortable<T>(work: Promise<T>, signal: AbortSignal, errorOf: () => Error = cancelled): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(errorOf())
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    const done = (): void => signal.removeEventListener('abort', abort)
    work.then(
      (value) => {
        done()
        resolve(value)
      },
      (error: unknown) => {
        done()
        reject(error)
      }
    )
  })
}

/** Aborts after `ms`, by the system's clock. Does not keep the process alive. */
export const timeoutSignal = (ms: number): AbortSignal => AbortSignal.timeout(ms)
