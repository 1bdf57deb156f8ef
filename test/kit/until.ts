// Waiting for something to become true, with a deadline instead of a guess.

import { setTimeout as wait } from 'node:timers/promises'

/** What of a test a set-up needs: to be undone when the test is over. */
export interface Teardown {
  teardown(run: () => unknown): unknown
}

/** Long enough for a machine that does ten other things, and within what a test file is given. */
export const patienceMs = 120_000

/**
 * Polls until `condition` gives something truthy, and resolves with it. Rejects after `ms` saying what was waited for.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  ms = patienceMs
): Promise<NonNullable<T>> {
  const deadline = performance.now() + ms
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > deadline) throw new Error(`waited ${ms} ms in vain for: ${what}`)
    await wait(10)
  }
}
