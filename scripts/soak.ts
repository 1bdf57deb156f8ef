// `npm run soak -- --hours H [--rate N] [--replicas N] [--seed N] [--report FILE]`: a steady load for that long, and what
// the gateway holds meanwhile. The exit code is 1 where answers were wrong, something is left behind, or memory grows.

import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { soak, type Sample } from '../test/soak/soak.ts'

const { values } = parseArgs({
  options: {
    hours: { type: 'string', default: '1' },
    rate: { type: 'string', default: '4' },
    replicas: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    report: { type: 'string', default: join(import.meta.dirname, '..', '.tap', 'soak.json') }
  }
})
const [hours, rate, nodes, seed] = [values.hours, values.rate, values.replicas, values.seed].map(Number)
if (!(hours && hours > 0 && rate && rate > 0 && nodes && nodes > 0) || !Number.isSafeInteger(seed)) {
  process.stderr.write('--hours and --rate take a positive number, --replicas and --seed a whole one.\n')
  process.exit(2)
}

const MiB = 1_048_576
/** What an operation may leave behind, in bytes: the copy of a session record, in a cache that is filling still. */
const bytesPerOperation = 4_000
const leastHours = 0.25

const shown = (bytes: readonly number[]): string => bytes.map((each) => (each / MiB).toFixed(1)).join(' ')
const line = ({ ms, operations, heap, resident, descriptors, children }: Sample): string =>
  `${(ms / 60_000).toFixed(1)} min, ${operations} operations: heap ${shown(heap)} MiB, resident ${shown(resident)} MiB, ` +
  `descriptors ${descriptors.join(' ')}, children ${children.join(' ')}\n`

process.stdout.write(`seed ${seed}, ${hours} h, ${rate} operations a second, ${nodes} replicas\n`)
const closers: Array<() => unknown> = []
async function run() {
  try {
    const ms = hours! * 3_600_000
    return await soak(
      { teardown: (close) => closers.push(close) },
      {
        seed: seed!,
        ms,
        rate: rate!,
        nodes: nodes!,
        sessionIdleMs: 20_000,
        sampleMs: Math.min(60_000, ms / 20),
        onSample: (sample) => process.stdout.write(line(sample))
      }
    )
  } finally {
    for (const close of closers.toReversed()) await close()
  }
}
const soaked = await run()
const { operations, failures, failed, before, after, heapPerHour, residentPerHour, ends } = soaked
const machine = `${availableParallelism()} cores, load ${loadavg()
  .map((each) => each.toFixed(1))
  .join(' ')}`
mkdirSync(dirname(values.report), { recursive: true })
writeFileSync(values.report, JSON.stringify({ seed, hours, rate, machine, ...soaked }, null, 1))

process.stdout.write(`before: ${line(before)}after: ${line(after)}`)
process.stdout.write(
  `${operations} operations, ${failed} failed; heap ${shown(heapPerHour)} MiB an hour, resident ${shown(residentPerHour)} MiB an hour; ${machine}\n`
)
const perHour = (operations / hours) * bytesPerOperation
const isLong = hours >= leastHours
if (!isLong) process.stdout.write(`under ${leastHours} h growth is not judged: what is made once is still being made\n`)
const problems = [
  ...failures,
  ...heapPerHour
    .filter((growth) => isLong && growth > perHour)
    .map((growth) => `the heap grows by ${shown([growth])} MiB an hour`),
  ...after.children.filter((count) => count > 1).map((count) => `${count} child processes are left`),
  ...after.descriptors
    .filter((count, at) => count > (before.descriptors[at] ?? 0) + 20)
    .map((count) => `${count} descriptors are open after the load`),
  ...ends.filter(({ code }) => code !== 0).map((end) => `a gateway ended with ${JSON.stringify(end)}`)
]
process.stdout.write(problems.length === 0 ? 'nothing was found\n' : `${problems.join('\n')}\n`)
process.exit(problems.length === 0 ? 0 : 1)
