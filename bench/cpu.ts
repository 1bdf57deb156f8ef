// CPU time of another process, as Linux counts it: user and system, all threads, garbage collection included.

import { readFileSync } from 'node:fs'

/** USER_HZ: 100 on every architecture that Node runs on. */
const msPerTick = 10

/**
 * proc(5), fields 14 and 15 of /proc/PID/stat.
 * @returns milliseconds since the process began, in steps of 10
 */
export function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the name in parentheses, which may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * msPerTick
}
