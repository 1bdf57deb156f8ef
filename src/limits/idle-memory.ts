// Gives memory back to the system while nothing goes on. The engine leaves the space of young objects as large as it
// ever was, some 15 MiB after the start and up to 100 after a busy hour: it looks at it only while objects are made.

import { type EventLoopUtilization, performance } from 'node:perf_hooks'
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { every, type Clock } from '../time/clock.ts'

const checkMs = 1_000
/** The largest part of the time since the last check in which an idle process did something. */
const maxIdleUse = 0.005
/**
 * Checks one after the other that found the process idle, before memory is given back. The collection holds up whoever
 * comes during it for some 50 ms, and what was compiled for speed is compiled anew when work begins again.
 */
const idleChecks = 60
/** The same for a process that has done nothing since its start, the last work of which is in the first checks. */
const idleChecksAtStart = 10
const checksOfStart = 3
/** The least size of the space of young objects, in bytes: less is not worth a collection. */
const leastYoungBytes = 8 * 1024 * 1024
/** The largest heap, in bytes: a collection of a larger one would hold up requests for too long. */
const mostHeapBytes = 64 * 1024 * 1024

type Collect = (how: Readonly<Record<'type' | 'execution' | 'flavor', string>>) => void

/** @returns how to stop; `utilization` is that of the event loop */
export function giveBackWhenIdle(
  clock: Pick<Clock, 'timer'>,
  utilization: (since?: EventLoopUtilization) => EventLoopUtilization = performance.eventLoopUtilization
): { close(): void } {
  let before = utilization()
  const atStart = idleChecks - idleChecksAtStart
  let idleFor = atStart
  let checks = 0
  return every(clock, checkMs, () => {
    const now = utilization()
    const since = now.idle - before.idle + (now.active - before.active)
    const isIdle = now.active - before.active < since * maxIdleUse
    before = now
    checks++
    if (isIdle) idleFor++
    else idleFor = checks <= checksOfStart ? atStart : 0
    if (idleFor < idleChecks) return
    idleFor = 0
    if (youngBytes() < leastYoungBytes || getHeapStatistics().used_heap_size > mostHeapBytes) return
    collectAll()
    // It is no work.
    before = utilization()
  })
}

/** The physical memory of the space of young objects. */
export const youngBytes = (): number =>
  getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.physical_space_size ?? 0

/** There is no other way to it; the function is in contexts that are made once the flag is set. */
function collectAll(): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as Collect
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
