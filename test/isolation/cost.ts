// What a run costs each of its processes, in seconds of CPU time as Linux counts it.

import { readFileSync } from 'node:fs'
import { cpuUs } from '../../bench/cpu.ts'
import { descendants } from '../e2e/kit/process.ts'
import type { World } from './world.ts'

export interface Cost {
  /** Of this process: what people do, the servers over HTTP, the issuer, and the search. */
  readonly driver: number
  readonly gateways: number
  /** Servers over stdio, and what watches them; ended ones as well. */
  readonly processes: number
  readonly redis: number
}

/** Of a clock that ticks a hundred times a second: what Linux shows, whatever it counts with. */
const ticksPerSecond = 100

/** @returns undefined where there is no /proc */
export function costOf({ rig, redisPid }: World): Cost | undefined {
  if (process.platform !== 'linux') return undefined
  const pids = rig.nodes.map(({ pid }) => pid)
  const { user, system } = process.cpuUsage()
  const below = pids.flatMap(descendants)
  return {
    driver: (user + system) / 1e6,
    gateways: cpuUs(pids) / 1e6,
    processes:
      below.reduce((sum, pid) => sum + ownAndEnded(pid).own, 0) +
      pids.reduce((sum, pid) => sum + ownAndEnded(pid).ended, 0),
    redis: cpuUs([redisPid]) / 1e6
  }
}

/** Of a process, and of its children that have ended. */
function ownAndEnded(pid: number): { own: number; ended: number } {
  try {
    // After the name, which may hold anything.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')
      .map(Number)
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15)
    return { own: (user + system) / ticksPerSecond, ended: (endedUser + endedSystem) / ticksPerSecond }
  } catch {
    return { own: 0, ended: 0 } // It has ended meanwhile, and counts with its parent.
  }
}

export const costBetween = (before: Cost, after: Cost): Cost => ({
  driver: after.driver - before.driver,
  gateways: after.gateways - before.gateways,
  processes: after.processes - before.processes,
  redis: after.redis - before.redis
})
