// When other processes were heard, and which questions may be begun at once. A question is begun only where its sender
// still waits: it asks first, and says `go` where the other side is there. Where calls come one after the other, each
// says in passing when the other side was there last, by the clock of that side, which so knows how old the question is
// at the most, however the clocks differ and wherever it was held up.

import { LRUCache } from 'lru-cache'
import type { Clock } from '../../../time/clock.ts'

/**
 * Who was silent for longer is asked first: it may be gone, and then nothing of the call was begun and it can be run
 * elsewhere. What is sent so soon after a process was heard is so rarely sent to one that is gone.
 */
export const latelyMs = 100
/** An older question is not begun at once. Its sender gives up after two seconds at the earliest. */
const youngMs = 500
/** Processes; the one that was heard longest ago is forgotten. */
const maxHeard = 256

interface Heard {
  /** By its clock, of its last message that came. */
  readonly steadyAt: number
  /** By ours, when that came. */
  readonly cameAt: number
}

export function createHeard(steady: Pick<Clock, 'now'>) {
  // Whole numbers: those with many digits are read more slowly (protocol/json.ts).
  const now = (): number => Math.floor(steady.now())
  const heard = new LRUCache<string, Heard>({ max: maxHeard })
  return {
    now,
    note(from: string, steadyAt: number | undefined): void {
      if (steadyAt !== undefined) heard.set(from, { steadyAt, cameAt: now() })
    },
    /** It stops: it is asked first from now on. */
    forget: (from: string): void => void heard.delete(from),
    /** Has any other process been heard? */
    get any() {
      return heard.size > 0
    },
    /** Does it read several messages as one? */
    reads: (to: string): boolean => heard.has(to),
    /** @returns undefined where it was not heard lately */
    lately(to: string): number | undefined {
      const last = heard.get(to)
      return last !== undefined && now() - last.cameAt <= latelyMs ? last.steadyAt : undefined
    },
    isYoung: (heardAt: number | undefined): boolean => heardAt !== undefined && now() - heardAt <= youngMs
  }
}
