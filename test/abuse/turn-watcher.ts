// `node --import turn-watcher.ts ...`: at each SIGUSR2 writes the longest turn of the event loop since the one before, in
// ms of CPU, into a file of the working folder, after how often that has been asked for.

import { renameSync, writeFileSync } from 'node:fs'

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

let before = cpuMs()
let [longestMs, asked] = [0, 0]
function countTurn(): void {
  const now = cpuMs()
  longestMs = Math.max(longestMs, now - before)
  before = now
}
process.on('SIGUSR2', () => {
  countTurn()
  // Whoever reads it never finds half of it.
  writeFileSync('longest-turn.new', `${++asked} ${longestMs}`)
  renameSync('longest-turn.new', 'longest-turn')
  longestMs = 0
  before = cpuMs()
})
setInterval(countTurn, 1).unref()
