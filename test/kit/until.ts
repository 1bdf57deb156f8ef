// Waiting for something to become true, with a deadline instead of a guess.

import { setTimeout as wait } from 'node:timers/promises'

/** What of a test a set-up needs: to be undone when the test is over. */
export interface Teardown {
  teardown(run: () => unknown): unknown
}

/**
 * Long enough for a machine that does ten other things, and within what a test file is given; a long run that has only
 * what others leave of it says more.
 */
export const patienceMs = Number(process.env['GATEHOUSE_TEST_PATIENCE_MS'] ?? 120_000)

/** Also where a test has stopped the clock of the gateway (held-time.ts). */
const now = performance.now.bind(performance)

/**
 * Polls until `condition` gives something truthy, and resolves with it. Rejects after `ms` saying what was waited for.
 * What takes long is asked for less often: a condition may be a call, or a look at all processes.
 */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  ms = patienceMs
): Promise<NonNullable<T>> {
  const began = now()
  for (;;) {
    const value = await condition()
    if (value) return value
    const waitedMs = now() - began
    if (waitedMs > ms) throw new Error(`waited ${ms} ms in vain for: ${what}`)
    await wait(Math.min(Math.max(waitedMs / 20, 10), 200))
  }
}
