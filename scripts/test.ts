// The whole check, in one command: types, lint, generated documents, and every test against real parts, some at a time.
// The last line is `N passed, N failed`. Arguments: test files, for these alone; `--fast`, for all but the slow folders;
// `--long`, for the long forms that the whole leaves out; `--replicas`, for those of foreign clients, suites and revisions
// alone, through three processes behind a round robin; `--full`, with every pair of store, SDK and credential, and all
// inputs of each property; `--browser`, for those in Chromium alone, which the whole leaves out, too.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, globSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import {
  ensureBubblewrap,
  ensureChromium,
  ensureNginx,
  ensurePrometheus,
  ensureRedis,
  ensureShells
} from './programs.ts'
import { testFiles } from './test-files.ts'

/** A check or a test file: a program that says by its exit code whether all is well. */
interface Job {
  readonly name: string
  readonly args: readonly string[]
  /** Test files, all of one process. */
  readonly files?: readonly string[]
}

interface Ended {
  readonly name: string
  readonly seconds: number
  readonly passed: number
  readonly failed: number
}

const root = join(import.meta.dirname, '..')
const bin = join(root, 'node_modules', '.bin')

/** What a test file gives itself: twice what the longest takes on a machine that does ten other things. */
const fileTimeoutS = 600
/** For a file that has lost itself and cannot even give up. */
const killAfterMs = 1_200_000

/**
 * Plugins of tap that no test uses: without them an empty file costs 0.21 s of CPU instead of 0.32 s. A file run by hand
 * works with them, too.
 */
const leftOut = [
  ...['after-each', 'before-each', 'chdir', 'intercept', 'mock', 'node-serialize', 'snapshot', 'spawn', 'stdin'],
  ...['typescript', 'worker']
]

/**
 * Types and lint are Go programs, which would check the same types once on each core, and collect garbage for half of
 * their time.
 */
const inOneThread = { GOMAXPROCS: '1', GOGC: '400' }

const checks: readonly Job[] = [
  { name: 'types', args: ['tsc', '--noEmit', '--checkers', '1', '--incremental', '--tsBuildInfoFile', '.tap/types'] },
  { name: 'types of the console', args: ['tsc', '--noEmit', '--checkers', '1', '--project', 'src/console'] },
  { name: 'lint', args: ['oxlint', '--type-aware'] },
  { name: 'format', args: ['oxfmt', '--check', 'src', 'test', 'bench', 'scripts', 'bin'] },
  { name: 'unused code', args: ['knip', '--cache', '--cache-location', '.tap/knip'] },
  { name: 'documents', args: ['node', 'scripts/docs.ts', '--check'] }
]

const isFull = process.argv.includes('--full')
const part =
  (['fast', 'long', 'replicas', 'browser'] as const).find((name) => process.argv.includes(`--${name}`)) ?? 'all'
/** How much the long form of a file makes of what it makes in any case. */
const longer =
  part === 'long' ? { GATEHOUSE_ACCOUNT_CALLS: '10000', ABUSE_MEMORY_MIB: '2048', ABUSE_SECONDS: '60' } : {}
const isReplicated = part === 'replicas'
const isBrowser = part === 'browser'
const named = process.argv.slice(2).filter((arg) => !arg.startsWith('--'))
const groups = named.length > 0 ? globSync(named, { cwd: root }).map((file) => [file]) : testFiles(part, root)
/** Many files wait for sockets and timers more than they compute. */
const atOnce =
  isReplicated || isBrowser || part === 'long' ? Math.ceil(availableParallelism() / 2) : availableParallelism() + 1

ensureRedis()
ensurePrometheus()
if (isBrowser) orSay(ensureChromium, 'a browser')
if (isReplicated) orSay(ensureNginx, 'several replicas')
ensureBubblewrap()
ensureShells()
// Once after each installation, and again for other plugins: it takes 9 s, and a build under a run of another checkout
// breaks that run.
const builtFor = join(root, 'node_modules', '@tapjs', 'test', 'test-built', 'built-by-gatehouse')
if (!existsSync(builtFor) || readFileSync(builtFor, 'utf8') !== String(leftOut)) {
  const { status } = spawnSync(join(bin, 'tap'), ['build', ...leftOut.map((plugin) => `--plugin=!@tapjs/${plugin}`)], {
    cwd: root,
    stdio: 'inherit'
  })
  if (status !== 0) process.exit(status ?? 1)
  writeFileSync(builtFor, String(leftOut))
}

/** What each job said. */
const logs = join(root, '.tap', 'logs')
mkdirSync(logs, { recursive: true })
const waiting: Job[] = [
  ...(named.length === 0 && (part === 'all' || part === 'fast') ? checks : []),
  ...groups.map(testJob)
]
const all = waiting.length
const ended: Ended[] = []
await Promise.all(Array.from({ length: atOnce }, work))

