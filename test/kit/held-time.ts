// What the gateway measures time with, held by a test that must not depend on how fast its machine is. It holds for the
// whole process, until the end of the test.

import type { Teardown } from './until.ts'

/**
 * Durations are none from now on: no rate has anything added, however slowly a flood comes. Timers run on.
 * @returns a function that moves it on by so many milliseconds
 */
export function stopSteadyClock(t: Teardown): (ms: number) => void {
  const { now } = performance
  let stoppedAt = performance.now()
  performance.now = () => stoppedAt
  t.teardown(() => {
    performance.now = now
  })
  return (ms) => {
    stoppedAt += ms
  }
}

/**
 * Timers of exactly these lengths, in milliseconds, that are set from now on begin anew whenever they are over.
 * @returns a function that lets them run out
 */
export function heldTimers(t: Teardown, ...lengths: readonly number[]): () => void {
  let isHeld = true
  const letGo = (): void => {
    isHeld = false
  }
  const { setTimeout } = globalThis
  const held = (run: () => void, ms: number): NodeJS.Timeout => {
    if (!lengths.includes(ms)) return setTimeout(run, ms)
    const timer = setTimeout(() => {
      if (isHeld) timer.refresh()
      else run()
    }, ms)
    return timer
  }
  globalThis.setTimeout = Object.assign(held, setTimeout)
  t.teardown(() => {
    letGo()
    globalThis.setTimeout = setTimeout
  })
  return letGo
}
