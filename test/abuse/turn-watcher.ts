// `node --import turn-watcher.ts ...`: writes the longest turn of the event loop, in ms of CPU, into a file of the working
// folder, after how often SIGUSR2 has begun the count anew.

import { renameSync, writeFileSync } from 'node:fs'

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

let before = cpuMs()
let [longestMs, round] = [0, 0]
/** Whoever reads it never finds half of it. */
function write(): void {
  writeFileSync('longest-turn.new', `${round} ${longestMs}`)
  renameSync('longest-turn.new', 'longest-turn')
}
process.on('SIGUSR2', () => {
  longestMs = 0
  round++
  write()
  before = cpuMs()
})
setInterval(() => {
  const ms = cpuMs() - before
  if (ms > longestMs) {
    longestMs = ms
    write()
  }
  before = cpuMs()
}, 1).unref()