const slowest = ended.toSorted((a, b) => b.seconds - a.seconds).slice(0, 10)
process.stdout.write(`\nThe longest:\n${slowest.map((job) => `${job.seconds.toFixed(1)} s ${job.name}\n`).join('')}`)
for (const { name } of ended.filter(({ failed }) => failed > 0)) process.stdout.write(`failed: ${name}\n`)
const sum = (key: 'passed' | 'failed'): number => ended.reduce((total, job) => total + job[key], 0)
process.stdout.write(`\n${sum('passed')} passed, ${sum('failed')} failed\n`)
process.exit(sum('failed') === 0 && sum('passed') > 0 ? 0 : 1)

/** Ends with what is missing, on a machine that does not have it and gets none. */
function orSay(ensure: () => unknown, where: string): void {
  try {
    ensure()
  } catch (error) {
    process.stdout.write(`${(error as Error).message}\nNothing was tested with ${where}.\n0 passed, 0 failed\n`)
    process.exit(0)
  }
}

function testJob(group: readonly string[]): Job {
  const [first = ''] = group
  if (group.length === 1) return { name: first, args: ['node', first], files: group }
  return { name: `${first} and ${group.length - 1} more`, args: ['node', 'scripts/run-together.ts'], files: group }
}

/** One job after another until none is left. */
async function work(): Promise<void> {
  for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
    const end = await run(job)
    ended.push(end)
    const state = end.failed === 0 ? 'passed' : 'FAILED'
    process.stdout.write(`${ended.length}/${all} ${state} ${end.name} ${end.seconds.toFixed(1)} s\n`)
  }
}

/**
 * A test file runs as it does by hand, without the runner of tap, whose hooks and source maps cost three times as much
 * as an average file.
 */
async function run({ name, args: [command = '', ...rest], files = [] }: Job): Promise<Ended> {
  const startedAt = performance.now()
  // Files rather than pipes, which a process that a test left behind would hold open.
  const log = join(logs, name.replaceAll(/[/ ]/g, '-'))
  const [out, err] = [openSync(`${log}.out`, 'w'), openSync(`${log}.err`, 'w')]
  const child = spawn(join(bin, command), rest, {
    cwd: root,
    stdio: ['ignore', out, err],
    timeout: killAfterMs,
    killSignal: 'SIGKILL',
    // Three hundred processes load the same modules: compiled once, they cost half.
    env: {
      ...process.env,
      NODE_COMPILE_CACHE: join(root, '.tap', 'compiled'),
      ...inOneThread,
      ...longer,
      TAP_TIMEOUT: String(fileTimeoutS),
      GATEHOUSE_TEST_FILES: JSON.stringify(files),
      ...(isReplicated ? { GATEHOUSE_TEST_REPLICAS: '3' } : {}),
      ...(isFull ? { GATEHOUSE_TEST_FULL: '1' } : {})
    }
  })
  const [code, signal] = await once(child, 'exit')
  closeSync(out)
  closeSync(err)
  const output = readFileSync(`${log}.out`, 'utf8')
  const seconds = (performance.now() - startedAt) / 1000
  const isTest = files.length > 0
  // The summary of the outermost plan: "# { total: 12, pass: 11, fail: 1 }".
  const counts = isTest ? (/^# \{ ([^}]*) \}$/m.exec(output)?.[1] ?? '') : ''
  const count = (kind: string): number => Number(new RegExp(`\\b${kind}: (\\d+)`).exec(counts)?.[1] ?? 0)
  const skipped = count('skip') + count('todo')
  const isWell = code === 0 && skipped === 0 && (!isTest || count('pass') > 0)
  if (!isWell) {
    const said = isTest ? failures(output).join('\n\n') : output
    const end = skipped > 0 ? `${skipped} tests skip themselves; none may` : `ended with ${signal ?? `code ${code}`}`
    process.stdout.write(`\n${said}\n${readFileSync(`${log}.err`, 'utf8').slice(-4_000)}\n${name}: ${end}\n\n`)
  }
  return { name, seconds, passed: count('pass'), failed: isWell ? 0 : Math.max(1, count('fail')) }
}

/**
 * Each failed assertion with its diagnosis, and the test it stands in; what only repeats it further out is left out.
 */
function failures(tap: string): string[] {
  const lines = tap.split('\n')
  return lines.flatMap((line, at) => {
    if (!/^\s*not ok/.test(line) || lines[at + 1]?.trim() !== '---') return []
    const end = lines.findIndex((other, index) => index > at && other.trim() === '...')
    const block = lines.slice(at, end === -1 ? at + 40 : end)
    // The end of a test, which has failed where one of its assertions has.
    const isOuter =
      line.includes('# time=') &&
      !block.some((other) => /diff:|compare:|found:|stdio: .*|exitCode: [^01]|signal: [A-Z]/.test(other))
    return isOuter ? [] : [block.slice(0, 60).join('\n')]
  })
}
