// How late the event loop is, for good: what whoever comes to the process now has waited before it was even seen.

import { every, type Clock } from './clock.ts'

const sampleMs = 250
/** A pause of the collector, or of the whole machine, makes one late sample; work that does not end makes all late. */
const samples = 4

export interface LoopDelay {
  /** Returns the least delay of a turn in the last second, in milliseconds. */
  standingMs(): number
  close(): void
}

export function createLoopDelay(clock: Clock): LoopDelay {
  const late: number[] = []
  let due = clock.now() + sampleMs
  const timer = every(clock, sampleMs, () => {
    const now = clock.now()
    late.push(Math.max(0, now - due))
    if (late.length > samples) late.shift()
    due = now + sampleMs
  })
  return {
    standingMs: () => (late.length < samples ? 0 : Math.min(...late)),
    close() {
      timer.close()
    }
  }
}
