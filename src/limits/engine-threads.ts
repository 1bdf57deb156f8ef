// V8 collects garbage and compiles on threads of its own. Where they have as much right to a core as the thread that
// serves requests, four of them hold that up for 16 ms and more at a time: on few cores, for all callers.

import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, getPriority, setPriority } from 'node:os'
import { setFlagsFromString } from 'node:v8'

const threads = '/proc/self/task'
/** As Node names the threads that V8 has. */
const engineThread = 'V8Worker\n'
/** How much nicer they are than the main thread, which may be so itself, and the nicest that there is (nice(2)). */
const nicer = 10
const nicest = 19

/**
 * Gives the threads of V8 a lower priority than the main thread has (setpriority(2): on Linux each thread has its
 * own). While the main thread waits for them nothing else of the process wants the core.
 * @returns how many; 0 where the system has no priorities of threads, or does not say which are V8's
 */
export function lowerEngineThreads(): number {
  try {
    const ofEngine = readdirSync(threads).filter((id) => readFileSync(`${threads}/${id}/comm`, 'utf8') === engineThread)
    const nice = Math.min(nicest, getPriority() + nicer)
    for (const id of ofEngine) setPriority(Number(id), nice)
    return ofEngine.length
  } catch {
    return 0
  }
}

/**
 * Has V8 collect young objects on the main thread alone where the process has one core (taskset, or a CPU quota of its
 * container): there, handing the work to other threads and waiting for them takes twice as long as doing it.
 * @returns whether it is so
 */
export function collectOnOneCore(): boolean {
  const hasOneCore = availableParallelism() === 1
  if (hasOneCore) setFlagsFromString('--no-parallel-scavenge')
  return hasOneCore
}
