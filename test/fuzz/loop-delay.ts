// Preloaded into the gateway: measures how long its event loop stands still, and on SIGUSR2 tells that and its memory on
// standard error. A turn counts with the CPU time of its thread, or every pause of a busy machine would be a stall of the
// gateway.

import { setInterval } from 'node:timers'

export interface Measurement {
  readonly msg: 'measured'
  /** Longest turn since the last measurement, in ms of CPU. */
  readonly stallMs: number
  /** In use after a collection, in bytes, buffers included. */
  readonly heapBytes: number
}

const threadMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
let stallMs = 0
let wallAt = performance.now()
let cpuAt = threadMs()
setInterval(() => {
  const [wall, cpu] = [performance.now(), threadMs()]
  stallMs = Math.max(stallMs, Math.min(wall - wallAt, cpu - cpuAt))
  wallAt = wall
  cpuAt = cpu
}, 5).unref()

process.on('SIGUSR2', () => {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  const measured: Measurement = { msg: 'measured', stallMs: Math.round(stallMs), heapBytes: heapUsed + external }
  process.stderr.write(`${JSON.stringify(measured)}\n`)
  // The collection itself is not counted.
  stallMs = 0
  wallAt = performance.now()
  cpuAt = threadMs()
})
