// `npm run isolation -- [--operations N] [--minutes N] [--part N] [--seed N] [--people N] [--replicas N] [--slow SHARE]
// [--dear SHARE] [--report FILE]`: people of tenants that have nothing to do with each other, until so many operations were
// made, and none of them found anything of another tenant. In parts, each with tenants, a store and processes of its own.
// It ends before after so many minutes, or with SIGINT or SIGTERM: the part that runs is judged as far as it came, and
// the next run goes on where the report stands. The exit code is 1 where a part found something; it is made again by its seed.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import type { IsolationFigures, PartOptions, PartResult } from '../test/isolation/part.ts'

const top = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '10000000' },
    minutes: { type: 'string', default: '100000' },
    part: { type: 'string', default: '500000' },
    seed: { type: 'string', default: '20260728' },
    people: { type: 'string', default: '24' },
    replicas: { type: 'string', default: '2' },
    slow: { type: 'string', default: '0.02' },
    dear: { type: 'string', default: '0.0015' },
    report: { type: 'string', default: join(top, '.tap', 'isolation.json') }
  }
})
const { operations, minutes, part, seed, people, replicas, slow, dear } = values
const numbers = [operations, minutes, part, people, replicas, slow, dear].map(Number)
if (!numbers.every((each) => each > 0) || !Number.isSafeInteger(Number(seed))) {
  process.stderr.write('--seed takes a whole number, all others but --report one above 0.\n')
  process.exit(2)
}

interface Part extends IsolationFigures {
  readonly seed: number
  /** With what goes before and after the operations. */
  readonly seconds: number
}

interface Report {
  /** What makes the parts what they are: with others than these it is another run. */
  readonly of: string
  readonly parts: readonly Part[]
}

/** A niced run may stand still for long beside others: that is no fault of the gateway. */
const patienceMs = 3_600_000

const of = JSON.stringify({ seed, part, people, replicas, slow, dear })

function earlier(): Report {
  if (!existsSync(values.report)) return { of, parts: [] }
  const report = JSON.parse(readFileSync(values.report, 'utf8')) as Report
  if (report.of === of) return report
  process.stderr.write(`${values.report} is of another run (${report.of}): give another --report, or move it away.\n`)
  process.exit(2)
}

/** Ends the part that runs, which is then judged as far as it came. */
const ending = new AbortController()
const end = (): void => ending.abort()

/** @returns what it came to; undefined where it found something, or did not get so far */
async function runPart(number: number): Promise<Part | undefined> {
  const own = `${values.report}.part`
  rmSync(own, { force: true })
  const began = performance.now()
  const options: PartOptions = {
    operations: Number(part),
    people: Number(people),
    replicas: Number(replicas),
    seed: Number(seed) + number,
    shares: { slow: Number(slow), dear: Number(dear) }
  }
  const child = spawn(
    process.execPath,
    [join(top, 'test/isolation/part.ts'), JSON.stringify({ ...options, report: own })],
    {
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: join(top, '.tap', 'compiled'),
        GATEHOUSE_TEST_PATIENCE_MS: String(patienceMs)
      },
      // In a group of its own: Ctrl+C would end its gateways in the middle of what they do.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit']
    }
  )
  const endPart = (): void => void child.kill('SIGTERM')
  ending.signal.addEventListener('abort', endPart)
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  ending.signal.removeEventListener('abort', endPart)
  if (code !== 0) process.stdout.write(`the process of the part ended with ${signal ?? `code ${code}`}\n`)
  if (code !== 0 || !existsSync(own)) return undefined
  const { figures, faults } = JSON.parse(readFileSync(own, 'utf8')) as PartResult
  if (faults.length > 0) return undefined
  return { seed: options.seed, seconds: Math.round((performance.now() - began) / 1_000), ...figures }
}

const sumOf = (parts: readonly Part[], of: (part: Part) => number): number =>
  parts.reduce((sum, each) => sum + of(each), 0)

/** What all parts came to. */
function summaryOf(parts: readonly Part[]) {
  const done = sumOf(parts, (each) => each.operations)
  const operationSeconds = sumOf(parts, (each) => each.operationSeconds)
  const kinds = [...new Set(parts.flatMap((each) => Object.keys(each.kinds)))].toSorted().map((kind) => {
    const sum = (what: 'done' | 'ok' | 'own'): number => sumOf(parts, (each) => each.kinds[kind]?.[what] ?? 0)
    return [
      kind,
      { done: sum('done'), share: `${((sum('done') * 100) / done).toFixed(3)} %`, ok: sum('ok'), own: sum('own') }
    ]
  })
  const perOperation = (process: 'driver' | 'gateways' | 'processes' | 'redis'): string =>
    ((sumOf(parts, (each) => each.cost?.[process] ?? NaN) * 1_000) / done).toFixed(3)
  const searched = [...new Set(parts.flatMap((each) => Object.keys(each.searched)))].map((place) => [
    place,
    Math.round(sumOf(parts, (each) => each.searched[place] ?? 0) / 1e6)
  ])
  return {
    operations: done,
    requests: sumOf(parts, (each) => each.requests),
    withoutAnswer: sumOf(parts, (each) => each.failures),
    seconds: sumOf(parts, (each) => each.seconds),
    operationSeconds: Math.round(operationSeconds),
    operationsPerSecond: Math.round(done / operationSeconds),
    millisecondsOfCpuPerOperation: {
      driver: perOperation('driver'),
      gateways: perOperation('gateways'),
      processes: perOperation('processes'),
      redis: perOperation('redis')
    },
    searchedMillionCharacters: Object.fromEntries(searched) as Readonly<Record<string, number>>,
    kinds: Object.fromEntries(kinds) as Readonly<Record<string, unknown>>
  }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end)
const deadline = setTimeout(end, Math.min(Number(minutes) * 60_000, 2 ** 31 - 1))
mkdirSync(dirname(values.report), { recursive: true })
let { parts } = earlier()
while (!ending.signal.aborted && sumOf(parts, (each) => each.operations) < Number(operations)) {
  const number = parts.length
  const made = await runPart(number)
  if (made === undefined) {
    process.stdout.write(`part ${number} (--seed ${Number(seed) + number}) failed, for what is said above\n`)
    process.exit(1)
  }
  parts = [...parts, made]
  const summary = summaryOf(parts)
  writeFileSync(values.report, JSON.stringify({ of, summary, parts }, null, 1))
  process.stdout.write(
    `${new Date().toISOString()} part ${number}: ${summary.operations} of ${operations} operations, ` +
      `${summary.requests} requests, ${Math.round(made.operations / made.operationSeconds)} operations a second, ` +
      `${made.failures} without an answer, load ${loadavg()[0]?.toFixed(1)}\n`
  )
}
clearTimeout(deadline)
const { kinds, ...sums } = summaryOf(parts)
process.stdout.write(`${JSON.stringify(sums, null, 1)}\n`)
for (const [kind, figures] of Object.entries(kinds)) process.stdout.write(`${kind}: ${JSON.stringify(figures)}\n`)
process.stdout.write(
  `${sums.operations} operations in ${parts.length} parts: nobody found anything of another tenant\n`
)
