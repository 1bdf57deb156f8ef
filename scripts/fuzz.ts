// `npm run fuzz -- --minutes N [--seed N]`: hostile clients and upstreams for that long. Prints the seed, with which the
// same inputs come again, and what was found; the exit code is 1 where that is anything.

import { parseArgs } from 'node:util'
import { fuzz, pairsWithoutResult } from '../test/fuzz/fuzz.ts'

const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' } } })
const minutes = Number(values.minutes ?? 1)
const seed = Number(values.seed ?? Math.floor(Math.random() * 1_000_000))
if (!Number.isFinite(minutes) || minutes <= 0 || !Number.isSafeInteger(seed)) {
  process.stderr.write('--minutes takes a positive number, --seed a whole one.\n')
  process.exit(2)
}
process.stdout.write(`seed ${seed}, ${minutes} minutes\n`)
const closers: Array<() => unknown> = []
async function run() {
  try {
    return await fuzz({ teardown: (close) => closers.push(close) }, { seed, ms: minutes * 60_000 })
  } finally {
    for (const close of closers.toReversed()) await close()
  }
}
const found = await run()
const { conversations, results, faults, stallMs, growthBytes, isAlive } = found
process.stdout.write(`${conversations} conversations; results of each client at each upstream:\n`)
for (const [pair, count] of [...results].sort(([a], [b]) => a.localeCompare(b)))
  process.stdout.write(`  ${pair}: ${count}\n`)
const failures = [
  ...faults,
  ...pairsWithoutResult(results).map(
    (pair) => `${pair}: no result in ${conversations} conversations, so nothing was tried`
  ),
  ...(isAlive ? [] : ['the gateway ended, or did not serve a caller who does nothing wrong']),
  ...(stallMs <= 100 ? [] : [`the event loop stood still for ${stallMs} ms of CPU`]),
  ...(growthBytes <= 32 * 1024 * 1024 ? [] : [`${growthBytes} bytes more are held than after the first third`])
]
process.stdout.write(failures.length === 0 ? 'nothing was found\n' : `${failures.join('\n')}\n`)
process.stdout.write(`longest turn ${stallMs} ms of CPU, growth ${Math.round(growthBytes / 1024)} KiB\n`)
process.exit(failures.length === 0 ? 0 : 1)
