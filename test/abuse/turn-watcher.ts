// `node --import turn-watcher.ts ...`: at each SIGUSR2 writes what the turns of the event loop took since the one before
// into a file of the working folder, as `Turns`.

import { renameSync, writeFileSync } from 'node:fs'
import { type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'

export interface Turns {
  /** How often it has been asked for. */
  readonly asked: number
  /** In ms of CPU of the main thread. */
  readonly longestMs: number
  /** The longest, without what the collector of garbage took of it. */
  readonly longestOwnMs: number
  /** Of more than 20 ms. */
  readonly long: number
  /** Those among them that are long only because the collector ran in them. */
  readonly longByCollector: number
}

const longMs = 20
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

let asked = 0
let longestMs = 0
let before = cpuMs()
let beganAt = performance.now()
let long: Array<{ readonly from: number; readonly to: number; readonly ms: number }> = []
let collections: PerformanceEntry[] = []
const observer = new PerformanceObserver((list) => void collections.push(...list.getEntries()))
observer.observe({ entryTypes: ['gc'] })

function countTurn(): void {
  const [now, at] = [cpuMs(), performance.now()]
  const ms = now - before
  longestMs = Math.max(longestMs, ms)
  if (ms > longMs) long.push({ from: beganAt, to: at, ms })
  ;[before, beganAt] = [now, at]
}
process.on('SIGUSR2', () => {
  countTurn()
  collections.push(...observer.takeRecords())
  const own = long.map(({ from, to, ms }) => {
    const within = collections.filter(({ startTime }) => startTime >= from && startTime <= to)
    return Math.max(0, ms - within.reduce((sum, { duration }) => sum + duration, 0))
  })
  const turns: Turns = {
    asked: ++asked,
    longestMs,
    longestOwnMs: Math.max(Math.min(longestMs, longMs), ...own),
    long: long.length,
    longByCollector: own.filter((ms) => ms <= longMs).length
  }
  // Whoever reads it never finds half of it.
  writeFileSync('longest-turn.new', JSON.stringify(turns))
  renameSync('longest-turn.new', 'longest-turn')
  longestMs = 0
  long = []
  collections = []
  ;[before, beganAt] = [cpuMs(), performance.now()]
})
setInterval(countTurn, 1).unref()
