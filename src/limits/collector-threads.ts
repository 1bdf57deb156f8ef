// V8 shares the work of a collection of young objects between up to four threads and the one that serves requests.

import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'

/**
 * Has the main thread alone collect young objects where the process has one core (by its affinity, or the CPU quota of
 * its container): there, to hand out the work and wait for it takes twice as long as to do it. V8 reads this flag at
 * each collection; others of its kind end the process where they change while it runs.
 * @returns whether it has one core
 */
export function limitCollectorThreads(): boolean {
  const hasOneCore = availableParallelism() === 1
  if (hasOneCore) setFlagsFromString('--no-parallel-scavenge')
  return hasOneCore
}
