// `npm run abuse -- --minutes N [--seed N] [--memory MIB] [--from SLICE]`: attacks on availability for that long, and
// whether a neighbour tenant noticed. Prints a line for each slice; the exit code is 1 where one did not hold.

import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { attackForHours, type JudgedSlice } from '../test/abuse/hour/hour.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    memory: { type: 'string', default: '600' },
    from: { type: 'string', default: '0' },
    seconds: { type: 'string', default: '15' },
    report: { type: 'string', default: join(import.meta.dirname, '..', '.tap', 'abuse.json') }
  }
})
const [minutes = 0, seed = 0, memory = 0, from = 0, seconds = 0] = [
  values.minutes,
  values.seed,
  values.memory,
  values.from,
  values.seconds
].map(Number)
if (!(minutes > 0 && memory >= 256 && seconds > 0) || ![seed, from].every(Number.isSafeInteger)) {
  process.stderr.write(
    '--minutes and --seconds take a positive number, --memory at least 256 (MiB), --seed and --from a whole one.\n'
  )
  process.exit(2)
}

const MiB = 1_048_576
const inMiB = (bytes: number): string => `${Math.round(bytes / MiB)} MiB`
const load = (): string => loadavg()[0]?.toFixed(1) ?? ''
const namesOf = ({ callers, memory: ofMemory, upstreams }: JudgedSlice['slice']): string =>
  [...callers, ...ofMemory, ...upstreams].join('; ')

function line(judged: JudgedSlice): string {
  const { slice, verdict, reasons, neighbour, control, slowdown, peakBytes, turns } = judged
  const { longestMs, longestOwnMs } = turns
  return [
    `${slice.number}: ${verdict}; neighbour ${neighbour.calls} calls, p50 ${neighbour.medianMs}, `,
    `p99 ${neighbour.p99Ms} ms (control p99 ${control.p99Ms}, slowed ${slowdown.toFixed(1)} times by the machine), `,
    `${inMiB(peakBytes)}, longest turn ${Math.round(longestMs)} ms `,
    `(${Math.round(longestOwnMs)} without the collector), load ${load()}\n`,
    `   ${namesOf(slice)}\n`,
    ...reasons.map((reason) => `   ${reason}\n`)
  ].join('')
}

process.stdout.write(`seed ${seed}, ${minutes} minutes, limits.memoryBytes ${memory} MiB\n`)
const closers: Array<() => unknown> = []
async function close(): Promise<void> {
  for (const each of closers.splice(0).toReversed()) await each()
}
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void close().finally(() => process.exit(130)))

async function run(): Promise<JudgedSlice[]> {
  try {
    return await attackForHours(
      { teardown: (close) => closers.push(close) },
      {
        seed,
        from,
        ms: minutes * 60_000,
        sliceMs: seconds * 1_000,
        memoryBytes: memory * MiB,
        onSlice: (judged) => process.stdout.write(line(judged))
      }
    )
  } finally {
    await close()
  }
}
const slices = await run()
const of = (verdict: JudgedSlice['verdict']): JudgedSlice[] => slices.filter((slice) => slice.verdict === verdict)
const [failed, notJudged] = [of('failed'), of('not judged')]
mkdirSync(join(import.meta.dirname, '..', '.tap'), { recursive: true })
writeFileSync(values.report, JSON.stringify({ seed, minutes, memory, slices }, null, 1))

const most = (of: (slice: JudgedSlice) => number): number => Math.max(...slices.map(of))
const sum = (of: (slice: JudgedSlice) => number): number => slices.reduce((total, slice) => total + of(slice), 0)
const p99s = slices.map(({ neighbour }) => neighbour.p99Ms).sort((a, b) => a - b)
/** What would be left of it if the machine had nothing else to do. */
const ownP99 = Math.round(most(({ neighbour, slowdown }) => neighbour.p99Ms / slowdown))
const longest = most(({ turns }) => turns.longestMs)
const longestOwn = most(({ turns }) => turns.longestOwnMs)
process.stdout.write(
  [
    `${slices.length} slices: ${of('held').length} held, ${failed.length} failed, ${notJudged.length} not judged`,
    `neighbour: ${sum(({ neighbour }) => neighbour.calls)} calls, of which ` +
      `${sum(({ neighbour }) => neighbour.failures.length)} failed; p99 at most ` +
      `${most(({ neighbour }) => neighbour.p99Ms)} ms, in half of the slices ${p99s[p99s.length >> 1]} ` +
      `(control at most ${most(({ control }) => control.p99Ms)}), at most ${ownP99} without waiting for a processor`,
    `resident set at most ${inMiB(most(({ peakBytes }) => peakBytes))}`,
    `longest turn ${Math.round(longest)} ms, without the collector ${Math.round(longestOwn)} ms; ` +
      `${sum(({ turns }) => turns.long)} turns above 20 ms, ` +
      `${sum(({ turns }) => turns.longByCollector)} of them by the collector alone`,
    `${availableParallelism()} cores, load ${load()}\n`
  ].join('\n')
)
for (const { slice } of failed)
  process.stdout.write(
    `again: npm run abuse -- --seed ${seed} --memory ${memory} --from ${slice.number} --minutes 0.1\n`
  )
process.exit(failed.length === 0 ? 0 : 1)
