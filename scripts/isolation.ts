// `npm run isolation -- [--operations N] [--part N] [--seed N] [--people N] [--replicas N] [--slow SHARE] [--report FILE]`:
// people of tenants that have nothing to do with each other, until so many operations were made, and none of them found
// anything of another tenant. In parts, each with tenants, a store and processes of its own, so that a run that was
// ended goes on where its report stands. The exit code is 1 where a part found something; it is made again by its seed.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import type { IsolationFigures } from '../test/isolation/isolation.ts'

const top = join(import.meta.dirname, '..')
const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '100000' },
    part: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '20260728' },
    people: { type: 'string', default: '8' },
    replicas: { type: 'string', default: '2' },
    slow: { type: 'string', default: '0.02' },
    report: { type: 'string', default: join(top, '.tap', 'isolation.json') }
  }
})
const { operations, part, seed, people, replicas, slow } = values
const numbers = [operations, part, people, replicas, slow].map(Number)
if (!numbers.every((each) => each > 0) || !Number.isSafeInteger(Number(seed))) {
  process.stderr.write(
    '--operations, --part, --people, --replicas and --slow take a number above 0, --seed a whole one.\n'
  )
  process.exit(2)
}

interface Part extends IsolationFigures {
  readonly seed: number
  readonly seconds: number
}

interface Report {
  /** What makes the parts what they are: with others than these it is another run. */
  readonly of: string
  readonly operations: number
  readonly requests: number
  readonly parts: readonly Part[]
}

const of = JSON.stringify({ seed, part, people, replicas, slow })
const fresh: Report = { of, operations: 0, requests: 0, parts: [] }

function earlier(): Report {
  if (!existsSync(values.report)) return fresh
  const report = JSON.parse(readFileSync(values.report, 'utf8')) as Report
  if (report.of === of) return report
  process.stderr.write(`${values.report} is of another run (${report.of}): give another --report, or move it away.\n`)
  process.exit(2)
}

/** @returns what it came to; undefined where it found something, or did not get so far */
async function runPart(number: number): Promise<Part | undefined> {
  const own = `${values.report}.part`
  rmSync(own, { force: true })
  const began = performance.now()
  const child = spawn(process.execPath, [join(top, 'test/isolation/isolation.test.ts')], {
    env: {
      ...process.env,
      TAP_TIMEOUT: '0',
      ISOLATION_OPERATIONS: part,
      ISOLATION_PEOPLE: people,
      ISOLATION_REPLICAS: replicas,
      ISOLATION_SEED: String(Number(seed) + number),
      ISOLATION_SLOW: slow,
      ISOLATION_REPORT: own
    },
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const said: string[] = []
  child.stdout.setEncoding('utf8').on('data', (text: string) => said.push(text))
  const end = (): void => void child.kill('SIGKILL')
  process.once('exit', end)
  const [code] = (await once(child, 'close')) as [number | null]
  process.off('exit', end)
  if (code !== 0 || !existsSync(own)) {
    process.stdout.write(said.join(''))
    return undefined
  }
  const figures = JSON.parse(readFileSync(own, 'utf8')) as IsolationFigures
  return { seed: Number(seed) + number, seconds: Math.round((performance.now() - began) / 1_000), ...figures }
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
mkdirSync(dirname(values.report), { recursive: true })
let report = earlier()
while (report.operations < Number(operations)) {
  const number = report.parts.length
  const made = await runPart(number)
  if (made === undefined) {
    process.stdout.write(`part ${number} (ISOLATION_SEED=${Number(seed) + number}) failed; what it said is above\n`)
    process.exit(1)
  }
  report = {
    of,
    operations: report.operations + made.operations,
    requests: report.requests + made.requests,
    parts: [...report.parts, made]
  }
  writeFileSync(values.report, JSON.stringify(report, null, 1))
  const rate = Math.round(made.operations / made.seconds)
  process.stdout.write(
    `${new Date().toISOString()} part ${number}: ${report.operations} of ${operations} operations, ${report.requests} ` +
      `requests, ${rate} operations a second, ${made.failures} without an answer, load ${loadavg()[0]?.toFixed(1)}\n`
  )
}
process.stdout.write(
  `${report.operations} operations in ${report.parts.length} parts: nobody found anything of another tenant\n`
)
