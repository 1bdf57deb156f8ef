// `node --import turn-watcher.ts ...`: writes down the longest turn of the event loop, in a file of the working folder;
// SIGUSR2 begins anew.

import { writeFileSync } from 'node:fs'

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

let before = cpuMs()
let longestMs = 0
process.on('SIGUSR2', () => {
  writeFileSync('longest-turn', String((longestMs = 0)))
  before = cpuMs()
})
setInterval(() => {
  const ms = cpuMs() - before
  if (ms > longestMs) writeFileSync('longest-turn', String((longestMs = ms)))
  before = cpuMs()
}, 1).unref()
