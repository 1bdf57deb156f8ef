// CPU time of other processes as Linux counts it: all threads, garbage collection and compiler included. And which
// cores the processes of a bench run on.

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'

/**
 * The first number of /proc/PID/task/TID/schedstat: time spent on a core, in nanoseconds, user and system together.
 * Threads that have ended are not in it; those of Node stay.
 * @returns NaN where there is no /proc
 */
export function cpuUs(pids: readonly number[]): number {
  if (process.platform !== 'linux') return Number.NaN
  let ns = 0
  for (const pid of pids) {
    const folder = `/proc/${pid}/task`
    for (const tid of readdirSync(folder)) {
      const text = readFileSync(`${folder}/${tid}/schedstat`, 'latin1')
      ns += Number(text.slice(0, text.indexOf(' ')))
    }
  }
  return ns / 1000
}

export function childrenOf(pid: number): number[] {
  const texts = readdirSync(`/proc/${pid}/task`).map((tid) =>
    readFileSync(`/proc/${pid}/task/${tid}/children`, 'latin1')
  )
  return texts.flatMap((text) => text.split(' ').filter(Boolean).map(Number))
}

/** VmRSS in MiB. */
export function residentMiB(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024
}

/** Processes that want a processor, for each that there is: beyond, figures say nothing. */
const busyLoad = 1.5

/** Whether the machine had other work in the minute before: then no figure is judged. */
export const isBusy = (): boolean => (loadavg()[0] ?? 0) > availableParallelism() * busyLoad

export interface Cores {
  /** For whatever stands in the middle: one core of its own. */
  readonly middle: string
  /** For load, upstreams, Redis. */
  readonly ends: string
}

/** @returns undefined where processes cannot be kept apart: one core, or no `taskset` */
export function findCores(): Cores | undefined {
  if (spawnSync('taskset', ['--version']).status !== 0) return undefined
  const [, list = ''] = /^Cpus_allowed_list:\s+(\S+)/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? []
  const all = list.split(',').flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number)
    return Array.from({ length: to - from + 1 }, (_, at) => from + at)
  })
  const middle = all.pop()
  return middle === undefined || all.length === 0 ? undefined : { middle: String(middle), ends: all.join(',') }
}
