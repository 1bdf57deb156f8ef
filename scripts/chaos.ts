// `npm run chaos -- [--faults N] [--minutes N] [--clients N] [--seed N] [--spares N] [--sentinel] [--only kill,pause]
// [--report FILE] [--add]`: parts of a deployment fail under load, one after the other. After so many minutes, or at
// Ctrl+C, nothing fails any more, and what has happened so far is judged. `--add` adds the run to those of the report.
// The exit code is 1 where a promise of docs/reliability.md was broken.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { chaos, type ChaosReport } from '../test/chaos/chaos.ts'
import { faults, type FaultName } from '../test/chaos/faults.ts'

type Counts = Readonly<Record<string, number>>
const sumOf = (counts: readonly Counts[]): Counts =>
  counts.reduce<Record<string, number>>((sum, each) => {
    for (const [name, count] of Object.entries(each)) sum[name] = (sum[name] ?? 0) + count
    return sum
  }, {})

const totalOf = (runs: readonly ChaosReport[]) => ({
  ...sumOf(runs.map(({ seconds, calls, sessions, resumed, asked }) => ({ seconds, calls, sessions, resumed, asked }))),
  faults: sumOf(runs.map(({ faults: each }) => each)),
  outcomes: sumOf(runs.map(({ outcomes }) => outcomes)),
  broken: runs.flatMap(({ violations }) => violations).length
})

const { values } = parseArgs({
  options: {
    faults: { type: 'string', default: '30' },
    minutes: { type: 'string', default: '1440' },
    clients: { type: 'string', default: '12' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    spares: { type: 'string', default: '0' },
    sentinel: { type: 'boolean', default: false },
    only: { type: 'string' },
    add: { type: 'boolean', default: false },
    report: { type: 'string', default: join(import.meta.dirname, '..', '.tap', 'chaos.json') }
  }
})
const { spares, seed } = { spares: Number(values.spares), seed: Number(values.seed) }
const [count, clients, minutes] = [values.faults, values.clients, values.minutes].map(Number)
const only = values.only?.split(',').filter((name): name is FaultName => name in faults)
const positive = [count, clients, minutes].every((value) => value !== undefined && value > 0)
const fitting = only?.every((name) => values.sentinel || name !== 'fail over Redis') ?? true
const whole = [seed, spares].every((value) => Number.isSafeInteger(value) && value >= 0)
if (!positive || !whole || only?.length === 0 || !fitting) {
  process.stderr.write(
    `--faults, --minutes and --clients take a positive number, --seed and --spares a whole one, --only some of: ${Object.keys(faults).join(', ')} (the failover with --sentinel).\n`
  )
  process.exit(2)
}

const enough = new AbortController()
setTimeout(() => enough.abort(), Math.min(minutes! * 60_000, 2 ** 31 - 1)).unref()
process.once('SIGINT', () => enough.abort())
const closers: Array<() => unknown> = []
process.stdout.write(`seed ${seed}, ${count} faults, ${clients} clients\n`)
async function run() {
  try {
    return await chaos(
      { teardown: (close) => closers.push(close) },
      {
        seed,
        faults: count!,
        clients: clients!,
        spares,
        sentinel: values.sentinel,
        enough: enough.signal,
        ...(only === undefined ? {} : { only }),
        onFault: (name, ms, calls) => process.stdout.write(`${(ms / 1_000).toFixed(1)} s, ${calls} calls: ${name}\n`)
      }
    )
  } finally {
    for (const close of closers.toReversed()) await close()
  }
}
const report = await run()
const cores = availableParallelism()
const runs = [{ cores, ...report }]
if (values.add && existsSync(values.report)) runs.unshift(...JSON.parse(readFileSync(values.report, 'utf8')).runs)
mkdirSync(dirname(values.report), { recursive: true })
writeFileSync(values.report, JSON.stringify({ total: totalOf(runs), runs }, null, 1))
const { violations, ...figures } = report
process.stdout.write(`${JSON.stringify(figures)}\n`)
if (runs.length > 1) process.stdout.write(`${runs.length} runs: ${JSON.stringify(totalOf(runs))}\n`)
process.stdout.write(violations.length === 0 ? 'no promise was broken\n' : `${violations.join('\n')}\n`)
process.exit(violations.length === 0 ? 0 : 1)
